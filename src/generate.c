/*-------------------------------------------------------------------------
 *
 * generate.c
 *		scru64_generate(): the next ID of the session's node.
 *
 * Upper storey: brings together the session's node (settings.c), the clock, the
 * transition (generator.c), the shared slots and the ceiling, and turns their
 * verdicts into waits and errors.
 *
 * Invariants:
 *
 *	- An ID is returned only after it, or a later one of its tick, was written to its
 *	  node's slot by a compare-and-swap from the state that it was computed from.
 *	- A tick is entered only after it was found to be at or below the ceiling,
 *	  and before its state can be another one.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "pg_compat.h"

#include "common/pg_prng.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "tcop/utility.h"
#include "utils/tuplestore.h"

#include "ceiling.h"
#include "clock.h"
#include "generate_errors.h"
#include "lease.h"
#include "node_slots.h"
#include "settings.h"

/* How far the ceiling is put ahead of the clock, in ticks: about four seconds. */
#define CEILING_TICKS		16

/* Who comes within this fraction of that raises it before others have to wait. */
#define CEILING_EARLY		4

PG_FUNCTION_INFO_V1(scru64_generate);
PG_FUNCTION_INFO_V1(scru64_generate_count);

/*
 * See to it that the node has reached the previous ID of its spec.  False if its
 * slot has to be looked for again.
 */
static bool
continue_after_prev(NodeSlot *slot, uint64 state)
{
	const NodeSpec *spec = &session_node.spec;
	uint64		tick = scru64_get_timestamp(spec->node_prev);

	if (node_state_last(state, &session_node.generator) >= spec->node_prev)
		return true;
	if (ceiling_durable() < tick)
		(void) ceiling_raise(slot, session_node.key, state, tick, true);
	else
		(void) node_slot_advance(slot, &state, spec->node_prev);
	return false;
}

/*
 * Advance the node to an ID, and to the end of the block that the session takes with
 * it.  False if another session was faster.
 */
static inline bool
take(uint64 *state, uint64 next)
{
	uint64		end = next;

	if (unlikely(scru64_cache > 1))
		end = generator_block_end(&session_node.generator, next, (uint32) scru64_cache);
	if (!node_slot_advance(session_node.slot, state, end))
		return false;
	if (unlikely(end != next))
	{
		session_node.block_last = next;
		session_node.block_end = end;
	}
	return true;
}

/*
 * The next ID of those that the session has taken.  False if there is none, or they
 * are of a tick that is over, too far ahead of the clock, or of a slot that was taken
 * from the node since: then they are lost.
 */
static bool
next_of_block(uint64 now, uint64 *next)
{
	if (session_node.block_last < session_node.block_end &&
		node_slot_life(session_node.slot) == session_node.life &&
		generator_increment(&session_node.generator, session_node.block_last, now,
							allowance_ticks(), next))
	{
		session_node.block_last = *next;
		return true;
	}
	drop_block();
	session_node.life = node_slot_life(session_node.slot);
	return false;
}

/*
 * Find the slot of the session's node.
 *
 * A session that has a slot has passed the test for recovery, which never
 * comes back in the life of a session.
 */
static pg_noinline void
attach(void)
{
	const NodeSpec *spec = &session_node.spec;
	uint64		now = clock_tick();
	uint64		allowance = allowance_ticks();
	uint64		state;
	NodeSlot   *slot;
	NodeReport	obstacle;
	LeaseInfo	info;
	bool		has_place;

	PreventCommandDuringRecovery("scru64_generate()");
	drop_block();
	if (spec->node.node_id_size == 0)
	{
		if (*scru64_realm == '\0')
			node_spec_not_set();
		/* an error must not leave a slot with another node's key */
		session_node.slot = NULL;
		ceiling_load(now, allowance);
		slot = lease_find_slot(&session_node.key, &state, &info, &has_place);
		if (slot == NULL)
			no_lease(&info, has_place);
		session_node.generator = generator_make(node_of_key(session_node.key));
		session_node.slot = slot;
		return;
	}
	if (generator_hopeless(scru64_get_timestamp(spec->node_prev), now, allowance))
		clock_behind(spec->node_prev);

	ceiling_load(now, allowance);
	do
	{
		/* another session may take the slot away again and again */
		CHECK_FOR_INTERRUPTS();
		slot = node_slots_find(spec->node, now, allowance, &state, &obstacle);
		if (slot == NULL)
			node_overlaps(&obstacle);
	} while (!continue_after_prev(slot, state));

	if (!node_state_is_id(state) && node_state_tick(state) > now)
		log_start(slot, state);
	session_node.slot = slot;
}

/*
 * How far the ceiling is put ahead of the clock, in ticks.
 *
 * A node that overflows goes on to do so, up to the allowance: have the ceiling
 * there, so that a raise is as rare under load.  But no farther than a restart,
 * which starts above the ceiling, can go without waiting.
 */
static uint64
ceiling_ahead(uint64 allowance, bool overflow)
{
	if (allowance == 0)
		return 0;
	return overflow ? allowance - 1 : Min(CEILING_TICKS, allowance - 1);
}

/*
 * May IDs of this tick be given out?  If not, see to it that they soon may, and
 * return false: the state may be another one by then.  Also if they may, but the
 * ceiling is near: then one session raises it, while the others go on.
 */
static bool
is_below_ceiling(uint64 state, uint64 tick, uint64 now, bool overflow)
{
	uint64		ahead = ceiling_ahead(allowance_ticks(), overflow);
	uint64		target = Min(Max(tick, now + ahead), SCRU64_LAST_TIMESTAMP);
	uint64		durable = ceiling_durable();
	bool		early = tick <= durable;
	LeaseInfo	info;

	/*
	 * Ordering: the limit is read after the state and the key, and within one life
	 * of a slot it never falls.
	 */
	pg_read_barrier();
	if (tick > pg_atomic_read_u64(&session_node.slot->limit))
	{
		if (!lease_wait_for_renewal(session_node.slot, session_node.key, tick, &info))
			lease_is_over(&info, tick);
		return false;
	}

	if (early && (durable >= target || durable - tick >= ahead / CEILING_EARLY))
		return true;
	return !ceiling_raise(session_node.slot, session_node.key, state, target,
						  !early);
}

/*
 * Keep the clock as this node's sessions have last seen it, in ticks, and notice
 * when it goes back.
 */
static void
observe_clock(NodeSlot *slot, uint64 now)
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
			node_slot_count(slot, NODE_ROLLBACKS);
			log_rollback(slot, seen, now);
		}
	}
}

/* Has the node given out the last ID of a tick? */
static bool
is_full(uint64 state)
{
	uint64		max_counter = session_node.generator.max_counter;

	return node_state_is_id(state) && (state & max_counter) == max_counter;
}

/*
 * The allowance of the next ID, in ticks.
 *
 * A restart begins one tick above the ceiling.  So that it need not wait for the
 * clock even then, an overflow does not take the last tick of the allowance.
 */
static uint64
allowance_of_state(uint64 state)
{
	uint64		allowance = allowance_ticks();

	if (is_full(state))
		return allowance > 0 ? allowance - 1 : 0;
	return allowance;
}

/*
 * All that generator_increment() does not do.  False if there is nothing to
 * advance to yet: read the state anew.
 */
static pg_noinline bool
next_by_rules(uint64 *state, uint64 now, bool *waited, uint64 *next)
{
	NodeSlot   *slot = session_node.slot;
	uint64		allowance;
	uint64		last;
	bool		overflow;
	GeneratorVerdict verdict;

	/* whatever keeps a session from getting an ID, it can be cancelled */
	CHECK_FOR_INTERRUPTS();

	if (*state == NODE_STATE_CHANGING)
	{
		attach();
		return false;
	}

	observe_clock(slot, now);
	allowance = allowance_of_state(*state);
	last = node_state_last(*state, &session_node.generator);
	verdict = generator_next(&session_node.generator, last, now, allowance,
							 pg_prng_uint32(&pg_global_prng_state), next);
	switch (verdict)
	{
		case GENERATOR_NEXT:
		case GENERATOR_NEXT_BY_OVERFLOW:
			/* a start only reads like a full counter */
			overflow = verdict == GENERATOR_NEXT_BY_OVERFLOW &&
				node_state_is_id(*state);
			if (!is_below_ceiling(*state, scru64_get_timestamp(*next), now,
								  overflow) ||
				!take(state, *next))
				return false;
			if (overflow)
				node_slot_count(slot, NODE_OVERFLOWS);
			if (scru64_get_timestamp(*next) != scru64_get_timestamp(last))
				node_slot_count_used(slot, last, *next);
			return true;
		case GENERATOR_WAIT:
			if (!*waited)
			{
				node_slot_count(slot, NODE_WAITS);
				if (is_full(*state))
					node_slot_count(slot, NODE_SATURATED);
				log_wait(slot, *state);
				/* a larger node may help */
				if (session_node.spec.node.node_id_size == 0)
					lease_wake_worker(false);
			}
			*waited = true;
			clock_wait(generator_due(&session_node.generator, last, allowance));
			return false;
		case GENERATOR_CLOCK_BEHIND:
			/* a new lease may help */
			if (session_node.spec.node.node_id_size == 0)
				lease_wake_worker(true);
			clock_behind(*state);
		case GENERATOR_EXHAUSTED:
			clock_out_of_range();
	}
	pg_unreachable();
}

/*
 * The next ID of the session's node.
 *
 * The clock is read before the state, so that little time passes, in which
 * another session could be faster, between reading and advancing it.  If one
 * was, and has read a later clock, then the state reads as ahead of the clock
 * here: the case that is provided for anyway.
 *
 * Inlined by order: compilers need not where there are several callers, and the call
 * would be a large part of what an ID costs.
 */
static pg_attribute_always_inline uint64
next_id(void)
{
	bool		waited = false;

	for (;;)
	{
		uint64		now = clock_tick();
		uint64		state;
		uint64		next;

		if (unlikely(session_node.slot == NULL))
		{
			attach();
			continue;
		}
		if (unlikely(scru64_cache > 1) && next_of_block(now, &next))
			return next;
		if (unlikely(!node_slot_read(session_node.slot, session_node.key, &state)))
		{
			attach();
			continue;
		}

		if (likely(generator_increment(&session_node.generator, state, now,
									   allowance_ticks(), &next)))
		{
			/* ahead of the clock, by load or because the clock went back */
			if (scru64_get_timestamp(next) != now)
				observe_clock(session_node.slot, now);
			if (likely(take(&state, next)))
				return next;
		}
		else if (next_by_rules(&state, now, &waited, &next))
			return next;
	}
}

/* scru64_generate() -> scru64: the next ID of the session's node. */
Datum
scru64_generate(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	PG_RETURN_INT64((int64) next_id());
}

static int32
checked_count(int32 count)
{
	if (count < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("count must not be negative"),
				 errdetail("The count is %d.", count),
				 errhint("Ask for 0 or more IDs.")));
	return count;
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
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	FuncCallContext *funcctx;

	/* in FROM, where they are kept until they are read */
	if (rsinfo != NULL && IsA(rsinfo, ReturnSetInfo) &&
		(rsinfo->allowedModes & SFRM_Materialize_Preferred))
	{
		int32		count = checked_count(PG_GETARG_INT32(0));

		InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
		for (int32 i = 0; i < count; i++)
		{
			Datum		id = Int64GetDatum((int64) next_id());
			bool		isnull = false;

			CHECK_FOR_INTERRUPTS();
			tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, &id, &isnull);
		}
		return (Datum) 0;
	}

	if (SRF_IS_FIRSTCALL())
	{
		int32		count = checked_count(PG_GETARG_INT32(0));

		funcctx = SRF_FIRSTCALL_INIT();
		funcctx->max_calls = (uint64) count;
	}

	funcctx = SRF_PERCALL_SETUP();
	if (funcctx->call_cntr < funcctx->max_calls)
		SRF_RETURN_NEXT(funcctx, Int64GetDatum((int64) next_id()));
	SRF_RETURN_DONE(funcctx);
}
