/*------------------------------------------------------------------------
 *
 * slots.c
 *		The shared memory of all slots, and the changes of a slot under its lock.
 *
 * A fixed array of slots in shared memory, one for each configured node in use, the last
 * IDs of retired nodes, which were in use before, and one more slot for the node that the
 * server has leased.  node_slots.c and leased_slot.c assign the slots.  Raises errors only
 * where shared memory is obtained.
 *
 * What guards what:
 *
 *	NodeSlot.state		atomic.  Advanced by the node's sessions without a lock,
 *						by compare-and-swap; replaced under the lock.
 *	NodeSlot.key, limit	atomic.  Read without a lock, written under it.
 *	NodeSlots.reservation	see ceiling.c.
 *	NodeSlots.writers	and the places after them: see writers.c.
 *	other atomics		are hints and counts: no ID depends on them.
 *	all else			NodeSlots.lock.  Under it nothing raises, allocates or waits.
 *
 * A state word is one of
 *
 *	last ID				Every ID that the node has issued is at or below it.
 *	start				NO_ID | timestamp << 24 | serial number.  The node issues
 *						no ID in that tick or before.
 *	CHANGING			The slot is just being given to another node.
 *
 * A node gets a start with its slot, and again when watermark.c fast-forwards it.
 * NodeSlot.left then keeps the node's last ID; if the node has issued none since it began,
 * its first start.  slot_left() returns it.
 *
 * Invariants:
 *
 *	- floor is at or above the tick of every ID of every node that has neither a
 *	  slot nor a place among the retired ones, and at or below the ceiling on the
 *	  page.  Such a node starts above it, so its last ID may be forgotten, whatever the
 *	  clock does.  Only node_slots_restart() lowers it.
 *
 *	- No two nodes that overlap have a slot or a place among the retired ones.
 *
 *	- A state that is an ID is of a tick at or below the ceiling that the session which
 *	  entered the tick had to keep to.  Sessions check this when they enter a tick, not at
 *	  every ID.  A tick that a session has opened stays open to it over
 *	  scru64_set_ceiling(): so if another session, with a lower synchronous_commit, enters
 *	  that tick again, the first one may continue in it before the standbys have the
 *	  ceiling.
 *
 *	- A session advances a state only to an ID of its own node, and only from an ID with
 *	  its node's bits, or from a start marker.
 *
 * A state word may come back between a session's read and its compare-and-swap.  That is
 * harmless:
 *
 *	- A start marker comes back only for the same node, by slot_give() after a vain
 *	  slot_evict(): every other start has a serial number of its own.
 *
 *	- An ID with the bits of the session's node was issued by this node, or by one that
 *	  overlaps it.  That one never issues the same ID: nodes that overlap have no slots at
 *	  the same time, and the later one starts above the floor, which has risen to the
 *	  earlier one's last ID.  So the ID is the last one of the session's node again, and
 *	  the session continues after it, as it would have before.
 *
 * Only scru64_set_ceiling(), below IDs that were issued, can have nodes issue an ID again:
 * its page says when that is right.  Even then a session issues IDs of its own node only,
 * and node_slots.c starts a node anew whose state has another node's bits.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"

#include "access/twophase.h"
#include "miscadmin.h"
#include "storage/ipc.h"

#include "clock.h"
#include "shmem/slots.h"

/* Seconds between two messages of a kind in the log about one subject */
#define LOG_INTERVAL		60

/*
 * 15 and 16 have 100 kB of shared memory to spare that nobody has requested at the start,
 * and the slots take 30 of them: writers get 40, or nothing.
 */
#define SPARE_SIZE			40960

#define LAYOUT_NAME			"scru64 layout"

/* All versions of the library share this: neither its name nor its fields ever change. */
typedef struct Layout
{
	char		name[NAMEDATALEN];	/* of the slots of the version that came first */
	pg_atomic_uint32 is_mixed;	/* has another version come since? */
} Layout;

NodeSlots  *node_slots = NULL;

static Layout *layout_of_server = NULL;
static bool is_reserved = false;

static void
init_slot(NodeSlot *slot)
{
	pg_atomic_init_u64(&slot->state, NODE_STATE_CHANGING);
	pg_atomic_init_u32(&slot->key, 0);
	pg_atomic_init_u64(&slot->limit, SCRU64_LAST_TIMESTAMP);
	pg_atomic_init_u64(&slot->clock, 0);
	pg_atomic_init_u64(&slot->entered, 0);
	for (int i = 0; i < NODE_COUNTS; i++)
		pg_atomic_init_u64(&slot->counts[i], 0);
}

/* Places for prepared transactions: with one for each that is just being prepared. */
static int
max_prepared(void)
{
	return max_prepared_xacts > 0 ? max_prepared_xacts + MaxBackends : 0;
}

static Size
writers_size(void)
{
	return (Size) MaxBackends * sizeof(Writer) + (Size) max_prepared() * sizeof(PreparedWriter);
}

/* The answer is the same for all processes of a server. */
static bool
has_room_for_writers(void)
{
	return !COMPAT_PRELOAD_RESERVES_MEMORY || is_reserved || writers_size() <= SPARE_SIZE;
}

static Size
slots_size(void)
{
	return offsetof(NodeSlots, writers) + (has_room_for_writers() ? writers_size() : 0);
}

static void
init_writers(NodeSlots *slots)
{
	LWLockInitialize(&slots->prepared_lock, slots->tranche_id);
	if (!has_room_for_writers())
		return;
	slots->n_writers = MaxBackends;
	slots->n_prepared = max_prepared();
	for (int i = 0; i < slots->n_writers; i++)
	{
		pg_atomic_init_u64(&slots->writers[i].bound, 0);
		pg_atomic_init_u32(&slots->writers[i].lxid, 0);
	}
}

static void
init_slots(void *memory)
{
	NodeSlots  *slots = memory;

	memset(slots, 0, slots_size());
	slots->tranche_id = compat_new_tranche(SHARED_MEMORY_NAME("slots"));
	LWLockInitialize(&slots->lock, slots->tranche_id);
	pg_atomic_init_u32(&slots->reservation.generation, 0);
	SpinLockInit(&slots->reservation.mutex);
	pg_atomic_init_u64(&slots->reservation.durable, 0);
	pg_atomic_init_u64(&slots->reservation.replicated, 0);
	ConditionVariableInit(&slots->reservation.moved);
	for (int i = 0; i < LOG_KINDS * LOG_TIMES; i++)
		pg_atomic_init_u64(&slots->logged[i / LOG_TIMES][i % LOG_TIMES], 0);
	for (int i = 0; i < NODE_SLOTS; i++)
		init_slot(&slots->slots[i]);
	init_slot(&slots->leased);
	init_writers(slots);
}

static void
init_layout(void *memory)
{
	Layout	   *layout = memory;

	strlcpy(layout->name, SHARED_MEMORY_NAME("slots"), sizeof(layout->name));
	pg_atomic_init_u32(&layout->is_mixed, 0);
}

/*
 * The library is preloaded, so slots_request() reserves the memory.  To be called in each
 * process that preloads it: without forks each child does, and only the postmaster requests.
 */
void
slots_are_reserved(void)
{
	is_reserved = true;
}

/* For a server that starts with the library: have it reserve the memory. */
void
slots_request(void)
{
	RequestAddinShmemSpace(slots_size());
	RequestAddinShmemSpace(sizeof(Layout));
}

/*
 * Has another version of the library issued IDs since the server was started?  It has
 * slots of its own.
 */
bool
slots_are_mixed(void)
{
	ensure_slots();
	return pg_atomic_read_u32(&layout_of_server->is_mixed) != 0;
}

void
ensure_slots(void)
{
	if (node_slots != NULL)
		return;
	layout_of_server = compat_shared_memory(LAYOUT_NAME, sizeof(Layout), init_layout);
	if (strcmp(layout_of_server->name, SHARED_MEMORY_NAME("slots")) != 0)
		pg_atomic_write_u32(&layout_of_server->is_mixed, 1);
	node_slots = compat_shared_memory(SHARED_MEMORY_NAME("slots"), slots_size(), init_slots);
	/* last: where it fails, the slots are there all the same, which try_slots() says */
	compat_name_tranche(node_slots->tranche_id, SHARED_MEMORY_NAME("slots"));
}

/*
 * Attach the shared memory, or return false if nobody has: where all has to be in the
 * main segment, and that is full.  Then no session has issued an ID.
 */
bool
try_slots(void)
{
	MemoryContext context = CurrentMemoryContext;

	PG_TRY();
	{
		ensure_slots();
	}
	PG_CATCH();
	{
		if (!COMPAT_PRELOAD_RESERVES_MEMORY || geterrcode() != ERRCODE_OUT_OF_MEMORY)
			PG_RE_THROW();
		LWLockReleaseAll();
		MemoryContextSwitchTo(context);
		FlushErrorState();
	}
	PG_END_TRY();
	return node_slots != NULL;
}

/*
 * Is it time to log something about a subject again?  By the monotonic clock, because some
 * messages are about the other clock.
 */
bool
log_is_due(LogKind kind, uint32 subject)
{
	pg_atomic_uint64 *logged = &node_slots->logged[kind][subject % LOG_TIMES];
	uint64		last = pg_atomic_read_u64(logged);
	uint64		now = (uint64) monotonic_ms() / 1000;

	return (last == 0 || now - last >= LOG_INTERVAL) &&
		pg_atomic_compare_exchange_u64(logged, &last, Max(now, 1));
}

/*
 * The state word of a node that starts above a tick.
 *
 * Starts of one tick differ by their serial numbers.  After 16.7 million starts the numbers
 * begin again, and one tick more is closed.  So nodes that start at the closed tick have
 * another tick than before; starts of other ticks would have to be as many within a tick.
 */
uint64
start_word(uint64 timestamp)
{
	uint32		serial = node_slots->starts++;

	if (serial == SCRU64_MAX_NODE_CTR)
	{
		node_slots->starts = 0;
		node_slots->watermark.closed =
			Min(Max(node_slots->floor, node_slots->watermark.closed) + 1, SCRU64_LAST_TIMESTAMP);
	}
	return NODE_STATE_NO_ID | scru64_compose(timestamp, serial);
}

/* The state word of a node that begins above a tick, and above the closed one. */
uint64
new_start(uint64 timestamp)
{
	return start_word(Max(timestamp, node_slots->watermark.closed));
}

/* All above the floor is open again: the watermarks until now were about other IDs. */
void
restart_watermark(uint64 floor)
{
	Watermark  *watermark = &node_slots->watermark;

	watermark->closed = floor;
	watermark->restarts++;
	watermark->highest = Min(watermark->highest, scru64_compose(floor + 1, 0));
	memset(&watermark->answers, 0, sizeof(AnswerRing));
}

/* The last ID of a node, as node_state_last(). */
uint64
last_of_state(Scru64Node node, uint64 state)
{
	Generator	generator = generator_make(node);

	return node_state_last(state, &generator);
}

/* Report the node that has a slot.  False if none has. */
bool
slot_report(NodeSlot *slot, NodeReport *report)
{
	NodeKey		key = pg_atomic_read_u32(&slot->key);
	uint64		state = pg_atomic_read_u64(&slot->state);

	if (key == 0)
		return false;
	report->node = node_of_key(key);
	report->state = slot_left(slot, state);
	report->tick = node_state_tick(state);
	report->last_id = last_of_state(report->node, report->state);
	for (int i = 0; i < NODE_COUNTS; i++)
		report->counts[i] = pg_atomic_read_u64(&slot->counts[i]);
	return true;
}

/* The last ID of the node that has a slot with this state; if it has none, its start. */
uint64
slot_left(const NodeSlot *slot, uint64 state)
{
	return node_state_is_id(state) ? state : slot->left;
}

/*
 * Evict the node from its slot, and return slot_left().  Lock held exclusively.
 *
 * Ordering: a session of the node that has read the state before can still advance it
 * up to the exchange, which then returns that ID; after it, the session's compare-and-swap
 * fails.  The exchange is an acquire, so the session's entry for that ID is seen from here
 * on (litmus: evicted-last, entry-evicted).
 */
uint64
slot_evict(NodeSlot *slot)
{
	pg_atomic_write_u32(&slot->key, 0);
	return slot_left(slot, pg_atomic_exchange_u64(&slot->state, NODE_STATE_CHANGING));
}

/* Is the next ID after a last ID, or a start, above the closed tick? */
static bool
may_continue(uint64 left)
{
	uint64		tick = node_state_tick(left);
	uint64		closed = node_slots->watermark.closed;

	return node_state_is_id(left) ? tick > closed : tick >= closed;
}

/*
 * Give a slot without a node to a node, which goes on after its last ID, or at a start.
 *
 * Ordering: a session that reads the new state, in node_slot_read(), also reads the
 * cleared key, or the new one, and the limit of the new lease.  Another process may have
 * cleared the key, and sessions do not take the lock: so the barrier is needed (litmus:
 * key-old-session, limit-new-lease, limit-new-node).  State and key may be written in
 * any order: a session that reads the new key with the old state cannot advance that, and
 * attaches again (litmus: key-new-session).
 */
void
slot_give(NodeSlot *slot, NodeKey key, uint64 left)
{
	uint64		state = may_continue(left) ? left : new_start(node_slots->floor);

	slot->left = left;
	pg_write_barrier();
	pg_atomic_write_u64(&slot->state, state);
	pg_atomic_write_u32(&slot->key, key);
}

/*
 * Forget a node's last ID: raise the floor to it.  Not to a start, at which no ID was
 * issued: that of a lease may be far above the ceiling.
 */
void
forget_state(uint64 state)
{
	if (node_state_is_id(state))
		node_slots->floor = Max(node_slots->floor, node_state_tick(state));
}

/* The same for a node that begins: its counts begin with 0. */
NodeSlot *
slot_start(NodeSlot *slot, NodeKey key, uint64 left, uint64 now)
{
	pg_atomic_write_u64(&slot->clock, now);
	pg_atomic_write_u64(&slot->entered, 0);
	for (int i = 0; i < NODE_COUNTS; i++)
		pg_atomic_write_u64(&slot->counts[i], 0);
	slot_give(slot, key, left);
	return slot;
}
