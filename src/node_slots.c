/*-------------------------------------------------------------------------
 *
 * node_slots.c
 *		The nodes in use on this server, shared by all sessions.
 *
 * Upper storey.  A fixed array of slots in shared memory, one for each node in
 * use, the last IDs of the nodes that were in use before them, and a slot apart for
 * the node that the server has leased, see leased_slot.c.  May call the lower storey; raises errors
 * only where shared memory is obtained.
 *
 * What guards what:
 *
 *	NodeSlot.state		atomic.  Advanced by the node's sessions without a lock,
 *						by compare-and-swap; replaced under the lock.
 *	NodeSlot.key, life, limit
 *						atomic.  Read without a lock, written under it.
 *	NodeSlots.reservation	see ceiling.c.
 *	other atomics		are hints and counts: no ID depends on them.
 *	all else			the lock.  It is taken to find, give or take a slot, and
 *						while it is held nothing raises, allocates or waits.
 *
 * A state word is one of
 *
 *	last ID				Every ID of the node that was given out is at or below it.
 *	start				NO_ID | timestamp << 24 | serial number.  The node has
 *						given out nothing since it got the slot, and must not
 *						give out anything in that tick or before.
 *	CHANGING			The slot is just being given to another node.
 *
 * Invariants:
 *
 *	- floor is at or above the tick of every ID of every node that has neither a
 *	  slot nor a place among the retired ones, and at or below the ceiling on the
 *	  page.  Such a node starts above it.  So nothing that matters is forgotten,
 *	  whatever the clock does.  Only node_slots_restart() lowers it.
 *
 *	- No two nodes that overlap have a slot or a place among the retired ones.
 *
 *	- A state that is an ID is of a tick at or below the ceiling: that is checked
 *	  when a tick is entered, not at every ID.
 *
 *	- A state word that comes back in a slot is the same node's last ID again.  An
 *	  ID that could also be another node's is at or below the floor when that
 *	  node starts, and a start has a serial number.  This is what makes the
 *	  compare-and-swap in node_slot_advance() safe without a lock.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "pg_compat.h"

#include "monotonic.h"
#include "node_slots_shared.h"

/* The last number is the version of the layout: other versions share nothing. */
#define NODE_SLOTS_NAME		"scru64 slots 1"

/* Seconds between two messages of a kind in the log about one node. */
#define LOG_INTERVAL		60

NodeSlots  *node_slots = NULL;

Size
node_slots_size(void)
{
	return sizeof(NodeSlots);
}

static void
init_slot(NodeSlot *slot)
{
	pg_atomic_init_u64(&slot->state, NODE_STATE_CHANGING);
	pg_atomic_init_u32(&slot->key, 0);
	pg_atomic_init_u32(&slot->life, 0);
	pg_atomic_init_u64(&slot->limit, SCRU64_LAST_TIMESTAMP);
	pg_atomic_init_u64(&slot->clock, 0);
	pg_atomic_init_u64(&slot->counter_overflows, 0);
	pg_atomic_init_u64(&slot->clock_rollbacks, 0);
	pg_atomic_init_u64(&slot->waits, 0);
	pg_atomic_init_u64(&slot->saturated, 0);
	pg_atomic_init_u64(&slot->entered, 0);
	pg_atomic_init_u64(&slot->used, 0);
}

static void
init_node_slots(void *memory)
{
	NodeSlots  *slots = memory;

	memset(slots, 0, sizeof(NodeSlots));
	slots->tranche_id = compat_new_tranche(NODE_SLOTS_NAME);
	LWLockInitialize(&slots->lock, slots->tranche_id);
	pg_atomic_init_u32(&slots->reservation.loaded, 0);
	pg_atomic_init_u64(&slots->reservation.durable, 0);
	for (int i = 0; i < NODE_LOG_KINDS * LOG_TIMES; i++)
		pg_atomic_init_u64(&slots->logged[i], 0);
	for (int i = 0; i < NODE_SLOTS; i++)
		init_slot(&slots->slots[i]);
	init_slot(&slots->leased);
	lease_init(&slots->lease);
}

void
ensure_node_slots(void)
{
	NodeSlots  *slots;

	if (node_slots != NULL)
		return;
	slots = compat_shared_memory(NODE_SLOTS_NAME, node_slots_size(),
								 init_node_slots);
	compat_name_tranche(slots->tranche_id, NODE_SLOTS_NAME);
	node_slots = slots;
}

Reservation *
node_slots_reservation(void)
{
	ensure_node_slots();
	return &node_slots->reservation;
}

Lease *
node_slots_lease(void)
{
	ensure_node_slots();
	return &node_slots->lease;
}

/*
 * Is it time to log something about a node again?  By the monotonic clock: the
 * other one is what is logged about.
 */
bool
node_slots_log_is_due(NodeLogKind kind, NodeKey key)
{
	pg_atomic_uint64 *logged =
		&node_slots->logged[kind * LOG_TIMES +
							node_of_key(key).node_id % LOG_TIMES];
	uint64		last = pg_atomic_read_u64(logged);
	uint64		now = (uint64) monotonic_ms() / 1000;

	return (last == 0 || now - last >= LOG_INTERVAL) &&
		pg_atomic_compare_exchange_u64(logged, &last, Max(now, 1));
}

/*
 * The state word of a node that starts above a tick.  Lock held exclusively.
 *
 * A word could come back after as many starts as there are serial numbers, with
 * the floor where it was.  So it does not stay there.
 */
uint64
start_word(uint64 timestamp)
{
	uint32		serial = node_slots->starts++;

	if (serial == SCRU64_MAX_NODE_CTR)
	{
		node_slots->starts = 0;
		node_slots->floor = Min(node_slots->floor + 1, SCRU64_LAST_TIMESTAMP);
	}
	return NODE_STATE_NO_ID | scru64_compose(timestamp, serial);
}

void
report_slot(NodeSlot *slot, NodeKey key, NodeReport *report)
{
	report->node = node_of_key(key);
	report->state = pg_atomic_read_u64(&slot->state);
	report->counter_overflows = pg_atomic_read_u64(&slot->counter_overflows);
	report->clock_rollbacks = pg_atomic_read_u64(&slot->clock_rollbacks);
	report->waits = pg_atomic_read_u64(&slot->waits);
	report->saturated = pg_atomic_read_u64(&slot->saturated);
	report->used = pg_atomic_read_u64(&slot->used);
}

/* The slot of a node, or with key 0 a free one; NULL if there is none.  Lock held. */
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

/*
 * Take a slot away from its node, and return its last state.  Lock held
 * exclusively.
 *
 * Ordering: the key is cleared before the state is replaced (an exchange is a
 * full barrier).  A session of the node that has read the state before can
 * still advance it up to the exchange, and that ID is in what the exchange
 * returns; after it, its compare-and-swap fails.
 */
uint64
take_slot(NodeSlot *slot)
{
	pg_atomic_write_u32(&slot->key, 0);
	pg_atomic_fetch_add_u32(&slot->life, 1);
	return pg_atomic_exchange_u64(&slot->state, NODE_STATE_CHANGING);
}

/*
 * Let a node have a slot that was taken.  Lock held exclusively.
 *
 * Ordering: the state is written before the key, see node_slot_read().
 */
static void
give_slot(NodeSlot *slot, NodeKey key, uint64 state)
{
	pg_atomic_write_u64(&slot->state, state);
	pg_write_barrier();
	pg_atomic_write_u32(&slot->key, key);
}

/*
 * Forget a state, but for the floor.  Lock held exclusively.
 *
 * Of a start nothing was given out; that of a lease may be far above the ceiling.
 */
void
forget_state(uint64 state)
{
	if (node_state_is_id(state))
		node_slots->floor = Max(node_slots->floor, node_state_tick(state));
}

/* The same for what is in a place of a retired node, if there is anything. */
static void
forget_retired(int place)
{
	if (node_slots->retired_keys[place] != 0)
		forget_state(node_slots->retired_ids[place]);
	node_slots->retired_keys[place] = 0;
}

/*
 * Keep the last ID of a node that has lost its slot.  Lock held exclusively.
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
 * The last ID of a retired node, which is no longer retired; or 0.  Lock held
 * exclusively.
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

/*
 * Forget every node that overlaps this one, unless it has a slot and is in use:
 * then leave it, report it and return false.  Lock held exclusively.
 */
static bool
forget_overlapping(Scru64Node node, uint64 now, uint64 allowance,
				   NodeReport *obstacle)
{
	for (int i = 0; i < NODE_SLOTS; i++)
	{
		NodeSlot   *slot = &node_slots->slots[i];
		NodeKey		key = pg_atomic_read_u32(&slot->key);
		uint64		state;

		if (key == 0 || !nodes_overlap(node, node_of_key(key)))
			continue;

		/* it may be used until it is taken, so look at what it was then */
		state = take_slot(slot);
		if (node_state_tick(state) + allowance >= now)
		{
			give_slot(slot, key, state);
			report_slot(slot, key, obstacle);
			return false;
		}
		forget_state(state);
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
 * at the clock for longest, taken from its node.  Lock held exclusively.
 *
 * The search goes round: when all slots are equally busy, each has the same
 * time to give out IDs before it is taken away again.
 */
static NodeSlot *
free_slot(void)
{
	NodeSlot   *least_recent = find_slot(0);
	int			hand = node_slots->hand;
	NodeKey		key;

	if (least_recent != NULL)
		return least_recent;

	for (int i = 1; i <= NODE_SLOTS; i++)
	{
		int			candidate = (node_slots->hand + i) % NODE_SLOTS;

		if (least_recent == NULL ||
			pg_atomic_read_u64(&node_slots->slots[candidate].clock) <
			pg_atomic_read_u64(&least_recent->clock))
		{
			least_recent = &node_slots->slots[candidate];
			hand = candidate;
		}
	}
	node_slots->hand = hand;
	key = pg_atomic_read_u32(&least_recent->key);
	retire_state(key, take_slot(least_recent));
	return least_recent;
}

/* Start a node, or let it go on from state, in a slot.  Lock held exclusively. */
NodeSlot *
start_node(NodeSlot *slot, NodeKey key, uint64 state, uint64 now)
{
	pg_atomic_write_u64(&slot->clock, now);
	pg_atomic_write_u64(&slot->counter_overflows, 0);
	pg_atomic_write_u64(&slot->clock_rollbacks, 0);
	pg_atomic_write_u64(&slot->waits, 0);
	pg_atomic_write_u64(&slot->saturated, 0);
	pg_atomic_write_u64(&slot->entered, 0);
	pg_atomic_write_u64(&slot->used, 0);
	give_slot(slot, key, state);
	return slot;
}

/*
 * Find or make the slot of a node, or report what is in the way.  Lock held
 * exclusively.
 */
static NodeSlot *
find_or_start(Scru64Node node, uint64 now, uint64 allowance,
			  NodeReport *obstacle)
{
	NodeKey		key = node_key(node);
	NodeSlot   *slot = find_slot(key);
	uint64		state;

	if (slot != NULL)
		return slot;
	if (overlaps_leased(node, obstacle))
		return NULL;
	state = recall_state(key);
	if (state != 0)
		return start_node(free_slot(), key, state, now);
	if (!forget_overlapping(node, now, allowance, obstacle))
		return NULL;
	return start_node(free_slot(), key, start_word(node_slots->floor), now);
}

/*
 * Find or make the slot of a node.
 *
 *	now			the clock, in ticks
 *	allowance	scru64.rollback_allowance, in ticks
 *
 * NULL if the node overlaps another one that is in use, *obstacle.  Else *state is the node's.  The slot stays good to read
 * for the life of the backend, but may be given to another node at any time:
 * node_slot_read() tells.  Not to be called before the ceiling was loaded.
 */
NodeSlot *
node_slots_find(Scru64Node node, uint64 now, uint64 allowance, uint64 *state,
				NodeReport *obstacle)
{
	NodeSlot   *slot;

	ensure_node_slots();

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
	ensure_node_slots();
	LWLockAcquire(&node_slots->lock, LW_EXCLUSIVE);
	for (int i = 0; i < NODE_SLOTS; i++)
		(void) take_slot(&node_slots->slots[i]);
	for (int i = 0; i < RETIRED_NODES; i++)
		node_slots->retired_keys[i] = 0;
	take_lease();
	node_slots->floor = floor;
	LWLockRelease(&node_slots->lock);
}

/* Copy what there is to know of every node with a slot; returns their number. */
int
node_slots_report(NodeReport reports[NODE_SLOTS + 1])
{
	int			count = 0;

	ensure_node_slots();
	LWLockAcquire(&node_slots->lock, LW_SHARED);
	for (int i = 0; i < NODE_SLOTS; i++)
	{
		NodeKey		key = pg_atomic_read_u32(&node_slots->slots[i].key);

		if (key != 0)
			report_slot(&node_slots->slots[i], key, &reports[count++]);
	}
	if (pg_atomic_read_u32(&node_slots->leased.key) != 0)
		report_slot(&node_slots->leased, pg_atomic_read_u32(&node_slots->leased.key),
					&reports[count++]);
	LWLockRelease(&node_slots->lock);
	return count;
}
