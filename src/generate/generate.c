/*-------------------------------------------------------------------------
 *
 * generate.c
 *		scru64_generate(): the next ID of the session's node.
 *
 * Brings together the session's node (session_node.c), the clock, the rules (generator.c),
 * the node's slot, where all sessions find its last ID, and the ceiling.  Waits, or raises an
 * error, if generator.c says that there is no ID yet, or none at all.
 *
 * To open a tick is to make sure that the ceiling and the lease reach the tick: to raise the
 * ceiling, or to wait for the lease, if need be.
 *
 * Invariants:
 *
 *	- A session returns an ID only after a compare-and-swap has put the ID into the slot of
 *	  the session's node, in place of the state from which the session has computed the ID.
 *	- The session itself has opened the tick of the ID (session_node.c), even if another session
 *	  has entered the tick before.  The session tests that it has opened the tick after
 *	  it has read the node's state, and before the compare-and-swap.
 *	- Before the compare-and-swap, the session has advertised a bound below the ID to
 *	  scru64_watermark() (open_transactions.h).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"

#include "common/pg_prng.h"
#include "funcapi.h"
#include "miscadmin.h"

#include "ceiling/ceiling.h"
#include "clock.h"
#include "generate/generate_errors.h"
#include "generate/session_node.h"
#include "pure/look_ahead.h"
#include "settings.h"
#include "shmem/open_transactions.h"
#include "shmem/worker_mailbox.h"

PG_FUNCTION_INFO_V1(scru64_generate);
PG_FUNCTION_INFO_V1(scru64_generate_count);
PG_FUNCTION_INFO_V1(scru64_generate_in_copy);

/* What a call of next_slowly() has waited for */
typedef struct Call
{
	bool		waited;			/* for the clock */
	bool		raised;			/* for a raise: see clock_of_call() */
} Call;

/* Advertise an ID, and advance the node to the ID.  False if another session was faster. */
static inline bool
issue(uint64 *state, uint64 next)
{
	transactions_about_to_issue(next);
	return node_slot_advance(session_node.slot, state, next);
}

/* Record the latest clock that a session of the node has read; notice a rollback. */
static void
observe_clock(NodeSlot *slot, uint64 now)
{
	uint64		seen = pg_atomic_read_u64(&slot->clock);

	if (now > seen)
		pg_atomic_compare_exchange_u64(&slot->clock, &seen, now);
	else if (now < seen)
	{
		/*
		 * Another session may have recorded a later clock since this one read the clock.
		 * A clock that is read now is behind the record only if the clock went back.
		 */
		pg_read_barrier();
		now = clock_tick();
		if (now < seen &&
			pg_atomic_compare_exchange_u64(&slot->clock, &seen, now))
		{
			node_slot_count(slot, NODE_ROLLBACKS);
			generate_log_rollback(seen, now);
		}
	}
}

/* Open the tick of an ID, and advance the node to the ID.  False: read the state again. */
static pg_noinline bool
enter_tick(uint32 incarnation, uint64 *state, uint64 last, uint64 next, uint64 now,
		   bool overflow, Call *call)
{
	NodeSlot   *slot = session_node.slot;

	if (!session_open_tick(incarnation, scru64_get_timestamp(next), now, overflow,
						   &call->raised) ||
		!issue(state, next))
		return false;
	if (overflow)
		node_slot_count(slot, NODE_OVERFLOWS);
	if (scru64_get_timestamp(next) != scru64_get_timestamp(last))
		node_slot_count_used(slot, last, next);
	return true;
}

/* Wait for the clock to reach a tick, for a second at most. */
static void
wait_for_clock(uint64 state, bool full, uint64 due, Call *call)
{
	NodeSlot   *slot = session_node.slot;

	if (!call->waited)
	{
		node_slot_count(slot, NODE_WAITS);
		if (full)
			node_slot_count(slot, NODE_SATURATED);
		generate_log_wait(state);
		/* more capacity may help: have the worker look at the load */
		if (session_is_leased())
			(void) mailbox_call_worker(false);
	}
	call->waited = true;
	clock_wait(due);
}

/*
 * The clock of a call, in ticks.
 *
 * After a raise, use the ceiling as the clock.  The clock may have passed the new ceiling
 * during the raise: with the clock itself, the session would raise the ceiling for ever.
 */
static uint64
clock_of_call(const Call *call)
{
	uint64		now = clock_tick();

	return call->raised ? least_of(now, ceiling_usable()) : now;
}

/*
 * The next ID by all rules of generator.h; next_at_once() has only rule 2.  False if there
 * is no ID yet: try again.
 */
static bool
next_by_rules(Call *call, uint64_t *next)
{
	const Generator *generator = &session_node.generator;
	uint32		incarnation = ceiling_incarnation();
	uint64		now = clock_of_call(call);
	uint64		allowance = allowance_ticks();
	uint64		state;
	uint64		last;
	bool		full;
	GeneratorVerdict verdict;

	if (!node_slot_read(session_node.slot, session_node.key, &state) ||
		state == NODE_STATE_CHANGING ||
		(node_state_is_id(state) && !generator_owns(generator, state)))
	{
		session_attach();
		return false;
	}
	observe_clock(session_node.slot, now);
	full = session_node_is_full(state);
	if (full)
		allowance = look_ahead_most(allowance);
	last = node_state_last(state, generator);
	verdict = generator_next(generator, last, now, allowance,
							 pg_prng_uint32(&pg_global_prng_state), next);
	if (verdict == GENERATOR_NEXT || verdict == GENERATOR_NEXT_BY_OVERFLOW)
		return enter_tick(incarnation, &state, last, *next, now,
						  full && verdict == GENERATOR_NEXT_BY_OVERFLOW, call);
	if (call->raised)
		call->raised = false;	/* next time, use the clock */
	else if (verdict == GENERATOR_WAIT)
		wait_for_clock(state, full, generator_due(generator, last, allowance), call);
	else if (verdict == GENERATOR_EXHAUSTED)
		clock_out_of_range();
	else
	{
		/* a new lease may help */
		if (session_is_leased())
			(void) mailbox_call_worker(true);
		generate_fail_clock_behind(state);
	}
	return false;
}

/*
 * The next ID, if rule 2 of generator.h gives it, and its tick is open to the session.  False
 * if there is more to do, or another session was faster.
 *
 * Read the clock before the state, so that another session has little time to advance the
 * state before the compare-and-swap.  If a session with a later clock advances the state
 * before this one reads the state, the state is ahead of the clock, as under load.
 *
 * Always inlined: a call would be a large part of the cost of an ID.
 */
static pg_attribute_always_inline bool
next_at_once(uint64_t *next)
{
	uint64		now;
	uint64		state;

	if (unlikely(session_node.slot == NULL))
		return false;
	node_slot_prefetch(session_node.slot);
	now = clock_tick();
	if (unlikely(!node_slot_read(session_node.slot, session_node.key, &state)) ||
		unlikely(!generator_increment(&session_node.generator, state, now,
									  allowance_ticks(), next)) ||
		unlikely(!session_tick_is_open(scru64_get_timestamp(*next))))
		return false;
	/* if the ID is ahead of the clock, the node is under load, or the clock went back */
	if (scru64_get_timestamp(*next) != now)
		observe_clock(session_node.slot, now);
	return issue(&state, *next);
}

/* The next ID, if next_at_once() has none: attach, open a tick, wait. */
static pg_noinline uint64
next_slowly(void)
{
	Call		call = {0};
	uint64_t	next;

	while (!next_at_once(&next))
	{
		/* the session can be cancelled, whatever keeps it from getting an ID */
		CHECK_FOR_INTERRUPTS();
		if (session_node.slot == NULL)
			session_attach();
		else if (next_by_rules(&call, &next))
			break;
	}
	return next;
}

/* The next ID of the session's node. */
static pg_attribute_always_inline int64
next_id(void)
{
	uint64_t	next;

	if (unlikely(!next_at_once(&next)))
		next = next_slowly();
	return (int64) next;
}

/* scru64_generate() -> scru64: the next ID of the session's node. */
Datum
scru64_generate(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	PG_RETURN_INT64(next_id());
}

/* scru64_generate_in_copy(internal) -> scru64: the same; see generate_support.c. */
Datum
scru64_generate_in_copy(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	PG_RETURN_INT64(next_id());
}

/*
 * scru64_generate(count integer) -> setof scru64
 *
 * The next IDs in order, as many as count; other sessions may get IDs in between.  Raises
 * 22023 if count is negative.
 */
Datum
scru64_generate_count(PG_FUNCTION_ARGS)
{
	FuncCallContext *funcctx;

	if (SRF_IS_FIRSTCALL())
	{
		int32		count = PG_GETARG_INT32(0);

		if (count < 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("count must not be negative"),
					 errdetail("The count is %d.", count),
					 errhint("Ask for 0 or more IDs.")));
		funcctx = SRF_FIRSTCALL_INIT();
		funcctx->max_calls = (uint64) count;
	}

	funcctx = SRF_PERCALL_SETUP();
	if (funcctx->call_cntr < funcctx->max_calls)
		SRF_RETURN_NEXT(funcctx, Int64GetDatum(next_id()));
	SRF_RETURN_DONE(funcctx);
}
