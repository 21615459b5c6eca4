/*------------------------------------------------------------------------
 *
 * node_slots.c
 *		The nodes that sessions have set: which has which slot.
 *
 * See slots.c for what guards what; the lock is held, exclusively, in all functions
 * that are not called from outside.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "shmem/leased_slot.h"
#include "shmem/node_slots.h"

/* The slot of a node, or with key 0 a free one; NULL if there is none. */
static NodeSlot *
find_slot(NodeKey key)
{
	for (int i = 0; i < NODE_SLOTS; i++)
	{
		if (pg_atomic_read_u32(&node_slots->slots[i].key) == key)
			return &node_slots->slots[i];
	}
	return NULL;
}

/* Forget a retired node, if there is one in this place. */
static void
forget_retired(int place)
{
	if (node_slots->retired_keys[place] != 0)
		forget_state(node_slots->retired_ids[place]);
	node_slots->retired_keys[place] = 0;
}

/*
 * Keep the last ID of a node that has lost its slot.
 *
 * A start need not be kept: the floor is there or above, and nothing was given
 * out.
 */
static void
retire_state(NodeKey key, uint64 state)
{
	int			place = node_slots->next_retired;

	if (!node_state_is_id(state))
		return;
	/* a free place, or if there is none the next in turn */
	for (int i = 0; i < RETIRED_NODES && node_slots->retired_keys[place] != 0; i++)
		place = (place + 1) % RETIRED_NODES;
	forget_retired(place);
	node_slots->retired_keys[place] = key;
	node_slots->retired_ids[place] = state;
	node_slots->next_retired = (place + 1) % RETIRED_NODES;
}

/*
 * The last ID of a retired node, which is no longer retired; or 0.
 */
static uint64
recall_state(NodeKey key)
{
	for (int i = 0; i < RETIRED_NODES; i++)
	{
		if (node_slots->retired_keys[i] == key)
		{
			node_slots->retired_keys[i] = 0;
			return node_slots->retired_ids[i];
		}
	}
	return 0;
}

/* Is the node of this state in use?  It is not if its last ID is long over. */
static bool
is_in_use(uint64 state, uint64 now, uint64 allowance)
{
	return node_state_tick(state) + allowance >= now;
}

/* The slot, from this one on, of a node that overlaps another; or NULL. */
static NodeSlot *
next_overlapping(NodeSlot *slot, Scru64Node node)
{
	for (; slot < node_slots->slots + NODE_SLOTS; slot++)
	{
		NodeKey		key = pg_atomic_read_u32(&slot->key);

		if (key != 0 && nodes_overlap(node, node_of_key(key)))
			return slot;
	}
	return NULL;
}

/*
 * Forget every node that overlaps this one.  If one is in use, it is reported, and the
 * result is false.  Nothing is forgotten then, unless that one has come into use just
 * now, since nobody prevents that.
 */
static bool
forget_overlapping(Scru64Node node, uint64 now, uint64 allowance,
				   NodeReport *obstacle)
{
	NodeSlot   *slot = node_slots->slots;

	for (; (slot = next_overlapping(slot, node)) != NULL; slot++)
	{
		slot_report(slot, obstacle);
		if (is_in_use(obstacle->state, now, allowance))
			return false;
	}
	slot = node_slots->slots;
	while ((slot = next_overlapping(slot, node)) != NULL)
	{
		NodeKey		key = pg_atomic_read_u32(&slot->key);
		uint64		left = slot_take(slot);

		if (is_in_use(left, now, allowance))
		{
			slot_give(slot, key, left);
			slot_report(slot, obstacle);
			return false;
		}
		forget_state(left);
	}
	for (int i = 0; i < RETIRED_NODES; i++)
	{
		if (node_slots->retired_keys[i] != 0 &&
			nodes_overlap(node, node_of_key(node_slots->retired_keys[i])))
			forget_retired(i);
	}
	return true;
}

/*
 * A slot without a node: a free one, or the one whose sessions have not looked
 * at the clock for longest, taken from its node.
 *
 * The search goes round: when all slots are equally busy, each has the same
 * time to give out IDs before it is taken away again.
 */
static NodeSlot *
free_slot(void)
{
	NodeSlot   *least_recent = find_slot(0);
	NodeKey		key;

	if (least_recent != NULL)
		return least_recent;

	for (int i = 1; i <= NODE_SLOTS; i++)
	{
		NodeSlot   *slot = &node_slots->slots[(node_slots->hand + i) % NODE_SLOTS];

		if (least_recent == NULL ||
			pg_atomic_read_u64(&slot->clock) < pg_atomic_read_u64(&least_recent->clock))
			least_recent = slot;
	}
	node_slots->hand = (int) (least_recent - node_slots->slots);
	key = pg_atomic_read_u32(&least_recent->key);
	retire_state(key, slot_take(least_recent));
	return least_recent;
}

static NodeSlot *
find_or_start(Scru64Node node, uint64 now, uint64 allowance,
			  NodeReport *obstacle)
{
	NodeKey		key = node_key(node);
	NodeSlot   *slot = find_slot(key);
	uint64		left;

	if (slot != NULL)
		return slot;
	if (leased_overlaps(node, obstacle))
		return NULL;
	left = recall_state(key);
	if (left == 0)
	{
		if (!forget_overlapping(node, now, allowance, obstacle))
			return NULL;
		left = new_start(node_slots->floor);
	}
	return slot_start(free_slot(), key, left, now);
}

/*
 * Find or make the slot of a node.
 *
 *	now			the clock, in ticks
 *	allowance	scru64.rollback_allowance, in ticks
 *
 * NULL if the node overlaps another one that is in use, *obstacle.  Else *state is
 * the node's.  The slot stays good to read for the life of the backend, but may be
 * given to another node at any time: node_slot_read() tells.  Not to be called
 * before the ceiling was loaded.
 */
NodeSlot *
node_slots_find(Scru64Node node, uint64 now, uint64 allowance, uint64 *state,
				NodeReport *obstacle)
{
	NodeSlot   *slot;

	ensure_slots();

	LWLockAcquire(&node_slots->lock, LW_EXCLUSIVE);
	slot = find_or_start(node, now, allowance, obstacle);
	if (slot != NULL)
		*state = pg_atomic_read_u64(&slot->state);
	LWLockRelease(&node_slots->lock);
	return slot;
}

/* Have every node start again, above this tick and nothing else. */
void
node_slots_restart(uint64 floor)
{
	ensure_slots();
	LWLockAcquire(&node_slots->lock, LW_EXCLUSIVE);
	for (int i = 0; i < NODE_SLOTS; i++)
		(void) slot_take(&node_slots->slots[i]);
	for (int i = 0; i < RETIRED_NODES; i++)
		node_slots->retired_keys[i] = 0;
	leased_slot_take();
	node_slots->floor = floor;
	restart_watermark(floor);
	LWLockRelease(&node_slots->lock);
}

/* Copy what there is to know of every node with a slot; returns their number. */
int
node_slots_report(NodeReport reports[NODE_SLOTS + 1])
{
	int			count = 0;

	ensure_slots();
	LWLockAcquire(&node_slots->lock, LW_SHARED);
	for (int i = 0; i < NODE_SLOTS; i++)
	{
		if (slot_report(&node_slots->slots[i], &reports[count]))
			count++;
	}
	if (slot_report(&node_slots->leased, &reports[count]))
		count++;
	LWLockRelease(&node_slots->lock);
	return count;
}
