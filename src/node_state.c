/*-------------------------------------------------------------------------
 *
 * node_state.c
 *		The state of the nodes in use on this server, shared by all sessions.
 *
 * Upper storey.  A fixed array of slots in shared memory, one for each node in
 * use, and when they go to the state file.  May call the lower storey and
 * state_file.c; raises errors only where shared memory is obtained and where
 * the file is read or written, never with the lock held.
 *
 * What guards what:
 *
 *	NodeSlot.state		atomic.  Advanced by the node's sessions without a lock,
 *						by compare-and-swap; replaced under the lock.
 *	NodeSlot.key		atomic.  Read without a lock, written under it.
 *	NodeSlot.durable	atomic.  Raised by the holder of the file, under the lock
 *						in shared mode; set to 0 under the lock.
 *	NodeSlot.wanted		atomic.  Raised under the lock in shared mode.
 *	NodeSlot.clock		atomic; a hint, no ID depends on it.
 *	the counts, and when something was logged
 *						atomic; no ID depends on them.
 *	NodeStates.floor	the lock.
 *	NodeStates.hand		the lock.
 *	NodeStates.loaded	atomic.  Set once, by the holder of the file.
 *	NodeStates.file_busy	atomic: who exchanges 0 for 1 holds the file, until it
 *						writes 0.  The only thing here that is held during I/O.
 *						Waiting for it can be cancelled.
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
 *						anything in that tick or before, because it may have
 *						done so earlier.  The mark is the node_id, a 1 bit, and
 *						0 bits up to 24: no two nodes have the same.
 *	CHANGING			The slot is just being given to another node.
 *
 * Invariants:
 *
 *	- floor is at or above the tick of every ID of every node that has lost its
 *	  slot, and a slot starts at the floor or above.  So nothing is forgotten
 *	  that matters when a slot is taken away: the node's next ID, whenever it
 *	  comes back, is in a later tick, whatever the clock does.
 *
 *	- No ID of a tick above its slot's durable is given out, and durable is raised
 *	  only after a file was written that has the node with that ceiling, or a
 *	  higher one.  Every file has the ceilings of all nodes that have a slot,
 *	  whatever the floor is, and the floor for all others.  So the file is bounded: an entry goes when
 *	  its node has lost its slot, because the floor says then what it said.  And
 *	  after a restart, clean or not, a node starts above everything that it has
 *	  given out.
 *
 *	- A state that is an ID is of a tick at or below durable: the check is due
 *	  when a tick is entered, not at every ID.
 *
 *	- No state word comes back in a slot, but for a start that no ID could have
 *	  followed yet.  An ID that was the state of a node that lost its slot is at
 *	  or below the floor, and later IDs are above it; a start names its node.
 *	  This is what makes the compare-and-swap in node_state_advance() safe
 *	  without a lock.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "pg_compat.h"

#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "miscadmin.h"
#include "storage/condition_variable.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "utils/timestamp.h"

#include "node_state.h"
#include "state_file.h"
#include "tick_time.h"

#define NODE_STATE_NAME		"scru64"
#define FILE_WAIT_EVENT_NAME	"Scru64StateFile"

/* The timeline of a server that was never promoted. */
#define FIRST_TIMELINE		1


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
	int			hand;			/* where the last slot was taken away */
	pg_atomic_uint32 loaded;
	pg_atomic_uint32 file_busy;
	ConditionVariable file_free;
	PaddedNodeSlot slots[NODE_SLOTS] pg_attribute_aligned(PG_CACHE_LINE_SIZE);
} NodeStates;

/* This backend's address of the shared memory; NULL until it is needed. */
static NodeStates *node_states = NULL;

/* Is it this session that has made file_busy 1? */
static bool holds_file = false;

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
	pg_atomic_init_u64(&slot->durable, 0);
	pg_atomic_init_u64(&slot->wanted, 0);
	pg_atomic_init_u64(&slot->clock, 0);
	pg_atomic_init_u64(&slot->counter_overflows, 0);
	pg_atomic_init_u64(&slot->clock_rollbacks, 0);
	pg_atomic_init_u64(&slot->waits, 0);
	pg_atomic_init_u64(&slot->rollback_logged, 0);
	pg_atomic_init_u64(&slot->wait_logged, 0);
}

static void
init_node_states(void *memory)
{
	NodeStates *states = memory;

	states->tranche_id = LWLockNewTrancheId();
	LWLockInitialize(&states->lock, states->tranche_id);
	states->floor = 0;
	states->hand = 0;
	pg_atomic_init_u32(&states->loaded, 0);
	pg_atomic_init_u32(&states->file_busy, 0);
	ConditionVariableInit(&states->file_free);
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

/* Can the node of this state have given out an ID that counts as recent? */
static bool
state_in_use(uint64 state, uint64 now, uint64 allowance)
{
	return state_timestamp(state) + allowance >= now;
}

static void
report_slot(NodeSlot *slot, NodeKey key, NodeReport *report)
{
	uint64		state = pg_atomic_read_u64(&slot->state);
	Generator	generator = generator_make(node_of_key(key));

	report->node = node_of_key(key);
	report->last_id = (state & NODE_STATE_NO_ID) == 0 ? state : 0;
	report->reached = state_timestamp(state) > 0 ?
		node_state_last(state, &generator) : 0;
	report->durable = pg_atomic_read_u64(&slot->durable);
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
 * Ordering: the state is written before the key, see node_state_read().  What
 * else was reset in the slot is written before the state: who sees the new state
 * must not see an old ceiling.
 */
static void
give_slot(NodeSlot *slot, NodeKey key, uint64 state)
{
	pg_write_barrier();
	pg_atomic_write_u64(&slot->state, state);
	pg_write_barrier();
	pg_atomic_write_u32(&slot->key, key);
}

/*
 * Forget the node of a slot that was taken, but for the floor.  Lock held
 * exclusively.
 *
 * A start must not come back after its node had a ceiling: a session that has
 * found the ceiling high enough could then still advance from it, when the
 * ceiling is no longer in the file.
 */
static void
forget_state(NodeSlot *slot, uint64 state)
{
	bool		used_start = (state & NODE_STATE_NO_ID) != 0 &&
		node_state_durable(slot) > 0;

	node_states->floor = Max(node_states->floor,
							 state_timestamp(state) + (used_start ? 1 : 0));
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
		forget_state(slot, state);
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
	int			hand = node_states->hand;

	if (least_recent != NULL)
		return least_recent;

	for (int i = 1; i <= NODE_SLOTS; i++)
	{
		int			candidate = (node_states->hand + i) % NODE_SLOTS;

		if (least_recent == NULL ||
			pg_atomic_read_u64(&slot_at(candidate)->clock) <
			pg_atomic_read_u64(&least_recent->clock))
		{
			least_recent = slot_at(candidate);
			hand = candidate;
		}
	}
	node_states->hand = hand;
	forget_state(least_recent, take_slot(least_recent));
	return least_recent;
}

/*
 * Start a node in a slot without a node, after a tick.  Lock held exclusively.
 */
static void
start_node(NodeSlot *slot, Scru64Node node, uint64 timestamp, uint64 now)
{
	pg_atomic_write_u64(&slot->durable, 0);
	pg_atomic_write_u64(&slot->wanted, 0);
	pg_atomic_write_u64(&slot->clock, now);
	pg_atomic_write_u64(&slot->counter_overflows, 0);
	pg_atomic_write_u64(&slot->clock_rollbacks, 0);
	pg_atomic_write_u64(&slot->waits, 0);
	pg_atomic_write_u64(&slot->rollback_logged, 0);
	pg_atomic_write_u64(&slot->wait_logged, 0);
	give_slot(slot, node_key(node), start_after(node, timestamp));
}

/*
 * The state file
 */

/* Let others have the file, if this session holds it. */
static void
release_file(int code, Datum arg)
{
	(void) code;
	(void) arg;
	if (!holds_file)
		return;
	holds_file = false;
	/* what was done with the file comes before it is free */
	pg_memory_barrier();
	pg_atomic_write_u32(&node_states->file_busy, 0);
	ConditionVariableBroadcast(&node_states->file_free);
}

static void
wait_for_file(void)
{
	static uint32 wait_event = 0;

	if (wait_event == 0)
		wait_event = compat_wait_event(FILE_WAIT_EVENT_NAME);

	ConditionVariablePrepareToSleep(&node_states->file_free);
	while (pg_atomic_exchange_u32(&node_states->file_busy, 1) != 0)
		ConditionVariableSleep(&node_states->file_free, wait_event);
	holds_file = true;
	ConditionVariableCancelSleep();
}

/*
 * Do something as the only session that reads or writes the file.  However
 * that ends, the file is free again.
 */
static void
with_file(void (*work) (void *), void *arg)
{
	PG_ENSURE_ERROR_CLEANUP(release_file, (Datum) 0);
	{
		wait_for_file();
		work(arg);
	}
	PG_END_ENSURE_ERROR_CLEANUP(release_file, (Datum) 0);
	release_file(0, (Datum) 0);
}

/* What load_states() has to know. */
typedef struct LoadRequest
{
	uint64		now;			/* the clock, in ticks */
	uint64		allowance;		/* in ticks */
} LoadRequest;

/*
 * The tick at or below which other servers can have given out the IDs that this
 * one has, by replication or from a backup; 0 if there were none.
 *
 * No ID is ahead of its server's clock by more than the allowance.  While this
 * server was in recovery, the write-ahead log has told that clock, at the last
 * commit.  It tells no more after a restart, but whoever has been promoted since
 * the file was written is on another timeline than the file.  Then the other
 * clock may have been ahead of this one; allow for as much as a wait can make
 * good.  Without a file, most likely no ID was ever given out.
 */
static uint64
foreign_floor(const StateFile *file, const LoadRequest *request)
{
	TimestampTz last_commit = GetLatestXTime();

	if (last_commit != 0)
		return tick_of_time(Max(last_commit, UNIX_EPOCH_TIMESTAMP)) +
			request->allowance;
	if (GetWALInsertionTimeLine() == file->timeline)
		return 0;
	if (file->num_nodes == 0)
		return request->now + request->allowance;
	return request->now + Max(2 * request->allowance, 1) - 1;
}

/* Raise a file's floor and ceilings. */
static void
raise_file(StateFile *file, uint64 floor)
{
	file->floor = Max(file->floor, floor);
	for (int i = 0; i < file->num_nodes; i++)
	{
		NodeSpec   *node = &file->nodes[i];
		Generator	generator = generator_make(node->node);

		if (scru64_get_timestamp(node->node_prev) < floor)
			node->node_prev = generator_last_of_tick(&generator, floor);
	}
}

/*
 * Start all nodes that the file knows at their ceilings.  Holder of the file.
 *
 * What comes from elsewhere than the file goes into it first: after a restart
 * it would not be known any more.
 */
static void
load_states(void *arg)
{
	StateFile	file = {.timeline = FIRST_TIMELINE};
	uint64		floor;

	if (pg_atomic_read_u32(&node_states->loaded))
		return;
	(void) state_file_read(&file);
	floor = Min(foreign_floor(&file, arg), SCRU64_LAST_TIMESTAMP);
	if (floor > 0)
	{
		raise_file(&file, floor);
		file.timeline = GetWALInsertionTimeLine();
		state_file_write(&file);
	}

	LWLockAcquire(&node_states->lock, LW_EXCLUSIVE);
	node_states->floor = file.floor;
	for (int i = 0; i < file.num_nodes; i++)
	{
		uint64		ceiling = scru64_get_timestamp(file.nodes[i].node_prev);

		/* there are never more, unless somebody has made the file */
		if (i >= NODE_SLOTS)
			node_states->floor = Max(node_states->floor, ceiling);
		else
			start_node(slot_at(i), file.nodes[i].node, ceiling, 0);
	}
	LWLockRelease(&node_states->lock);

	/* the slots come before the word that they are there */
	pg_write_barrier();
	pg_atomic_write_u32(&node_states->loaded, 1);
}

/*
 * The ceilings that are wanted, or else in force, of all nodes.  slots[] gets
 * the slot of each node of the file.
 */
static void
collect_ceilings(StateFile *file, NodeSlot *slots[NODE_SLOTS])
{
	file->num_nodes = 0;
	file->timeline = GetWALInsertionTimeLine();
	LWLockAcquire(&node_states->lock, LW_SHARED);
	file->floor = node_states->floor;
	for (int i = 0; i < NODE_SLOTS; i++)
	{
		NodeSlot   *slot = slot_at(i);
		NodeKey		key = pg_atomic_read_u32(&slot->key);
		uint64		timestamp = Max(pg_atomic_read_u64(&slot->wanted),
									pg_atomic_read_u64(&slot->durable));
		NodeSpec   *entry = &file->nodes[file->num_nodes];
		Generator	generator;

		if (key == 0)
			continue;
		/* a node that has asked for nothing yet is where it has started */
		timestamp = Max(timestamp,
						state_timestamp(pg_atomic_read_u64(&slot->state)));
		if (timestamp == 0)
			continue;
		entry->node = node_of_key(key);
		generator = generator_make(entry->node);
		entry->node_prev = generator_last_of_tick(&generator, timestamp);
		slots[file->num_nodes++] = slot;
	}
	LWLockRelease(&node_states->lock);
}

/* Put the ceilings of a file that was written in force. */
static void
publish_ceilings(const StateFile *file, NodeSlot *slots[NODE_SLOTS])
{
	LWLockAcquire(&node_states->lock, LW_SHARED);
	for (int i = 0; i < file->num_nodes; i++)
	{
		const NodeSpec *entry = &file->nodes[i];
		uint64		timestamp = scru64_get_timestamp(entry->node_prev);

		/* the slot may have been given to another node meanwhile */
		if (pg_atomic_read_u32(&slots[i]->key) == node_key(entry->node) &&
			pg_atomic_read_u64(&slots[i]->durable) < timestamp)
			pg_atomic_write_u64(&slots[i]->durable, timestamp);
	}
	LWLockRelease(&node_states->lock);
}

/* What node_state_make_durable() asks of the holder of the file. */
typedef struct DurableRequest
{
	NodeSlot   *slot;
	NodeKey		key;
	uint64		timestamp;
} DurableRequest;

/* Write the file, unless somebody else has written what was asked for. */
static void
save_states(void *arg)
{
	const DurableRequest *request = arg;
	NodeSpec	nodes[NODE_SLOTS];
	NodeSlot   *slots[NODE_SLOTS];
	StateFile	file = {.nodes = nodes};

	if (pg_atomic_read_u32(&request->slot->key) != request->key ||
		node_state_durable(request->slot) >= request->timestamp)
		return;
	collect_ceilings(&file, slots);
	state_file_write(&file);
	publish_ceilings(&file, slots);
}

/*
 * Have a ceiling for a tick on disk, or better one for a later tick, foreseen.
 * When this returns normally, node_state_durable() is at or above timestamp
 * unless the slot was given to another node.
 *
 * What is asked for is left in the slot, so that who holds the file meanwhile
 * or next writes it for all who wait.
 */
void
node_state_make_durable(NodeSlot *slot, NodeKey key, uint64 timestamp,
						uint64 foreseen)
{
	DurableRequest request = {
		.slot = slot,
		.key = key,
		.timestamp = timestamp
	};
	uint64		wanted = Max(timestamp, Min(foreseen, SCRU64_LAST_TIMESTAMP));
	uint64		already;

	LWLockAcquire(&node_states->lock, LW_SHARED);
	already = pg_atomic_read_u64(&slot->wanted);
	while (pg_atomic_read_u32(&slot->key) == key && already < wanted &&
		   !pg_atomic_compare_exchange_u64(&slot->wanted, &already, wanted))
		continue;
	LWLockRelease(&node_states->lock);

	with_file(save_states, &request);
}

/*
 * Attaching
 */

/* Is the state of a node at node_prev or above? */
static bool
has_reached(uint64 state, const NodeSpec *spec)
{
	Generator	generator = generator_make(spec->node);

	return node_state_last(state, &generator) >= spec->node_prev;
}

/* Raise the state of a node to node_prev. */
static void
raise_state(NodeSlot *slot, const NodeSpec *spec)
{
	uint64		state;

	/* under the lock, so that the slot stays the node's */
	LWLockAcquire(&node_states->lock, LW_SHARED);
	state = pg_atomic_read_u64(&slot->state);
	while (pg_atomic_read_u32(&slot->key) == node_key(spec->node) &&
		   node_state_durable(slot) >= scru64_get_timestamp(spec->node_prev) &&
		   !has_reached(state, spec) &&
		   !node_state_advance(slot, &state, spec->node_prev))
		continue;
	LWLockRelease(&node_states->lock);
}

/* The slot of a node, and its state.  NULL if the node overlaps another. */
static NodeSlot *
find_or_start(Scru64Node node, uint64 now, uint64 allowance, uint64 *state,
			  NodeReport *obstacle)
{
	NodeKey		key = node_key(node);
	NodeSlot   *slot;

	/* nearly always another session of the node has been here before */
	LWLockAcquire(&node_states->lock, LW_SHARED);
	slot = find_slot(key);
	if (slot != NULL)
		*state = pg_atomic_read_u64(&slot->state);
	LWLockRelease(&node_states->lock);
	if (slot != NULL)
		return slot;

	LWLockAcquire(&node_states->lock, LW_EXCLUSIVE);
	slot = find_slot(key);
	if (slot == NULL && retire_overlapping(node, now, allowance, obstacle))
	{
		slot = free_slot();
		start_node(slot, node, node_states->floor, now);
	}
	if (slot != NULL)
		*state = pg_atomic_read_u64(&slot->state);
	LWLockRelease(&node_states->lock);
	return slot;
}

/*
 * Find or make the slot of a node.
 *
 *	now			the clock, in ticks
 *	allowance	scru64.rollback_allowance, in ticks
 *
 * *slot stays good to read for the life of the backend, but may be given to
 * another node at any time: node_state_read() tells.  *obstacle is set with
 * NODE_OVERLAPS only.  Not to be called during recovery.
 */
NodeAttachStatus
node_state_attach(const NodeSpec *spec, uint64 now, uint64 allowance,
				  NodeSlot **slot, NodeReport *obstacle)
{
	uint64		prev_timestamp = scru64_get_timestamp(spec->node_prev);
	LoadRequest load = {.now = now,.allowance = allowance};

	if (generator_hopeless(prev_timestamp, now, allowance))
		return NODE_PREV_AHEAD;

	ensure_node_states();
	if (!pg_atomic_read_u32(&node_states->loaded))
		with_file(load_states, &load);

	for (;;)
	{
		uint64		state;
		NodeSlot   *found = find_or_start(spec->node, now, allowance, &state,
										  obstacle);

		if (found == NULL)
			return NODE_OVERLAPS;
		if (has_reached(state, spec))
		{
			*slot = found;
			return NODE_ATTACHED;
		}
		CHECK_FOR_INTERRUPTS();
		node_state_make_durable(found, node_key(spec->node), prev_timestamp,
								now);
		raise_state(found, spec);
	}
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
