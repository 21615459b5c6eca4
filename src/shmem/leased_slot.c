/*-------------------------------------------------------------------------
 *
 * leased_slot.c
 *		The slot of the node that this server has leased.
 *
 * A part of the shared memory of slots.c, where it says what guards what; as there,
 * nothing raises, allocates or waits while the lock is held.
 *
 * The slot is never reclaimed and never retired.  Its node starts after the lease's
 * grant, or above the ceiling, and not at the floor: nobody else has given out
 * anything of its window.
 *
 * Invariants:
 *
 *	- No ID of a tick above the slot's limit is given out.
 *
 *	- A node that overlaps one that sessions have set is not given the slot, nor can
 *	  sessions set one that overlaps a node that had it.
 *
 *	- A node that follows another in the slot starts at or above the tick of all that
 *	  the other has given out, if sessions go on with it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "clock.h"
#include "settings.h"
#include "shmem/leased_slot.h"

/* Does a node share IDs with one that was leased?  Lock held. */
bool
leased_overlaps(Scru64Node node, NodeReport *obstacle)
{
	for (int i = 0; i < LEASED_NODES; i++)
	{
		NodeKey		key = node_slots->was_leased[i];

		if (key == 0 || (key != node_key(node) &&
						 !nodes_overlap(node, node_of_key(key))))
			continue;
		obstacle->node = node_of_key(key);
		obstacle->state = NODE_STATE_CHANGING;
		return true;
	}
	return false;
}

/* Take the slot of the lease from its node, if it has one.  Lock held exclusively. */
void
leased_slot_take(void)
{
	NodeKey		key = pg_atomic_read_u32(&node_slots->leased.key);

	if (key == 0)
		return;
	node_slots->ended_key = key;
	node_slots->ended_state = slot_own_state(&node_slots->leased, slot_take(&node_slots->leased));
}

/* The slot of the server's lease, or NULL while there is none. */
NodeSlot *
leased_slot_find(NodeKey *key, uint64 *state)
{
	ensure_slots();
	LWLockAcquire(&node_slots->lock, LW_SHARED);
	*key = pg_atomic_read_u32(&node_slots->leased.key);
	*state = pg_atomic_read_u64(&node_slots->leased.state);
	LWLockRelease(&node_slots->lock);
	return *key != 0 ? &node_slots->leased : NULL;
}

/* Have sessions set a node that shares IDs with this one?  Lock held. */
static bool
is_set_by_hand(Scru64Node node)
{
	for (int i = 0; i < NODE_SLOTS + RETIRED_NODES; i++)
	{
		NodeKey		other = i < NODE_SLOTS ?
			pg_atomic_read_u32(&node_slots->slots[i].key) :
			node_slots->retired_keys[i - NODE_SLOTS];

		if (other != 0 && (other == node_key(node) || nodes_overlap(node, node_of_key(other))))
			return true;
	}
	return false;
}

/*
 * Would a lease that ends with the tick limit have no ID after this tick, or none before
 * the clock has caught up?  A ceiling that is far ahead must not leave the server without
 * IDs: that is what a new lease is for.  Not clock_tick(), which may raise: lock held.
 */
static bool
is_out_of_reach(uint64 timestamp, uint64 limit)
{
	uint64		now = (uint64) Max(clock_ms(), 0) >> SCRU64_TICK_SHIFT;

	return timestamp >= limit || timestamp > now + allowance_ticks();
}

/*
 * Give the slot of the lease, which is taken, to a node.  Lock held exclusively.
 *
 * Ordering: the limit is written before the state, by the barrier of slot_give()
 * (litmus: limit-old-session, limit-new-lease, limit-new-node).
 */
static void
give_lease(Scru64Node node, uint64 timestamp, uint64 limit)
{
	NodeSlot   *slot = &node_slots->leased;

	Assert(pg_atomic_read_u32(&slot->key) == 0);
	node_slots->was_leased[node_slots->next_leased] = node_key(node);
	node_slots->next_leased = (node_slots->next_leased + 1) % LEASED_NODES;
	pg_atomic_write_u64(&slot->limit, limit);
	if (is_out_of_reach(node_slots->watermark.settled, limit))
		restart_watermark(timestamp);
	(void) slot_start(slot, node_key(node), new_start(timestamp), 0);
}

/*
 * Begin a lease: IDs after the tick timestamp, up to the tick limit.  False if the
 * node shares IDs with one that sessions have set.
 */
bool
scru64_leased_begin(Scru64Node node, uint64 timestamp, uint64 limit)
{
	bool		is_free;

	ensure_slots();
	LWLockAcquire(&node_slots->lock, LW_EXCLUSIVE);
	is_free = !is_set_by_hand(node);
	if (is_free)
		give_lease(node, timestamp, limit);
	LWLockRelease(&node_slots->lock);
	return is_free;
}

/*
 * Have the sessions go on with the node of another lease, whose IDs are all after
 * those of the one that is current; *last_id is the last of that.
 *
 * The node has to be of use at once: its lease must begin no later than what the
 * sessions may give out now, and go on for longer than they may be ahead of the clock.
 *
 *	now			the clock, in ticks
 *	allowance	scru64.rollback_allowance, in ticks
 */
HandOver
scru64_leased_hand_over(Scru64Node node, uint64 timestamp, uint64 limit, uint64 now,
						uint64 allowance, uint64 *last_id)
{
	NodeSlot   *slot;
	HandOver	result = HAND_OVER_DONE;
	NodeKey		key;
	uint64		state;
	uint64		last;

	ensure_slots();
	slot = &node_slots->leased;
	LWLockAcquire(&node_slots->lock, LW_EXCLUSIVE);
	key = pg_atomic_read_u32(&slot->key);
	last = node_state_tick(pg_atomic_read_u64(&slot->state));
	if (key == 0)
		result = HAND_OVER_ENDED;
	else if (is_set_by_hand(node))
		result = HAND_OVER_OVERLAPS;
	else if (Max(last, now) + allowance >= limit)
		result = HAND_OVER_TOO_SHORT;
	else if (timestamp > Max(last, now + allowance))
		result = HAND_OVER_AHEAD;
	else
	{
		state = slot_own_state(slot, slot_take(slot));
		forget_state(state);
		*last_id = last_of_state(node_of_key(key), state);
		give_lease(node, Max(timestamp, node_state_tick(state)), limit);
	}
	LWLockRelease(&node_slots->lock);
	return result;
}

/* Raise the limit of the lease, if it is of this node. */
void
scru64_leased_extend(Scru64Node node, uint64 limit)
{
	NodeSlot   *slot;

	ensure_slots();
	slot = &node_slots->leased;
	LWLockAcquire(&node_slots->lock, LW_EXCLUSIVE);
	if (pg_atomic_read_u32(&slot->key) == node_key(node) &&
		pg_atomic_read_u64(&slot->limit) < limit)
		pg_atomic_write_u64(&slot->limit, limit);
	LWLockRelease(&node_slots->lock);
}

/* End the lease: from here on none of its IDs leaves.  Its last ID, or 0 if there was none. */
uint64
scru64_leased_end(void)
{
	uint64		state;
	Scru64Node	node;

	ensure_slots();
	LWLockAcquire(&node_slots->lock, LW_EXCLUSIVE);
	leased_slot_take();
	state = node_slots->ended_state;
	node = node_of_key(node_slots->ended_key);
	node_slots->ended_state = 0;
	/* a node by hand that was leased too long ago to be refused starts above it */
	forget_state(state);
	LWLockRelease(&node_slots->lock);
	return last_of_state(node, state);
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
