/*-------------------------------------------------------------------------
 *
 * node_slots.c
 *		Gives slots to configured nodes: those that scru64.node_spec names.
 *
 * A slot is a node's place in shared memory.  If no slot is free, the node whose sessions have
 * not read the clock for longest loses its slot.  The invariants, and what guards what, are in
 * slots.c.  Call the static functions with the lock held, exclusively if they change anything.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "settings.h"
#include "shmem/leased_slot.h"
#include "shmem/node_slots.h"

/* The slot with this key, or for key 0 a free slot; NULL if there is none. */
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

/* Forget the parked node of an entry, if there is one. */
static void
forget_parked(int entry)
{
	if (node_slots->parked_keys[entry] != 0)
		slots_raise_floor(node_slots->parked_ids[entry]);
	node_slots->parked_keys[entry] = 0;
}

/*
 * Park a node that has lost its slot.  A node whose state is a start marker need not be parked:
 * it has issued no ID.
 */
static void
park_node(NodeKey key, uint64 state)
{
	int			entry = node_slots->next_parked;

	if (!node_state_is_id(state))
		return;
	/* a free entry, or if there is none the next in turn */
	for (int i = 0; i < PARKED_NODES && node_slots->parked_keys[entry] != 0; i++)
		entry = (entry + 1) % PARKED_NODES;
	forget_parked(entry);
	node_slots->parked_keys[entry] = key;
	node_slots->parked_ids[entry] = state;
	node_slots->next_parked = (entry + 1) % PARKED_NODES;
}

/* The last ID of a node that was parked until now; 0 if it was not. */
static uint64
recall_parked(NodeKey key)
{
	for (int i = 0; i < PARKED_NODES; i++)
	{
		if (node_slots->parked_keys[i] == key)
		{
			node_slots->parked_keys[i] = 0;
			return node_slots->parked_ids[i];
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

/* The first slot from this one on whose node overlaps another one; NULL if there is none. */
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

/* Does a node without a slot overlap a node in use?  Then report the latter in *conflict. */
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
 * Forget all nodes that overlap this one, which has no slot and is not parked.  None of them
 * was in use; if one is now, report it in *conflict, and return false.
 *
 * Sessions may use a node until slot_evict(), so its state is tested again.
 */
static bool
forget_overlapping(Scru64Node node, uint64 now, NodeReport *conflict)
{
	NodeSlot   *slot = node_slots->slots;

	for (; (slot = next_overlapping(slot, node)) != NULL; slot++)
	{
		NodeKey		key = pg_atomic_read_u32(&slot->key);
		uint64		progress = slot_evict(slot);

		if (is_in_use(progress, now))
		{
			slot_give(slot, key, progress);
			slot_report(slot, conflict);
			return false;
		}
		slots_raise_floor(progress);
	}
	for (int i = 0; i < PARKED_NODES; i++)
	{
		if (node_slots->parked_keys[i] != 0 &&
			nodes_overlap(node, node_of_key(node_slots->parked_keys[i])))
			forget_parked(i);
	}
	return true;
}

/*
 * Return a free slot.  If there is none, evict the node whose sessions have not read the clock
 * for longest.
 *
 * The search begins after the slot evicted last: if all nodes are equally busy, each has the
 * same time to issue IDs before it is evicted again.
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
	park_node(key, slot_evict(least_recent));
	return least_recent;
}

/* Is a slot's state an ID with another node's bits?  slots.c says how this happens. */
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
	uint64		progress;

	if (slot != NULL && !has_foreign_id(slot, node))
		return slot;
	if (slot != NULL)
		slots_raise_floor(slot_evict(slot));
	if (overlaps_in_use(node, now, conflict))
		return NULL;
	progress = recall_parked(key);
	if (progress == 0)
	{
		if (!forget_overlapping(node, now, conflict))
			return NULL;
		progress = slots_start_above_closed(node_slots->floor);
	}
	return slot_start(free_slot(), key, progress, now);
}

/*
 * Find a node's slot, or give it one, and read its *state.  NULL if the node overlaps one that
 * is in use, *conflict.  now is the clock, in ticks.  Call this only after the ceiling was
 * loaded.
 *
 * The slot stays mapped as long as the process runs, but may be given to another node at any
 * time; node_slot_read() then returns false.
 */
NodeSlot *
node_slots_find(Scru64Node node, uint64 now, uint64 *state, NodeReport *conflict)
{
	NodeSlot   *slot;

	shared_parts_attach();

	LWLockAcquire(&node_slots->lock, LW_EXCLUSIVE);
	slot = find_or_start(node, now, conflict);
	if (slot != NULL)
		*state = pg_atomic_read_u64(&slot->state);
	LWLockRelease(&node_slots->lock);
	return slot;
}

/*
 * Would node_slots_find() find or give a slot?  This function changes nothing.  If false,
 * *report is about the node in use that overlaps this one.  Otherwise report->state is how far
 * the node really got; if it has no slot, a start marker as a node gets that is not parked.
 */
bool
node_slots_look(Scru64Node node, uint64 now, NodeReport *report)
{
	NodeSlot   *slot;
	bool		is_free = true;

	shared_parts_attach();
	LWLockAcquire(&node_slots->lock, LW_SHARED);
	slot = find_slot(node_key(node));
	if (slot != NULL)
		slot_report(slot, report);
	else if (overlaps_in_use(node, now, report))
		is_free = false;
	else
		report->state = NODE_STATE_NO_ID |
			scru64_compose(Max(node_slots->floor, node_slots->watermark.closed_tick), 0);
	LWLockRelease(&node_slots->lock);
	return is_free;
}

/*
 * Have every node start anew above this tick, whatever it has issued.  The leased node loses its
 * lease unless keep_lease.
 */
void
node_slots_restart(uint64 floor, bool keep_lease)
{
	shared_parts_attach();
	LWLockAcquire(&node_slots->lock, LW_EXCLUSIVE);
	for (int i = 0; i < NODE_SLOTS; i++)
		(void) slot_evict(&node_slots->slots[i]);
	for (int i = 0; i < PARKED_NODES; i++)
		node_slots->parked_keys[i] = 0;
	if (!keep_lease)
		leased_evict();
	node_slots->floor = floor;
	slots_restart_watermark(floor);
	leased_restart();
	LWLockRelease(&node_slots->lock);
}

/* Report all nodes that have slots; returns their number. */
int
node_slots_report(NodeReport reports[NODE_SLOTS + 1])
{
	int			count = 0;

	shared_parts_attach();
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
