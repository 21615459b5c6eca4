/*-------------------------------------------------------------------------
 *
 * session_node.c
 *		The node whose IDs this session generates: find its slot, and open ticks for the session;
 *		scru64_check(), which says whether the session could generate an ID without a long wait.
 *
 * A slot is a node's place in shared memory, and its key is the node.  To open a tick is to make
 * sure that the lease reaches the tick, and the ceiling, the last tick whose IDs this server may
 * issue.  If a commit of the session waits for synchronous standbys, they have flushed this
 * ceiling, too.
 *
 * Invariants:
 *
 *	- session_node.slot is NULL, or the slot that the node session_node.key had when the
 *	  session looked it up, after the ceiling was loaded.  If another node has got the slot
 *	  since, the slot has another key.
 *
 *	- session_node.open_tick is 0, or the tick that the session has opened last.  At that
 *	  moment, neither the ceiling nor the slot's limit, the end of the lease, was below it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "ceiling/ceiling.h"
#include "ceiling/ceiling_page.h"
#include "clock.h"
#include "generate/generate_errors.h"
#include "generate/session_node.h"
#include "pure/look_ahead.h"
#include "settings.h"
#include "shmem/leased_slot.h"
#include "shmem/node_slots.h"
#include "shmem/worker_mailbox.h"

/*
 * Ticks of a wait for the clock that scru64_check() reports.  A node that is asked for too many IDs
 * waits again and again, but for less.
 */
#define LONG_CLOCK_WAIT		4

PG_FUNCTION_INFO_V1(scru64_check);

SessionNode session_node;

/* Forget the slot: the next call looks for it again. */
void
session_detach(void)
{
	session_node.slot = NULL;
}

/*
 * Has the node reached the node_prev of its spec?  If not, take a step and return false, to
 * find the slot again: first raise the ceiling to node_prev's tick, then advance the node.
 */
static bool
reach_prev(uint32 incarnation, NodeSlot *slot, uint64 state)
{
	uint64		prev = configured_node.node_prev;
	uint64		tick = Min(scru64_get_timestamp(prev), SCRU64_LAST_TIMESTAMP);

	if (node_state_last(state, &session_node.generator) >= prev)
		return true;
	if (ceiling_durable() < tick)
		ceiling_raise(incarnation, tick, tick, true);
	else
		(void) node_slot_advance(slot, &state, prev);
	return false;
}

/* Find the slot of the leased node. */
static void
attach_leased(void)
{
	LeaseInfo	info;
	bool		has_worker_slot;
	NodeSlot   *slot;

	ceiling_load();
	slot = mailbox_find_slot(&session_node.key, &info, &has_worker_slot);
	if (slot == NULL)
		generate_fail_no_lease(&info, has_worker_slot);
	session_node.generator = generator_make(node_of_key(session_node.key));
	session_node.slot = slot;
}

/* Find the slot of the configured node. */
static void
attach_configured(void)
{
	const NodeSpec *spec = &configured_node;
	uint32		incarnation;
	uint64		now;
	uint64		state;
	NodeSlot   *slot;
	NodeReport	conflict;

	ceiling_load();
	do
	{
		/* other sessions may evict the node again and again */
		CHECK_FOR_INTERRUPTS();
		incarnation = ceiling_incarnation();
		now = clock_tick();
		if (generator_too_far_ahead(scru64_get_timestamp(spec->node_prev), now, allowance_ticks()))
			generate_fail_clock_behind(spec->node_prev);
		slot = node_slots_find(spec->node, now, &state, &conflict);
		if (slot == NULL)
			generate_fail_overlap(&conflict);
	} while (!reach_prev(incarnation, slot, state));

	if (!node_state_is_id(state) && node_state_tick(state) > now)
		generate_log_start(state);
	if (*scru64_realm != '\0')
		generate_log_own_node_spec();
	session_node.slot = slot;
}

/*
 * Prepare to find the slot.
 *
 * Test only here for what does not change in a process: it never becomes a parallel worker,
 * and a server that has left recovery does not return to it.
 */
static void
prepare_to_attach(void)
{
	if (RecoveryInProgress())
		generate_fail_in_recovery();
	if (IsParallelWorker())
		generate_fail_in_parallel_worker();
	settings_check_server();
	/* an error must not leave a slot with another node's key */
	session_detach();
	session_node.open_tick = 0;
	if (!session_is_leased())
	{
		session_node.key = node_key(configured_node.node);
		session_node.generator = generator_make(configured_node.node);
	}
	else if (*scru64_realm == '\0')
		generate_fail_no_node();
}

/* Find the slot of the session's node. */
pg_noinline void
session_attach(void)
{
	prepare_to_attach();
	if (session_is_leased())
		attach_leased();
	else
		attach_configured();
}

/*
 * Set *state to the leased node's last ID or start marker.  If the lease has no ID left, or there is
 * no lease, return false if the next ID would wait for the worker, and raise an error otherwise.
 */
static bool
look_at_leased(uint64 now, uint64 *state)
{
	LeaseInfo	info = mailbox_info();
	NodeReport	report;
	uint64		tick;
	uint64		limit;
	uint64		ceiling;

	if (ceiling_incarnation() == 0)
		(void) ceiling_page_look(&ceiling, true);
	if (!scru64_leased_report(&report))
	{
		if (!mailbox_may_bring_lease(&info))
			generate_fail_no_lease(&info, !info.no_worker_slot);
		return false;
	}
	session_node.key = node_key(report.node);
	session_node.generator = generator_make(report.node);
	tick = Max(now, report.tick);
	limit = node_slot_limit(&node_slots->leased);
	if (tick > limit)
	{
		if (!mailbox_may_renew(&info, limit, tick))
			generate_fail_lease_over(&info, tick);
		return false;
	}
	*state = node_state_tick(report.state) < report.tick ?
		NODE_STATE_NO_ID | scru64_compose(report.tick - 1, 0) : report.state;
	return true;
}

/* The configured node's last ID or start marker, or the start marker that the node would get */
static uint64
look_at_configured(uint64 now)
{
	uint64		prev = configured_node.node_prev;
	uint64		ceiling;
	NodeReport	report;

	if (!node_slots_look(configured_node.node, now, &report))
		generate_fail_overlap(&report);
	if (ceiling_incarnation() == 0 && ceiling_page_look(&ceiling, true))
		report.state = NODE_STATE_NO_ID | scru64_compose(ceiling, 0);
	return scru64_get_timestamp(prev) > node_state_tick(report.state) ? prev : report.state;
}

/* What the next ID would wait for, for a second or more, or NULL */
static char *
look_for_wait(uint64 state, uint64 now)
{
	const Generator *generator = &session_node.generator;
	uint64		last = node_state_last(state, generator);
	uint64		allowance = session_node_is_full(state) ?
		look_ahead_most(allowance_ticks()) : allowance_ticks();
	uint64		due = generator_due(generator, last, allowance);
	uint64_t	next;
	int64		waited_ms;

	switch (generator_next(generator, last, now, allowance, 0, &next))
	{
		case GENERATOR_WAIT:
			if (due - now < LONG_CLOCK_WAIT)
				return NULL;
			return generate_warn_of_clock(state, (due - now) << SCRU64_TICK_SHIFT);
		case GENERATOR_CLOCK_BEHIND:
			generate_fail_clock_behind(state);
		case GENERATOR_EXHAUSTED:
			clock_out_of_range();
		default:
			break;
	}
	switch (ceiling_look_for_wait(scru64_get_timestamp(next), &waited_ms))
	{
		case CEILING_WAIT_FLUSH:
			return generate_warn_of_flush(waited_ms);
		case CEILING_WAIT_STANDBYS:
			return generate_warn_of_standbys(waited_ms);
		case CEILING_WAIT_NONE:
			break;
	}
	return NULL;
}

/*
 * scru64_check() -> text
 *
 * Raise the error that scru64_generate() would raise now, as far as it can be found without
 * a change: this gives and takes no slot, raises no ceiling, and waits for no lease.  Else return
 * what the next ID would wait for, with a warning, or null.
 */
Datum
scru64_check(PG_FUNCTION_ARGS)
{
	uint64		now = clock_tick();
	uint64		state;
	char	   *waits_for;

	(void) fcinfo;
	prepare_to_attach();
	if (!session_is_leased())
		state = look_at_configured(now);
	else if (!look_at_leased(now, &state))
		PG_RETURN_NULL();
	waits_for = look_for_wait(state, now);
	if (waits_for == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(waits_for));
}

/*
 * Open a tick for the session: raise the ceiling, wait for standbys or for the lease.
 * False if the tick is not open yet: read the node's state again.
 *
 *	incarnation	ceiling_incarnation(), read before all else
 *	now			the clock, or the ceiling in its place; see clock_of_call()
 *	overflow	has the node filled the tick that it leaves?
 *	raised		set if the session has waited for a raise, or for standbys
 */
bool
session_open_tick(uint32 incarnation, uint64 tick, uint64 now, bool overflow, bool *raised)
{
	NodeSlot   *slot = session_node.slot;
	LookAhead	request = {
		.tick = tick,
		.now = now,
		.allowance = allowance_ticks(),
		.durable = ceiling_durable(),
		.usable = ceiling_usable(),
		.limit = node_slot_limit(slot),
		.overflow = overflow
	};
	uint64_t	target;
	LookAheadVerdict verdict = look_ahead(&request, &target);
	LeaseInfo	info;

	/* a worker that has failed must be back before the lease ends */
	if (verdict != LOOK_AHEAD_ENTER && session_is_leased())
		(void) mailbox_call_worker(false);
	switch (verdict)
	{
		case LOOK_AHEAD_ENTER:
			break;
		case LOOK_AHEAD_ENTER_AND_RAISE:
			/* a call with the ceiling as its clock has waited for a raise already */
			if (now < request.usable)
				ceiling_raise(incarnation, request.durable + 1, target, false);
			break;
		case LOOK_AHEAD_RAISE_FIRST:
		case LOOK_AHEAD_WAIT:
			if (verdict == LOOK_AHEAD_RAISE_FIRST)
				ceiling_raise(incarnation, tick, target, true);
			ceiling_wait_for_standbys(incarnation, tick);
			if (tick > ceiling_usable())
				return false;
			*raised = true;
			break;
		case LOOK_AHEAD_PAST_LIMIT:
			if (!mailbox_wait_for_renewal(slot, session_node.key, tick, &info))
				generate_fail_lease_over(&info, tick);
			return false;
	}
	session_node.open_tick = tick;
	session_node.open_level = synchronous_commit;
	return true;
}
