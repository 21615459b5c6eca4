/*-------------------------------------------------------------------------
 *
 * node_state.c
 *		The state of the nodes in use on this server, shared by all sessions.
 *
 * Upper storey.  A fixed array of slots in shared memory, one for each node in
 * use.  May call the lower storey; raises errors only where shared memory is
 * obtained, never with the lock held.
 *
 * What guards what:
 *
 *	NodeSlot.state		atomic.  Advanced by the node's sessions without a lock,
 *						by compare-and-swap; replaced under the lock.
 *	NodeSlot.key		atomic.  Read without a lock, written under it.
 *	NodeSlot.clock		atomic; a hint, no ID depends on it.
 *	the three counts	atomic; statistics, no ID depends on them.
 *	NodeStates.floor	the lock.
 *	NodeStates.lock		taken exclusively to give or take a slot, shared to look
 *						one up.  While it is held nothing raises, allocates or
 *						waits, and it is not on the path of an ordinary ID.
 *
 * A state word is one of
 *
 *	last ID				Every ID of the node that was given out is at or below
 *						it.
 *	start				NO_ID | timestamp << 24 | mark.  The node has given out
 *						nothing since it got the slot, and must not give out
 *						anything in that tick or before.  The mark is the
 *						node_id, a 1 bit, and 0 bits up to 24: no two nodes have
 *						the same.
 *	CHANGING			The slot is just being given to another node.
 *
 * Invariants:
 *
 *	- floor is at or above the tick of every ID of every node that has lost its
 *	  slot, and a slot starts at the floor or above.  So nothing is forgotten
 *	  that matters when a slot is taken away: the node's next ID, whenever it
 *	  comes back, is in a later tick, whatever the clock does.
 *
 *	- No state word comes back in a slot under another node.  An ID that was
 *	  the state of a node that lost its slot is at or below the floor, and later
 *	  IDs are above it; a start names its node.  This is what makes the
 *	  compare-and-swap in node_state_advance() safe without a lock.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "pg_compat.h"

#include "storage/lwlock.h"

#include "node_state.h"

#define NODE_STATE_NAME		"scru64"

typedef union PaddedNodeSlot
{
	NodeSlot	slot;
	char		padding[PG_CACHE_LINE_SIZE];
} PaddedNodeSlot;

StaticAssertDecl(sizeof(NodeSlot) <= PG_CACHE_LINE_SIZE,
				 "a node slot must fit in a cache line");

typedef struct NodeStates
{
	LWLock		lock;
	int			tranche_id;
	uint64		floor;			/* in ticks */
	PaddedNodeSlot slots[NODE_SLOTS] pg_attribute_aligned(PG_CACHE_LINE_SIZE);
} NodeStates;

/* This backend's address of the shared memory; NULL until it is needed. */
static NodeStates *node_states = NULL;

/* Bytes of shared memory. */
Size
node_state_size(void)
{
	return sizeof(NodeStates);
}

static void
init_slot(NodeSlot *slot)
{
	pg_atomic_init_u64(&slot->state, NODE_STATE_CHANGING);
	pg_atomic_init_u32(&slot->key, 0);
	pg_atomic_init_u64(&slot->clock, 0);
	pg_atomic_init_u64(&slot->counter_overflows, 0);
	pg_atomic_init_u64(&slot->clock_rollbacks, 0);
	pg_atomic_init_u64(&slot->waits, 0);
}

static void
init_node_states(void *memory)
{
	NodeStates *states = memory;

	states->tranche_id = LWLockNewTrancheId();
	LWLockInitialize(&states->lock, states->tranche_id);
	states->floor = 0;
	for (int i = 0; i < NODE_SLOTS; i++)
		init_slot(&states->slots[i].slot);
}

static void
ensure_node_states(void)
{
	NodeStates *states;

	if (node_states != NULL)
		return;
	states = compat_shared_memory(NODE_STATE_NAME, node_state_size(),
								  init_node_states);
	LWLockRegisterTranche(states->tranche_id, NODE_STATE_NAME);
	node_states = states;
}

static NodeSlot *
slot_at(int i)
{
	return &node_states->slots[i].slot;
}

/* The state word of a node that starts after a tick. */
static uint64
start_after(Scru64Node node, uint64 timestamp)
{
	uint32		mark = scru64_node_base(node) |
		((scru64_max_counter(node) + 1) >> 1);

	return NODE_STATE_NO_ID | scru64_compose(timestamp, mark);
}

/* The tick at or before which the node of a state word gives out nothing. */
static uint64
state_timestamp(uint64 state)
{
	return scru64_get_timestamp(state & ~NODE_STATE_NO_ID);
}

/*
 * The last ID that a state word other than CHANGING stands for; for a start,
 * the last one that its tick could have had.
 */
uint64
node_state_last(uint64 state, const Generator *generator)
{
	if ((state & NODE_STATE_NO_ID) == 0)
		return state;
	return generator_last_of_tick(generator, state_timestamp(state));
}

/* Has the node of this state given out an ID that counts as recent? */
static bool
state_in_use(uint64 state, uint64 now, uint64 allowance)
{
	return (state & NODE_STATE_NO_ID) == 0 &&
		state_timestamp(state) + allowance >= now;
}

static void
report_slot(NodeSlot *slot, NodeKey key, NodeReport *report)
{
	uint64		state = pg_atomic_read_u64(&slot->state);

	report->node = node_of_key(key);
	report->last_id = (state & NODE_STATE_NO_ID) == 0 ? state : 0;
	report->counter_overflows = pg_atomic_read_u64(&slot->counter_overflows);
	report->clock_rollbacks = pg_atomic_read_u64(&slot->clock_rollbacks);
	report->waits = pg_atomic_read_u64(&slot->waits);
}

/* The slot of a node, or NULL.  Lock held. */
static NodeSlot *
find_slot(NodeKey key)
{
	for (int i = 0; i < NODE_SLOTS; i++)
	{
		if (pg_atomic_read_u32(&slot_at(i)->key) == key)
			return slot_at(i);
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
static uint64
take_slot(NodeSlot *slot)
{
	pg_atomic_write_u32(&slot->key, 0);
	return pg_atomic_exchange_u64(&slot->state, NODE_STATE_CHANGING);
}

/*
 * Let a node have a slot that was taken.  Lock held exclusively.
 *
 * Ordering: the state is written before the key, see node_state_read().
 */
static void
give_slot(NodeSlot *slot, NodeKey key, uint64 state)
{
	pg_atomic_write_u64(&slot->state, state);
	pg_write_barrier();
	pg_atomic_write_u32(&slot->key, key);
}

/* Forget the node of a slot that was taken, but for the floor.  Lock held. */
static void
forget_state(uint64 state)
{
	/* the tick of a start is the floor of its time: at or below today's */
	if ((state & NODE_STATE_NO_ID) == 0)
		node_states->floor = Max(node_states->floor, state_timestamp(state));
}

/*
 * Free every slot whose node overlaps this one, unless it is in use: then
 * leave it, report it and return false.  Lock held exclusively.
 */
static bool
retire_overlapping(Scru64Node node, uint64 now, uint64 allowance,
				   NodeReport *obstacle)
{
	for (int i = 0; i < NODE_SLOTS; i++)
	{
		NodeSlot   *slot = slot_at(i);
		NodeKey		key = pg_atomic_read_u32(&slot->key);
		uint64		state;

		if (key == 0 || !nodes_overlap(node, node_of_key(key)))
			continue;

		/* it may be used until it is taken, so look at what it was then */
		state = take_slot(slot);
		if (state_in_use(state, now, allowance))
		{
			give_slot(slot, key, state);
			report_slot(slot, key, obstacle);
			return false;
		}
		forget_state(state);
	}
	return true;
}

/*
 * A slot without a node: a free one, or the one whose node is ahead of the
 * clock least, taken from it.  Lock held exclusively.
 */
static NodeSlot *
free_slot(void)
{
	NodeSlot   *least_recent = find_slot(0);

	if (least_recent != NULL)
		return least_recent;

	least_recent = slot_at(0);
	for (int i = 1; i < NODE_SLOTS; i++)
	{
		if (state_timestamp(pg_atomic_read_u64(&slot_at(i)->state)) <
			state_timestamp(pg_atomic_read_u64(&least_recent->state)))
			least_recent = slot_at(i);
	}
	forget_state(take_slot(least_recent));
	return least_recent;
}

/* Start a node in a slot without a node.  Lock held exclusively. */
static void
start_node(NodeSlot *slot, const NodeSpec *spec)
{
	uint64		state = start_after(spec->node, node_states->floor);

	if (scru64_get_timestamp(spec->node_prev) > node_states->floor)
		state = spec->node_prev;

	pg_atomic_write_u64(&slot->clock, 0);
	pg_atomic_write_u64(&slot->counter_overflows, 0);
	pg_atomic_write_u64(&slot->clock_rollbacks, 0);
	pg_atomic_write_u64(&slot->waits, 0);
	give_slot(slot, node_key(spec->node), state);
}

/* Is the state of a node at node_prev or above? */
static bool
has_reached(uint64 state, const NodeSpec *spec)
{
	Generator	generator = generator_make(spec->node);

	return node_state_last(state, &generator) >= spec->node_prev;
}

/* Raise the state of a node to node_prev.  Lock held exclusively. */
static void
raise_state(NodeSlot *slot, const NodeSpec *spec)
{
	uint64		state = pg_atomic_read_u64(&slot->state);

	while (!has_reached(state, spec) &&
		   !node_state_advance(slot, &state, spec->node_prev))
		continue;
}

/*
 * Find or make the slot of a node.
 *
 *	now			the clock, in ticks
 *	allowance	scru64.rollback_allowance, in ticks
 *
 * *slot stays good to read for the life of the backend, but may be given to
 * another node at any time: node_state_read() tells.  *obstacle is set with
 * NODE_OVERLAPS only.
 */
NodeAttachStatus
node_state_attach(const NodeSpec *spec, uint64 now, uint64 allowance,
				  NodeSlot **slot, NodeReport *obstacle)
{
	NodeKey		key = node_key(spec->node);
	NodeSlot   *found;
	bool		overlaps = false;

	if (generator_hopeless(scru64_get_timestamp(spec->node_prev), now,
						   allowance))
		return NODE_PREV_AHEAD;

	ensure_node_states();

	/* nearly always another session of the node has been here before */
	LWLockAcquire(&node_states->lock, LW_SHARED);
	found = find_slot(key);
	if (found != NULL && !has_reached(pg_atomic_read_u64(&found->state), spec))
		found = NULL;
	LWLockRelease(&node_states->lock);

	if (found == NULL)
	{
		LWLockAcquire(&node_states->lock, LW_EXCLUSIVE);
		found = find_slot(key);
		if (found != NULL)
			raise_state(found, spec);
		else if (retire_overlapping(spec->node, now, allowance, obstacle))
		{
			found = free_slot();
			start_node(found, spec);
		}
		else
			overlaps = true;
		LWLockRelease(&node_states->lock);
	}

	if (overlaps)
		return NODE_OVERLAPS;
	*slot = found;
	return NODE_ATTACHED;
}

/* Copy what there is to know of every node in use; returns their number. */
int
node_state_report(NodeReport reports[NODE_SLOTS])
{
	int			count = 0;

	ensure_node_states();
	LWLockAcquire(&node_states->lock, LW_SHARED);
	for (int i = 0; i < NODE_SLOTS; i++)
	{
		NodeKey		key = pg_atomic_read_u32(&slot_at(i)->key);

		if (key != 0)
			report_slot(slot_at(i), key, &reports[count++]);
	}
	LWLockRelease(&node_states->lock);
	return count;
}
