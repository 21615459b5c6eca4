/*-------------------------------------------------------------------------
 *
 * leased_slot.c
 *		The slot of the node that this server has leased.
 *
 * A part of the shared memory of slots.c, where it says what guards what; as there,
 * nothing raises, allocates or waits while the lock is held.
 *
 * The slot is never evicted and never retired.  Its node starts after the lease's
 * grant, or above the ceiling, and not at the floor: nobody else has issued an ID of
 * its window.
 *
 * Invariants:
 *
 *	- The slot issues no ID of a tick above its limit.
 *
 *	- A node that overlaps a configured one, as scru64.node_spec says, does not get the
 *	  slot, nor does a session attach to one that overlaps a node that had it.
 *
 *	- A node that follows another in the slot, and sessions go on with it, starts at or
 *	  above the tick of all IDs that the other has issued.
 *
 *	- The lease that is kept for the next worker is that of the slot's node, or one that
 *	  no session has had; or there is none.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifndef EXEC_BACKEND
#include <sys/mman.h>
#endif

#include "clock.h"
#include "settings.h"
#include "shmem/leased_slot.h"

/*
 * The lease that a worker leaves to the next one under the same postmaster.
 *
 * When a process crashes, the postmaster ends all others and starts them again without
 * the shared memory of before.  A library that is preloaded has mapped this page in the
 * postmaster, which keeps it, and every process that it forks inherits it.  No other
 * postmaster has it, so no copy of the data directory resumes the lease.  Where the
 * library is not preloaded, or processes are not forked, the lease is kept beside its
 * slot, and a crash takes both.
 */
static KeptLease *mapped_page = NULL;

/* To be called in the postmaster.  Without the page a crash costs the lease. */
void
map_kept_lease(void)
{
#ifndef EXEC_BACKEND
	void	   *page = mmap(NULL, sizeof(KeptLease), PROT_READ | PROT_WRITE,
							MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (page != MAP_FAILED)
		mapped_page = page;
#endif
}

static KeptLease *
kept_lease(void)
{
	return mapped_page != NULL ? mapped_page : &node_slots->kept_lease;
}

/* Keep a lease for the next worker; NULL: none.  Lock held exclusively. */
static void
keep(const HeldLease *lease)
{
	KeptLease  *kept = kept_lease();

	kept->is_whole = false;
	if (lease == NULL)
		return;
	pg_compiler_barrier();
	kept->lease = *lease;
	pg_compiler_barrier();
	kept->is_whole = true;
}

/* The lease that a worker of this postmaster has kept.  False if there is none. */
bool
scru64_leased_recall(HeldLease *lease)
{
	bool		is_whole;

	ensure_slots();
	LWLockAcquire(&node_slots->lock, LW_SHARED);
	*lease = kept_lease()->lease;
	is_whole = kept_lease()->is_whole;
	LWLockRelease(&node_slots->lock);
	return is_whole;
}

/* No worker is to resume the lease, even if a crash has just cleared its slot. */
void
forget_kept_lease(void)
{
	ensure_slots();
	LWLockAcquire(&node_slots->lock, LW_EXCLUSIVE);
	keep(NULL);
	LWLockRelease(&node_slots->lock);
}

/* Does a node share IDs with one that had the slot?  Lock held. */
bool
leased_overlaps(Scru64Node node, NodeReport *conflict)
{
	for (int i = 0; i < LEASED_NODES; i++)
	{
		NodeKey		key = node_slots->was_leased[i];

		if (key != 0 && nodes_overlap(node, node_of_key(key)))
		{
			conflict->node = node_of_key(key);
			conflict->state = NODE_STATE_CHANGING;
			return true;
		}
	}
	return false;
}

/*
 * Evict the lease's node from the slot, if there is one.  Lock held exclusively.  If it
 * is configured later, and had the slot too long ago to be refused, it starts above its
 * last ID.
 */
void
leased_slot_evict(void)
{
	NodeKey		key = pg_atomic_read_u32(&node_slots->leased.key);
	uint64		state;

	if (key == 0)
		return;
	keep(NULL);
	state = slot_evict(&node_slots->leased);
	forget_state(state);
	node_slots->ended_id = last_of_state(node_of_key(key), state);
}

/* Have sessions a scru64.node_spec that shares IDs with this node?  Lock held. */
static bool
is_configured(Scru64Node node)
{
	for (int i = 0; i < NODE_SLOTS + RETIRED_NODES; i++)
	{
		NodeKey		other = i < NODE_SLOTS ?
			pg_atomic_read_u32(&node_slots->slots[i].key) :
			node_slots->retired_keys[i - NODE_SLOTS];

		if (other != 0 && nodes_overlap(node, node_of_key(other)))
			return true;
	}
	return false;
}

/* As clock_tick(), but it does not raise: that is for where the lock is held. */
static uint64
own_clock_tick(void)
{
	return (uint64) Max(clock_ms(), 0) >> SCRU64_TICK_SHIFT;
}

/*
 * Start the lease's node in the slot, which is free.  Lock held exclusively.
 *
 * It begins above the closed tick, also where that is not before the lease's limit: then it
 * has no ID until the lease is renewed for longer.  What is left tells the realm that it has
 * none, so this is within the lease.
 *
 * Ordering: the limit is written before the state, by the barrier of slot_give()
 * (litmus: limit-old-session, limit-new-lease, limit-new-node).
 */
static void
start_leased(const HeldLease *lease, uint64 timestamp)
{
	NodeSlot   *slot = &node_slots->leased;
	NodeKey		key = node_key(lease->node);

	Assert(pg_atomic_read_u32(&slot->key) == 0);
	node_slots->was_leased[node_slots->next_leased] = key;
	node_slots->next_leased = (node_slots->next_leased + 1) % LEASED_NODES;
	pg_atomic_write_u64(&slot->limit, lease->limit_tick);
	(void) slot_start(slot, key, new_start(timestamp), 0);
	slot->left = start_word(timestamp);
	keep(lease);
}

/*
 * The sessions generate IDs of a lease, after the tick timestamp; that of a standby is
 * only kept.  False if its node overlaps one that is configured.
 *
 * now is the later one of this server's clock and the realm's, in ticks, or 0.  If a node that
 * begins after all others were would have no ID before long, a clock was wrong when that tick
 * was entered or closed, and must not leave the server without IDs: that is what a new lease
 * is for.  So IDs and the watermark go back then: *back_from is the tick that they were after,
 * else 0.  Where nobody has asked for the watermark, only IDs are there.
 */
bool
scru64_leased_activate(const HeldLease *lease, uint64 timestamp, uint64 now, uint64 *back_from)
{
	uint64		allowance = allowance_ticks();
	uint64		last;
	bool		is_free;

	ensure_slots();
	*back_from = 0;
	LWLockAcquire(&node_slots->lock, LW_EXCLUSIVE);
	is_free = lease->is_standby_lease || !is_configured(lease->node);
	if (lease->is_standby_lease)
		keep(lease);
	else if (is_free)
	{
		last = Max(node_slots->floor, node_slots->watermark.closed);
		if (now != 0 && generator_hopeless(last, now, allowance))
			*back_from = last;
		if (now != 0 && generator_hopeless(node_slots->watermark.closed, now, allowance))
			restart_watermark(timestamp);
		start_leased(lease, timestamp);
	}
	LWLockRelease(&node_slots->lock);
	return is_free;
}

/*
 * The sessions go on with another lease, whose IDs are all after those of the one that
 * is current; *last_id is the last of that.
 *
 * It has to be of use at once: it must begin no later than the IDs that the sessions may
 * generate now, and last for longer than they may be ahead of the clock.
 */
Replacement
scru64_leased_replace(const HeldLease *lease, uint64 *last_id)
{
	Replacement result = REPLACE_DONE;
	uint64		now = own_clock_tick();
	uint64		allowance = allowance_ticks();
	uint64		last;

	ensure_slots();
	LWLockAcquire(&node_slots->lock, LW_EXCLUSIVE);
	last = node_state_tick(pg_atomic_read_u64(&node_slots->leased.state));
	if (pg_atomic_read_u32(&node_slots->leased.key) == 0)
		result = REPLACE_ENDED;
	else if (is_configured(lease->node))
		result = REPLACE_OVERLAPS;
	else if (Max(last, now) + allowance >= lease->limit_tick)
		result = REPLACE_TOO_SHORT;
	else if (lease->start_tick > Max(last, now + allowance))
		result = REPLACE_AHEAD;
	else
	{
		leased_slot_evict();
		*last_id = node_slots->ended_id;
		start_leased(lease, Max(lease->start_tick, scru64_get_timestamp(*last_id)));
	}
	LWLockRelease(&node_slots->lock);
	return result;
}

/* The lease was renewed, or will not be again.  Its limit never falls. */
void
scru64_leased_update(const HeldLease *lease)
{
	NodeSlot   *slot;
	bool		is_current;

	ensure_slots();
	slot = &node_slots->leased;
	LWLockAcquire(&node_slots->lock, LW_EXCLUSIVE);
	is_current = pg_atomic_read_u32(&slot->key) == node_key(lease->node);
	if (is_current && pg_atomic_read_u64(&slot->limit) < lease->limit_tick)
		pg_atomic_write_u64(&slot->limit, lease->limit_tick);
	if (is_current || lease->is_standby_lease)
		keep(lease);
	LWLockRelease(&node_slots->lock);
}

/*
 * End the lease, if nobody has yet: from here on none of its IDs leaves.  The last ID of
 * the lease that was ended last, or 0 if there was none.
 */
uint64
scru64_leased_end(void)
{
	uint64		last_id;

	ensure_slots();
	LWLockAcquire(&node_slots->lock, LW_EXCLUSIVE);
	leased_slot_evict();
	keep(NULL);
	last_id = node_slots->ended_id;
	LWLockRelease(&node_slots->lock);
	return last_id;
}

/*
 * Is there a lease, or has somebody ended it, by scru64_set_ceiling() for example?
 * Else how its node does.
 */
bool
scru64_leased_look(NodeReport *look)
{
	bool		has_lease;

	ensure_slots();
	LWLockAcquire(&node_slots->lock, LW_SHARED);
	has_lease = slot_report(&node_slots->leased, look);
	LWLockRelease(&node_slots->lock);
	return has_lease;
}
