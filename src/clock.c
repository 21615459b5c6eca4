/*-------------------------------------------------------------------------
 *
 * clock.c
 *		The clock: wait for it, notice when it goes back.
 *
 * Upper storey.  May call node_slots.c, for what a node's sessions have seen of
 * the clock, and generate_errors.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "pg_compat.h"

#include "miscadmin.h"
#include "storage/latch.h"

#include "clock.h"

/* Milliseconds between looks at the clock, which may be set, in a wait. */
#define MAX_NAP				1000

#define WAIT_EVENT_NAME		"Scru64Clock"

/*
 * Keep the clock as this node's sessions have last seen it, in ticks, and notice
 * when it goes back.
 */
void
clock_observe(NodeSlot *slot, uint64 now)
{
	uint64		seen = pg_atomic_read_u64(&slot->clock);

	if (now > seen)
		pg_atomic_compare_exchange_u64(&slot->clock, &seen, now);
	else if (now < seen)
	{
		/*
		 * Another session may have read the clock after this one did.  So read
		 * it again, after what was seen was read: now only a clock that went
		 * back can be behind it.
		 */
		pg_read_barrier();
		now = clock_tick();
		if (now < seen &&
			pg_atomic_compare_exchange_u64(&slot->clock, &seen, now))
		{
			pg_atomic_fetch_add_u64(&slot->clock_rollbacks, 1);
			log_rollback(seen, now);
		}
	}
}

/* Sleep until the clock reaches a tick, or for a moment: then look again. */
void
clock_wait(uint64 due)
{
	static uint32 wait_event = 0;
	int64		due_ms = (int64) (due << SCRU64_TICK_SHIFT);
	int64		now_ms = clock_ms();
	long		timeout = 0;

	if (wait_event == 0)
		wait_event = compat_wait_event(WAIT_EVENT_NAME);

	if (due_ms > now_ms)
		timeout = (long) Min(due_ms - now_ms, MAX_NAP);
	(void) WaitLatch(MyLatch,
					 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 timeout, wait_event);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}
