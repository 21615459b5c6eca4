/*-------------------------------------------------------------------------
 *
 * generate.c
 *		scru64_generate(): the next ID of the session's node.
 *
 * Brings together the session's node (session.c), the clock, the transition
 * (generator.c), the shared slots and the ceiling, and turns their verdicts into
 * waits and errors.
 *
 * Invariants:
 *
 *	- An ID is returned only after it was written to its node's slot by a
 *	  compare-and-swap from the state that it was computed from.
 *	- An ID is of a tick that is open to this session (attach.c), whichever session has
 *	  entered it.  The session tests this after it has read the node's state, and before
 *	  the compare-and-swap.
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
#include "generate/attach.h"
#include "generate/generate_errors.h"
#include "generate/session.h"
#include "pure/look_ahead.h"
#include "settings.h"
#include "shmem/lease.h"
#include "shmem/writers.h"

PG_FUNCTION_INFO_V1(scru64_generate);
PG_FUNCTION_INFO_V1(scru64_generate_count);

/* What a call has waited for, so far. */
typedef struct Call
{
	bool		waited;			/* for the clock, for this ID */
	bool		raised;			/* for the ceiling to be raised */
} Call;

/* Advance the node to an ID.  False if another session was faster. */
static inline bool
issue(uint64 *state, uint64 next)
{
	about_to_issue(next);
	return node_slot_advance(session_node.slot, state, next);
}

/* Keep the clock as the node's sessions have last seen it, and notice when it goes back. */
static void
observe_clock(NodeSlot *slot, uint64 now)
{
	uint64		seen = pg_atomic_read_u64(&slot->clock);

	if (now > seen)
		pg_atomic_compare_exchange_u64(&slot->clock, &seen, now);
	else if (now < seen)
	{
		/*
		 * Another session may have read the clock after this one, and written it
		 * before.  Read again, the clock is behind that only if it went back.
		 */
		pg_read_barrier();
		now = clock_tick();
		if (now < seen &&
			pg_atomic_compare_exchange_u64(&slot->clock, &seen, now))
		{
			node_slot_count(slot, NODE_ROLLBACKS);
			log_rollback(seen, now);
		}
	}
}

/* Has the node issued the last ID of a tick?  A start only reads as if it had. */
static bool
is_full(uint64 state)
{
	uint64		max_counter = session_node.generator.max_counter;

	return node_state_is_id(state) && (state & max_counter) == max_counter;
}

/* Advance the node to an ID of a tick that it enters.  False: look at the node again. */
static bool
enter_tick(uint32 generation, uint64 *state, uint64 last, uint64 next, uint64 now,
		   bool overflow, Call *call)
{
	NodeSlot   *slot = session_node.slot;

	if (!open_tick(generation, scru64_get_timestamp(next), now, overflow, &call->raised) ||
		!issue(state, next))
		return false;
	if (overflow)
		node_slot_count(slot, NODE_OVERFLOWS);
	if (scru64_get_timestamp(next) != scru64_get_timestamp(last))
		node_slot_count_used(slot, last, next);
	return true;
}

/* Wait until the clock has reached a tick, or for a moment. */
static void
wait_for_clock(uint64 state, bool full, uint64 due, Call *call)
{
	NodeSlot   *slot = session_node.slot;

	if (!call->waited)
	{
		node_slot_count(slot, NODE_WAITS);
		if (full)
			node_slot_count(slot, NODE_SATURATED);
		log_wait(state);
		/* a larger node may help */
		if (session_node_is_leased())
			(void) lease_call_worker(false);
	}
	call->waited = true;
	clock_wait(due);
}

/*
 * The clock by which a call goes on.
 *
 * A raise may take longer than it reaches ahead.  The session that has waited for it then
 * finds the clock above the ceiling again, and if it went by the clock, it would raise
 * the ceiling for ever.  So it goes by the ceiling.
 */
static uint64
clock_of_call(const Call *call)
{
	uint64		now = clock_tick();

	return call->raised ? least_of(now, ceiling_mark()) : now;
}

/*
 * All that generator_increment() does not do.  False if there is no ID yet: look at the
 * node again.
 */
static bool
next_by_rules(Call *call, uint64_t *next)
{
	const Generator *generator = &session_node.generator;
	uint32		generation = ceiling_generation();
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
		attach_node();
		return false;
	}
	observe_clock(session_node.slot, now);
	full = is_full(state);
	if (full)
		allowance = look_ahead_most(allowance);
	last = node_state_last(state, generator);
	verdict = generator_next(generator, last, now, allowance,
							 pg_prng_uint32(&pg_global_prng_state), next);
	if (verdict == GENERATOR_NEXT || verdict == GENERATOR_NEXT_BY_OVERFLOW)
		return enter_tick(generation, &state, last, *next, now,
						  full && verdict == GENERATOR_NEXT_BY_OVERFLOW, call);
	if (call->raised)
		call->raised = false;	/* then by the clock */
	else if (verdict == GENERATOR_WAIT)
		wait_for_clock(state, full, generator_due(generator, last, allowance), call);
	else if (verdict == GENERATOR_EXHAUSTED)
		clock_out_of_range();
	else
	{
		/* a new lease may help */
		if (session_node_is_leased())
			(void) lease_call_worker(true);
		clock_behind(state);
	}
	return false;
}

/*
 * The next ID, if it is another one of a tick that is open.  False if there is more to
 * do, or another session was faster.
 *
 * The clock is read before the state, so that another session has little time to advance
 * the state between read and compare-and-swap.  Another session that has read a later
 * clock may advance it before the read: then the state is ahead of the clock, as under
 * load.
 *
 * Always inlined: the call would be a large part of the cost of an ID.
 */
static pg_attribute_always_inline bool
next_at_once(uint64_t *next)
{
	uint64		now = clock_tick();
	uint64		state;

	if (unlikely(session_node.slot == NULL))
		return false;
	if (unlikely(!node_slot_read(session_node.slot, session_node.key, &state)) ||
		unlikely(!generator_increment(&session_node.generator, state, now,
									  allowance_ticks(), next)) ||
		unlikely(!tick_is_open(scru64_get_timestamp(*next))))
		return false;
	/* ahead of the clock, by load or because the clock went back */
	if (scru64_get_timestamp(*next) != now)
		observe_clock(session_node.slot, now);
	return issue(&state, *next);
}

/* The next ID, whatever it takes. */
static pg_noinline uint64
next_after_all(Call *call)
{
	uint64_t	next;

	call->waited = false;
	while (!next_at_once(&next))
	{
		/* whatever keeps a session from getting an ID, it can be cancelled */
		CHECK_FOR_INTERRUPTS();
		if (session_node.slot == NULL)
			attach_node();
		else if (next_by_rules(call, &next))
			break;
	}
	return next;
}

/* The next ID of the session's node. */
static pg_attribute_always_inline int64
next_id(Call *call)
{
	uint64_t	next;

	if (unlikely(!next_at_once(&next)))
		next = next_after_all(call);
	return (int64) next;
}

/* scru64_generate() -> scru64: the next ID of the session's node. */
Datum
scru64_generate(PG_FUNCTION_ARGS)
{
	Call		call = {0};

	(void) fcinfo;
	PG_RETURN_INT64(next_id(&call));
}

/*
 * scru64_generate(count integer) -> setof scru64
 *
 * The next count IDs in order; other sessions may have IDs in between.  22023
 * if count is negative.
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
	{
		/* one of its own for each: a cursor may rest between them */
		Call		call = {0};

		SRF_RETURN_NEXT(funcctx, Int64GetDatum(next_id(&call)));
	}
	SRF_RETURN_DONE(funcctx);
}
