/*------------------------------------------------------------------------
 *
 * node_slots.c
 *		The slots of configured nodes.
 *
 * See slots.c for what guards what.  The static functions are called with the lock held,
 * exclusively where they change something.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "settings.h"
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
 * Keep the last ID of a node that has lost its slot, in place of the one that was kept
 * longest ago.  A start need not be kept: the node has issued nothing.
 */
static void
retire_state(NodeKey key, uint64 state)
{
	int			place = node_slots->next_retired;

	if (!node_state_is_id(state))
		return;
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

/* Is a node with this state in use?  Not if its last ID is older than the allowance. */
static bool
is_in_use(uint64 state, uint64 now)
{
	return node_state_tick(state) + allowance_ticks() >= now;
}

/* The first slot from this one on whose node overlaps another; or NULL. */
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

/* Does a node without a slot overlap one that is in use, *conflict? */
static bool
overlaps_in_use(Scru64Node node, uint64 now, NodeReport *conflict)
{
	NodeSlot   *slot = node_slots->slots;

	if (leased_overlaps(node, conflict))
		return true;
	for (; (slot = next_overlapping(slot, node)) != NULL; slot++)
	{
		slot_report(slot, conflict);
		if (is_in_use(conflict->state, now))
			return true;
	}
	return false;
}

/*
 * Forget the nodes that overlap this one, which has no slot and is not retired; of them none
 * was in use.  False, with *conflict set, at the first that is.
 *
 * A session may use the node between the first look at it and slot_evict().  So its state
 * is looked at again.
 */
static bool
forget_overlapping(Scru64Node node, uint64 now, NodeReport *conflict)
{
	NodeSlot   *slot = node_slots->slots;

	for (; (slot = next_overlapping(slot, node)) != NULL; slot++)
	{
		NodeKey		key = pg_atomic_read_u32(&slot->key);
		uint64		left = slot_evict(slot);

		if (is_in_use(left, now))
		{
			slot_give(slot, key, left);
			slot_report(slot, conflict);
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
 * A slot without a node: a free one, or else the node is evicted whose sessions have not
 * read the clock for longest.
 *
 * The search goes round: when all nodes are equally busy, each has the same time to issue
 * IDs before it is evicted again.
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
		NodeSlot   *slot = &node_slots->slots[(node_slots->last_evicted + i) % NODE_SLOTS];

		if (least_recent == NULL ||
			pg_atomic_read_u64(&slot->clock) < pg_atomic_read_u64(&least_recent->clock))
			least_recent = slot;
	}
	node_slots->last_evicted = (int) (least_recent - node_slots->slots);
	key = pg_atomic_read_u32(&least_recent->key);
	retire_state(key, slot_evict(least_recent));
	return least_recent;
}

/* Has the state of a node's slot another node's bits?  See slots.c for how that comes about. */
static bool
has_foreign_id(NodeSlot *slot, Scru64Node node)
{
	Generator	generator = generator_make(node);
	uint64		state = pg_atomic_read_u64(&slot->state);

	return node_state_is_id(state) && !generator_owns(&generator, state);
}

static NodeSlot *
find_or_start(Scru64Node node, uint64 now, NodeReport *conflict)
{
	NodeKey		key = node_key(node);
	NodeSlot   *slot = find_slot(key);
	uint64		left;

	if (slot != NULL && !has_foreign_id(slot, node))
		return slot;
	if (slot != NULL)
		forget_state(slot_evict(slot));
	if (overlaps_in_use(node, now, conflict))
		return NULL;
	left = recall_state(key);
	if (left == 0)
	{
		if (!forget_overlapping(node, now, conflict))
			return NULL;
		left = new_start(node_slots->floor);
	}
	return slot_start(free_slot(), key, left, now);
}

/*
 * Find or make the slot of a node.  now is the clock, in ticks.
 *
 * NULL if the node overlaps another one that is in use, *conflict.  Else *state is
 * the node's.  The slot stays mapped for as long as the backend runs, but may be given to
 * another node at any time, which node_slot_read() notices.  Not to be called before the
 * ceiling was loaded.
 */
NodeSlot *
node_slots_find(Scru64Node node, uint64 now, uint64 *state, NodeReport *conflict)
{
	NodeSlot   *slot;

	ensure_slots();

	LWLockAcquire(&node_slots->lock, LW_EXCLUSIVE);
	slot = find_or_start(node, now, conflict);
	if (slot != NULL)
		*state = pg_atomic_read_u64(&slot->state);
	LWLockRelease(&node_slots->lock);
	return slot;
}

/*
 * What would node_slots_find() find?  No node gets a slot or loses it.  False if it would
 * find none: *look is the other node.  Else it has the state of the node, or for one
 * without a slot a start like that which it would get.
 */
bool
node_slots_look(Scru64Node node, uint64 now, NodeReport *look)
{
	NodeSlot   *slot;
	bool		is_free = true;

	ensure_slots();
	LWLockAcquire(&node_slots->lock, LW_SHARED);
	slot = find_slot(node_key(node));
	if (slot != NULL)
		slot_report(slot, look);
	else if (overlaps_in_use(node, now, look))
		is_free = false;
	else
		look->state = NODE_STATE_NO_ID |
			scru64_compose(Max(node_slots->floor, node_slots->watermark.closed), 0);
	LWLockRelease(&node_slots->lock);
	return is_free;
}

/* Have every node start again, above this tick and nothing else. */
void
node_slots_restart(uint64 floor)
{
	ensure_slots();
	LWLockAcquire(&node_slots->lock, LW_EXCLUSIVE);
	for (int i = 0; i < NODE_SLOTS; i++)
		(void) slot_evict(&node_slots->slots[i]);
	for (int i = 0; i < RETIRED_NODES; i++)
		node_slots->retired_keys[i] = 0;
	leased_slot_evict();
	node_slots->floor = floor;
	restart_watermark(floor);
	LWLockRelease(&node_slots->lock);
}

/* Report every node with a slot; returns their number. */
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
