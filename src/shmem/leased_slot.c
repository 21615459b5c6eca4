/*-------------------------------------------------------------------------
 *
 * leased_slot.c
 *		The node that this server has leased: its slot, and the lease.
 *
 * The slot, the node's place in shared memory, is one of slots.c, and guarded as slots.c says.
 * Nothing raises an error, allocates or waits while the lock is held, which guards Leased, too.
 *
 * The leased node never loses the slot to a configured node, one that scru64.node_spec names.
 * The node starts after the tick of the lease's grant, and if possible above the IDs of the lease
 * before; after recovery, above the ceiling, too.  The node need not start above the floor, as
 * configured nodes do, because no other server issues the node's IDs in the time of the lease.
 *
 * Beside the slot, a worker saves its lease for the next worker, which resumes the lease if
 * the first one has failed.  A crash of a process clears both: the postmaster then ends all
 * processes, and starts them again with new shared memory.  Nor has a server that was started
 * from a copy of the data directory the saved lease.
 *
 * Invariants:
 *
 *	- The leased node issues no ID of a tick above the slot's limit, the end of the lease.
 *
 *	- A node gets the slot only if no configured node that has a slot or is parked overlaps
 *	  it.  No session attaches to a configured node that overlaps one of the last
 *	  LEASED_NODES nodes of the slot.
 *
 *	- When scru64_leased_replace() gives the slot to the next lease's node, the node starts
 *	  above the tick of every ID of the lease before.  So does a node that gets the slot later,
 *	  by scru64_leased_activate(), unless generator_start_after() says that the node cannot.
 *
 *	- The saved lease is that of the slot's node; or a standby's lease, which no session has
 *	  used; or there is none.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "clock.h"
#include "pure/generator.h"
#include "settings.h"
#include "shmem/leased_slot.h"

/* Guarded by NodeSlots.lock */
typedef struct Leased
{
	int			next_node;		/* the entry for the next node, in nodes */
	NodeKey		nodes[LEASED_NODES];	/* 0: free */
	uint64		evicted_id;		/* the last ID of the leased node evicted last */
	HeldLease	saved_lease;	/* for the next worker */
} Leased;

static Leased *leased = NULL;

const SharedPart leased_part = {
	.size = sizeof(Leased),
	.part = (void **) &leased
};

/* Save a lease for the next worker; NULL: save none.  Lock held exclusively. */
static void
save_lease(const HeldLease *lease)
{
	static const HeldLease none = {0};

	Assert(LWLockHeldByMeInMode(&node_slots->lock, LW_EXCLUSIVE));
	leased->saved_lease = lease != NULL ? *lease : none;
}

/* The lease that the worker before has saved, to be resumed.  Returns false if there is none. */
bool
scru64_leased_resume(HeldLease *lease)
{
	shared_parts_attach();
	LWLockAcquire(&node_slots->lock, LW_SHARED);
	*lease = leased->saved_lease;
	LWLockRelease(&node_slots->lock);
	return lease->lease_id[0] != '\0';
}

/* Does one of the last nodes of the slot, *conflict, overlap a node?  Lock held. */
bool
leased_overlaps(Scru64Node node, NodeReport *conflict)
{
	for (int i = 0; i < LEASED_NODES; i++)
	{
		NodeKey		key = leased->nodes[i];

		if (key != 0 && nodes_overlap(node, node_of_key(key)))
		{
			*conflict = (NodeReport) {.node = node_of_key(key), .is_leased = true};
			return true;
		}
	}
	return false;
}

/*
 * Evict the leased node, if there is one.  Lock held exclusively.  The floor rises to the
 * node's last ID: if the node is configured one day, when Leased.nodes has lost the node, the
 * node starts above that ID.
 */
void
leased_evict(void)
{
	NodeKey		key = pg_atomic_read_u32(&node_slots->leased.key);
	uint64		state;

	if (key == 0)
		return;
	save_lease(NULL);
	state = slot_evict(&node_slots->leased);
	slots_raise_floor(state);
	leased->evicted_id = slots_last_id(node_of_key(key), state);
}

/* Have the leased node, if there is one, start above the closed tick.  Lock held exclusively. */
void
leased_restart(void)
{
	NodeSlot   *slot = &node_slots->leased;
	NodeKey		key = pg_atomic_read_u32(&slot->key);

	if (key != 0)
		slot_give(slot, key, slot_evict(slot));
}

/* Does a configured node that has a slot or is parked overlap this node?  Lock held. */
static bool
overlaps_configured(Scru64Node node)
{
	for (int i = 0; i < NODE_SLOTS + PARKED_NODES; i++)
	{
		NodeKey		other = i < NODE_SLOTS ?
			pg_atomic_read_u32(&node_slots->slots[i].key) :
			node_slots->parked_keys[i - NODE_SLOTS];

		if (other != 0 && nodes_overlap(node, node_of_key(other)))
			return true;
	}
	return false;
}

/*
 * Start the lease's node in the slot, which is free.  Lock held exclusively.
 *
 * The node starts above the closed tick even if that is at or past the lease's limit; then the
 * node issues no ID until a renewal moves the limit.  NodeSlot.progress begins with timestamp,
 * inside the lease, because progress is reported to the realm.
 *
 * Ordering: the limit is written after slot_evict() (mutant: limit-before-eviction), and before
 * the state, by the barrier of slot_give() (mutants: limit-late, barrier-after-state).
 */
static void
start_leased(const HeldLease *lease, uint64 timestamp)
{
	NodeSlot   *slot = &node_slots->leased;
	NodeKey		key = node_key(lease->node);

	Assert(pg_atomic_read_u32(&slot->key) == 0);
	leased->nodes[leased->next_node] = key;
	leased->next_node = (leased->next_node + 1) % LEASED_NODES;
	pg_atomic_write_u64(&slot->limit, lease->limit_tick);
	(void) slot_start(slot, key, slots_start_above_closed(timestamp), 0);
	slot->progress = slots_make_start(timestamp);
	save_lease(lease);
}

/*
 * The tick of the last ID of the leased node evicted last.  Lock held.  The eviction has raised the
 * floor to this tick; a floor that is lower was set by scru64_set_ceiling() since, and counts.
 */
static uint64
last_leased_tick(void)
{
	return Min(scru64_get_timestamp(leased->evicted_id), node_slots->floor);
}

/*
 * Activate a new lease: let sessions generate its IDs, if possible above the tick of the last ID
 * of the lease before.  Returns false if the lease's node overlaps a configured node.
 *
 * now is the later of this server's clock and the realm's, in ticks.  If the floor or the
 * closed tick is too far ahead of now to start there, a clock was wrong when that tick was
 * entered or closed.  A new lease is the chance to recover: IDs go back, and *back_from is the
 * tick from which they go back; otherwise *back_from is 0.  The watermark goes back, too, if
 * the closed tick itself is too far ahead.
 */
bool
scru64_leased_activate(const HeldLease *lease, uint64 now, uint64 *back_from)
{
	uint64		allowance = allowance_ticks();
	uint64		last;
	bool		is_free;

	shared_parts_attach();
	*back_from = 0;
	LWLockAcquire(&node_slots->lock, LW_EXCLUSIVE);
	is_free = !overlaps_configured(lease->node);
	if (is_free)
	{
		last = Max(node_slots->floor, node_slots->watermark.closed_tick);
		if (generator_too_far_ahead(last, now, allowance))
			*back_from = last;
		if (generator_too_far_ahead(node_slots->watermark.closed_tick, now, allowance))
			slots_restart_watermark(lease->start_tick);
		start_leased(lease, generator_start_after(lease->start_tick, lease->limit_tick,
												  last_leased_tick(), now, allowance));
	}
	LWLockRelease(&node_slots->lock);
	return is_free;
}

/*
 * Activate a standby's lease when recovery has ended: let sessions generate its IDs, above the
 * tick timestamp, which is in the lease's window.  Returns false if the lease's node overlaps a
 * configured node.
 */
bool
scru64_leased_activate_above(const HeldLease *lease, uint64 timestamp)
{
	bool		is_free;

	shared_parts_attach();
	LWLockAcquire(&node_slots->lock, LW_EXCLUSIVE);
	is_free = !overlaps_configured(lease->node);
	if (is_free)
		start_leased(lease, timestamp);
	LWLockRelease(&node_slots->lock);
	return is_free;
}

/*
 * Replace the current lease by the next one: sessions generate the next lease's IDs, all
 * above *last_id, the last ID of the current lease.
 *
 * The next lease must be usable at once: it must begin no later than the IDs that sessions
 * may generate now, and end later than the allowance after the last ID and the clock.
 */
Replacement
scru64_leased_replace(const HeldLease *lease, uint64 *last_id)
{
	Replacement result = REPLACE_DONE;
	uint64		now = (uint64) Max(clock_ms(), 0) >> SCRU64_TICK_SHIFT;
	uint64		allowance = allowance_ticks();
	uint64		last;

	shared_parts_attach();
	LWLockAcquire(&node_slots->lock, LW_EXCLUSIVE);
	last = node_state_tick(pg_atomic_read_u64(&node_slots->leased.state));
	if (pg_atomic_read_u32(&node_slots->leased.key) == 0)
		result = REPLACE_EVICTED;
	else if (overlaps_configured(lease->node))
		result = REPLACE_OVERLAPS;
	else if (Max(last, now) + allowance >= lease->limit_tick)
		result = REPLACE_TOO_SHORT;
	else if (lease->start_tick > Max(last, now + allowance))
		result = REPLACE_AHEAD;
	else
	{
		leased_evict();
		*last_id = leased->evicted_id;
		start_leased(lease, Max(lease->start_tick, scru64_get_timestamp(*last_id)));
	}
	LWLockRelease(&node_slots->lock);
	return result;
}

/*
 * Update the slot and the saved lease after an attempt to renew, or save the lease that a standby
 * has just acquired.  The limit never falls.
 */
void
scru64_leased_update(const HeldLease *lease)
{
	NodeSlot   *slot;
	bool		is_current;

	shared_parts_attach();
	slot = &node_slots->leased;
	LWLockAcquire(&node_slots->lock, LW_EXCLUSIVE);
	is_current = pg_atomic_read_u32(&slot->key) == node_key(lease->node);
	if (is_current && pg_atomic_read_u64(&slot->limit) < lease->limit_tick)
		pg_atomic_write_u64(&slot->limit, lease->limit_tick);
	if (is_current || lease->is_standby_lease)
		save_lease(lease);
	LWLockRelease(&node_slots->lock);
}

/*
 * Evict the leased node, if there is one, and save no lease: from here on sessions generate no
 * ID of the lease.  Returns the last ID of the node that was evicted last, or 0 if none was.
 */
uint64
scru64_leased_evict(void)
{
	uint64		last_id;

	shared_parts_attach();
	LWLockAcquire(&node_slots->lock, LW_EXCLUSIVE);
	leased_evict();
	save_lease(NULL);
	last_id = leased->evicted_id;
	LWLockRelease(&node_slots->lock);
	return last_id;
}

/* Report the leased node.  Returns false if there is none, as after scru64_set_ceiling(). */
bool
scru64_leased_report(NodeReport *report)
{
	bool		has_lease;

	shared_parts_attach();
	LWLockAcquire(&node_slots->lock, LW_SHARED);
	has_lease = slot_report(&node_slots->leased, report);
	LWLockRelease(&node_slots->lock);
	return has_lease;
}
