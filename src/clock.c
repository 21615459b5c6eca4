/*-------------------------------------------------------------------------
 *
 * clock.c
 *		Wait for the clock, for a session whose node is ahead of the clock; the error for a clock
 *		that reads a time without IDs.
 *
 * A wait lasts for a second at most, because the clock may be set meanwhile: the caller computes
 * anew what to do, and may call again.  A wait can be cancelled, and so raises errors.  Its caller
 * holds no lock.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"

#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "type/id_time.h"

/* Milliseconds after which a wait reads the clock again: it may have been set. */
#define MAX_NAP				1000

/* 58000 */
void
clock_out_of_range(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_SYSTEM_ERROR),
			 errmsg("the clock is out of range for type %s", "scru64"),
			 errdetail("The clock reads %s. IDs have times from %s to %s.",
					   pstrdup(timestamptz_to_str(GetCurrentTimestamp())),
					   pstrdup(timestamptz_to_str(time_of_tick(SCRU64_FIRST_TIMESTAMP))),
					   pstrdup(timestamptz_to_str(time_of_tick(SCRU64_LAST_TIMESTAMP)))),
			 errhint("Correct the clock. If IDs were issued by it, set \"%s\" to a node that has not been used and then, as a superuser, call %s.",
					 "scru64.node_spec", "scru64_set_ceiling()")));
}

/* Sleep until the clock reaches a tick, for MAX_NAP at most: then read the clock again. */
void
clock_wait(uint64 due)
{
	int64		left_ms = (int64) (due << SCRU64_TICK_SHIFT) - clock_ms();

	(void) WaitLatch(MyLatch,
					 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 (long) Max(Min(left_ms, MAX_NAP), 0), compat_wait_event("Scru64Clock"));
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}
