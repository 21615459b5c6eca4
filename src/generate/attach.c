/*-------------------------------------------------------------------------
 *
 * attach.c
 *		The session's node: find its slot, and open a tick for it; scru64_check().
 *
 * Invariants:
 *
 *	- session_node.slot is NULL, or the slot of session_node.key at the time when it was
 *	  found, after the ceiling was loaded.  If it has been given to another node since,
 *	  it has another key.
 *
 *	- session_node.open_tick was at or below the ceiling that this session may use, and
 *	  within the lease's window, when it was opened.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"

#include "ceiling/ceiling.h"
#include "ceiling/ceiling_page.h"
#include "clock.h"
#include "generate/attach.h"
#include "generate/generate_errors.h"
#include "generate/session.h"
#include "pure/look_ahead.h"
#include "settings.h"
#include "shmem/lease.h"
#include "shmem/leased_slot.h"
#include "shmem/node_slots.h"

PG_FUNCTION_INFO_V1(scru64_check);

/*
 * Has the node reached the previous ID of its spec?  If not, advance it there, or raise
 * the ceiling for that: then find its slot again.
 */
static bool
continue_after_prev(uint32 generation, NodeSlot *slot, uint64 state)
{
	uint64		prev = configured_node.node_prev;
	uint64		tick = Min(scru64_get_timestamp(prev), SCRU64_LAST_TIMESTAMP);

	if (node_state_last(state, &session_node.generator) >= prev)
		return true;
	if (ceiling_durable() < tick)
		ceiling_raise(generation, tick, tick, true);
	else
		(void) node_slot_advance(slot, &state, prev);
	return false;
}

/* The slot of the node that the server has leased. */
static void
attach_leased(void)
{
	LeaseInfo	info;
	bool		has_place;
	NodeSlot   *slot;

	ceiling_load();
	slot = lease_find_slot(&session_node.key, &info, &has_place);
	if (slot == NULL)
		no_lease(&info, has_place);
	session_node.generator = generator_make(node_of_key(session_node.key));
	session_node.slot = slot;
}

/* The slot of the configured node. */
static void
attach_configured(void)
{
	const NodeSpec *spec = &configured_node;
	uint32		generation;
	uint64		now;
	uint64		state;
	NodeSlot   *slot;
	NodeReport	conflict;

	ceiling_load();
	do
	{
		/* other sessions may evict the node again and again */
		CHECK_FOR_INTERRUPTS();
		generation = ceiling_generation();
		now = clock_tick();
		if (generator_hopeless(scru64_get_timestamp(spec->node_prev), now, allowance_ticks()))
			clock_behind(spec->node_prev);
		slot = node_slots_find(spec->node, now, &state, &conflict);
		if (slot == NULL)
			node_overlaps(&conflict);
	} while (!continue_after_prev(generation, slot, state));

	if (!node_state_is_id(state) && node_state_tick(state) > now)
		log_start(state);
	if (*scru64_realm != '\0')
		log_own_node_spec();
	session_node.slot = slot;
}

/*
 * What comes before the slot is looked for.
 *
 * A server that has left recovery never returns to it with a session connected, so the
 * test for it is needed only here.
 */
static void
begin_anew(void)
{
	if (RecoveryInProgress())
		generate_in_recovery();
	check_server_settings();
	/* an error must not leave a slot with another node's key */
	detach_node();
	session_node.open_tick = 0;
	if (!session_node_is_leased())
	{
		session_node.key = node_key(configured_node.node);
		session_node.generator = generator_make(configured_node.node);
	}
	else if (*scru64_realm == '\0')
		node_spec_not_set();
}

/* Find the slot of the session's node. */
pg_noinline void
attach_node(void)
{
	begin_anew();
	if (session_node_is_leased())
		attach_leased();
	else
		attach_configured();
}

/* The state of the leased node, which has to have IDs left. */
static uint64
look_at_leased(uint64 now)
{
	LeaseInfo	info = lease_info();
	NodeReport	look;
	uint64		tick;

	if (!scru64_leased_look(&look))
		no_lease(&info, true);
	session_node.key = node_key(look.node);
	tick = Max(now, look.tick);
	if (tick > node_slot_limit(&node_slots->leased))
		lease_is_over(&info, tick);
	return node_state_tick(look.state) < look.tick ?
		NODE_STATE_NO_ID | scru64_compose(look.tick - 1, 0) : look.state;
}

/* The state of the configured node, or the one with which it would begin. */
static uint64
look_at_configured(uint64 now)
{
	uint64		prev = configured_node.node_prev;
	uint64		ceiling;
	NodeReport	look;

	if (!node_slots_look(configured_node.node, now, &look))
		node_overlaps(&look);
	if (ceiling_generation() == 0 && ceiling_page_look(&ceiling, true))
		look.state = NODE_STATE_NO_ID | scru64_compose(ceiling, 0);
	return scru64_get_timestamp(prev) > node_state_tick(look.state) ? prev : look.state;
}

/*
 * scru64_check() -> void
 *
 * Raise the error that scru64_generate() would raise here, as far as it can be known
 * without a change: no slot is given or taken, no ceiling is raised, no lease is waited for.
 */
Datum
scru64_check(PG_FUNCTION_ARGS)
{
	uint64		now = clock_tick();
	uint64		state;

	(void) fcinfo;
	begin_anew();
	state = session_node_is_leased() ? look_at_leased(now) : look_at_configured(now);
	if (generator_hopeless(node_state_tick(state), now, allowance_ticks()))
		clock_behind(state);
	PG_RETURN_VOID();
}

/*
 * Open a tick for the session: raise the ceiling, wait for standbys or for the lease.
 * False if it is not open yet: look at the node again.
 *
 *	generation	ceiling_generation(), read before all else
 *	now			the clock by which the call goes
 *	overflow	is the tick before it full?
 *	raised		set if the session has waited for the ceiling
 */
bool
open_tick(uint32 generation, uint64 tick, uint64 now, bool overflow, bool *raised)
{
	NodeSlot   *slot = session_node.slot;
	LookAhead	asked = {
		.tick = tick,
		.now = now,
		.allowance = allowance_ticks(),
		.durable = ceiling_durable(),
		.mark = ceiling_mark(),
		.limit = node_slot_limit(slot),
		.overflow = overflow
	};
	uint64_t	target;
	LookAheadVerdict verdict = look_ahead(&asked, &target);
	LeaseInfo	info;

	switch (verdict)
	{
		case LOOK_AHEAD_ENTER:
			break;
		case LOOK_AHEAD_ENTER_AND_RAISE:
			/* a call that goes by the ceiling has waited for one raise already */
			if (now < asked.mark)
				ceiling_raise(generation, asked.durable + 1, target, false);
			break;
		case LOOK_AHEAD_RAISE_FIRST:
		case LOOK_AHEAD_WAIT:
			if (verdict == LOOK_AHEAD_RAISE_FIRST)
				ceiling_raise(generation, tick, target, true);
			ceiling_wait_for_standbys(generation, tick);
			if (tick > ceiling_mark())
				return false;
			*raised = true;
			break;
		case LOOK_AHEAD_PAST_LIMIT:
			if (!lease_wait_for_renewal(slot, session_node.key, tick, &info))
				lease_is_over(&info, tick);
			return false;
	}
	session_node.open_tick = tick;
	session_node.open_level = synchronous_commit;
	return true;
}
