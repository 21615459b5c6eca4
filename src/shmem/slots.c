/*------------------------------------------------------------------------
 *
 * slots.c
 *		The shared memory of all slots, and the changes of a slot under the lock.
 *
 * A fixed array of slots, one for each configured node in use; the last IDs of parked nodes,
 * which have lost their slots; and one more slot, for the leased node.  node_slots.c and
 * leased_slot.c assign the slots.  Errors are raised only where shared memory is attached.
 *
 * What guards what:
 *
 *	NodeSlot.state		atomic.  The node's sessions advance it by compare-and-swap, without
 *						the lock; all other changes need the lock.
 *	NodeSlot.key, limit	atomic.  Read without the lock, written under the lock.
 *	other atomics		are hints and counts: no ID depends on them.
 *	all else			NodeSlots.lock.  Its holder never raises errors, allocates or waits.
 *
 * A state word is one of
 *
 *	last ID				Every ID that the node has issued is at or below it.
 *	start marker		NO_ID | tick << 24 | serial number.  The next ID is of a later tick.
 *	CHANGING			No node has the slot.
 *
 * A node gets a start marker with its slot, unless the node can continue after its last ID,
 * and another one whenever watermark.c fast-forwards the node.  While the state is a start
 * marker, NodeSlot.progress records how far the node really got: its last ID, or its first
 * start marker if it has issued none.
 *
 * Invariants:
 *
 *	- If a node neither has a slot nor is parked, all its IDs are of ticks at or below the
 *	  floor.  A configured node starts above the floor, so its last ID may be forgotten,
 *	  whatever the clock does.  Only node_slots_restart() lowers the floor, which is never
 *	  above the written ceiling.
 *
 *	- Of nodes that overlap, at most one has a slot or is parked.
 *
 *	- If a state is an ID, its tick is at or below the ceiling that was usable for the session
 *	  that opened the tick; for a node_prev, at or below the durable one.  Sessions check this
 *	  when they open a tick, not at every ID.  scru64_set_ceiling() does not close the tick: if
 *	  another session, with a lower synchronous_commit, enters the tick again, the first one
 *	  may continue in the tick before the standbys have flushed the ceiling.
 *
 *	- A session that generates advances a state only to an ID of its own node, and only from a
 *	  start marker or from an ID with the node's bits.
 *
 * A state word may come back between a session's read and its compare-and-swap (A-B-A).  This
 * is harmless: the word comes back only to the same node, which has issued no ID meanwhile.
 *
 *	- A start marker comes back only by slot_give(), to the node that slot_evict() has just
 *	  evicted.  Every other start marker has its own serial number.
 *	- An ID comes back only to the node that issued the ID, as the node's last ID.  Nodes that
 *	  overlap the session's node may have issued IDs with the same bits, but were forgotten
 *	  when the session's node got the slot: they start anew, above the ID.
 *
 * Only after scru64_set_ceiling() with a time before issued IDs can nodes issue an ID again;
 * doc/troubleshooting.md says when to do that.  Even then a session generates only IDs of its own
 * node, and node_slots.c starts a node anew if its state has another node's bits.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"

#include "clock.h"
#include "shmem/slots.h"

/* Seconds between two log messages of one kind about one subject */
#define LOG_INTERVAL		60

NodeSlots  *node_slots = NULL;

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

static void
init_slots(void *part, int tranche_id)
{
	NodeSlots  *slots = part;

	LWLockInitialize(&slots->lock, tranche_id);
	for (int i = 0; i < LOG_KINDS * LOG_TIMES; i++)
		pg_atomic_init_u64(&slots->logged[i / LOG_TIMES][i % LOG_TIMES], 0);
	for (int i = 0; i < NODE_SLOTS; i++)
		init_slot(&slots->slots[i]);
	init_slot(&slots->leased);
}

const SharedPart slots_part = {
	.size = sizeof(NodeSlots),
	.init = init_slots,
	.part = (void **) &node_slots
};

/*
 * May a message about a subject be logged again?  By the monotonic clock: some messages are
 * about the system clock.
 */
bool
slots_log_is_due(LogKind kind, uint32 subject)
{
	pg_atomic_uint64 *logged = &node_slots->logged[kind][subject % LOG_TIMES];
	uint64		last = pg_atomic_read_u64(logged);
	uint64		now = (uint64) monotonic_ms() / 1000;

	return (last == 0 || now - last >= LOG_INTERVAL) &&
		pg_atomic_compare_exchange_u64(logged, &last, Max(now, 1));
}

/*
 * The start marker of a node that starts above a tick.
 *
 * Start markers of one tick differ by their serial numbers.  After 16.7 million markers the
 * numbers begin again, and the closed tick rises, above the floor, too: markers at the closed
 * tick are later than before.  Others come again only if 16.7 million are made in one tick.
 */
uint64
slots_make_start(uint64 timestamp)
{
	uint32		serial = node_slots->next_serial++;

	if (serial == SCRU64_MAX_NODE_CTR)
	{
		node_slots->next_serial = 0;
		node_slots->watermark.closed_tick =
			Min(Max(node_slots->floor, node_slots->watermark.closed_tick) + 1,
				SCRU64_LAST_TIMESTAMP);
	}
	return NODE_STATE_NO_ID | scru64_compose(timestamp, serial);
}

/* The start marker of a node that starts above a tick, and above the closed tick. */
uint64
slots_start_above_closed(uint64 timestamp)
{
	return slots_make_start(Max(timestamp, node_slots->watermark.closed_tick));
}

/* Reopen all ticks above this one: earlier watermarks need not hold for the IDs to come. */
void
slots_restart_watermark(uint64 tick)
{
	Watermark  *watermark = &node_slots->watermark;

	watermark->closed_tick = tick;
	watermark->restarts++;
	watermark->highest = Min(watermark->highest, scru64_compose(tick + 1, 0));
	memset(&watermark->answers, 0, sizeof(AnswerRing));
}

/* node_state_last() for a node */
uint64
slots_last_id(Scru64Node node, uint64 state)
{
	Generator	generator = generator_make(node);

	return node_state_last(state, &generator);
}

/* Report the node that has this slot.  False if the slot is free. */
bool
slot_report(NodeSlot *slot, NodeReport *report)
{
	NodeKey		key = pg_atomic_read_u32(&slot->key);
	uint64		state = pg_atomic_read_u64(&slot->state);

	if (key == 0)
		return false;
	report->node = node_of_key(key);
	report->is_leased = slot == &node_slots->leased;
	report->state = slot_progress(slot, state);
	report->tick = node_state_tick(state);
	report->last_id = slots_last_id(report->node, report->state);
	for (int i = 0; i < NODE_COUNTS; i++)
		report->counts[i] = pg_atomic_read_u64(&slot->counts[i]);
	return true;
}

/* How far a node with this state really got: its last ID, or its first start marker. */
uint64
slot_progress(const NodeSlot *slot, uint64 state)
{
	Assert(LWLockHeldByMe(&node_slots->lock));
	return node_state_is_id(state) ? state : slot->progress;
}

/*
 * Evict the node from its slot, and return slot_progress().  Lock held exclusively.
 *
 * Ordering: until the exchange, a session of the node may advance the state; the exchange then
 * returns the session's ID (mutant: evict-split), and later the session's compare-and-swap
 * fails.  The exchange is an acquire: from here on we see the session's entry in
 * open_transactions.c for the ID (mutant: advertised-late).
 */
uint64
slot_evict(NodeSlot *slot)
{
	pg_atomic_write_u32(&slot->key, 0);
	return slot_progress(slot, pg_atomic_exchange_u64(&slot->state, NODE_STATE_CHANGING));
}

/* Is the node's next ID, after its last ID or start marker, above the closed tick? */
static bool
may_continue(uint64 progress)
{
	uint64		tick = node_state_tick(progress);
	uint64		closed = node_slots->watermark.closed_tick;

	return node_state_is_id(progress) ? tick > closed : tick >= closed;
}

/*
 * Give a free slot to a node, which continues after progress, its last ID or start marker.  If
 * the next ID would not be above the closed tick, the node starts above that tick instead.
 *
 * Ordering: the barrier makes the cleared key (perhaps cleared by another process) and the
 * limit of a new lease visible before the new state, because node_slot_read() takes no lock
 * (mutants: barrier-after-state, no-read-barrier).  State and key need no order: with the new
 * key and the old state, a compare-and-swap fails.
 */
void
slot_give(NodeSlot *slot, NodeKey key, uint64 progress)
{
	uint64		state = may_continue(progress) ? progress :
		slots_start_above_closed(node_slots->floor);

	slot->progress = progress;
	pg_write_barrier();
	pg_atomic_write_u64(&slot->state, state);
	pg_atomic_write_u32(&slot->key, key);
}

/*
 * Raise the floor to the tick of a node's last ID, so that the ID may be forgotten.  A start
 * marker does not raise the floor: the marker of a lease may be far above the ceiling.
 */
void
slots_raise_floor(uint64 state)
{
	if (node_state_is_id(state))
		node_slots->floor = Max(node_slots->floor, node_state_tick(state));
}

/* slot_give() to a node that had no slot: its counts begin with 0. */
NodeSlot *
slot_start(NodeSlot *slot, NodeKey key, uint64 progress, uint64 now)
{
	pg_atomic_write_u64(&slot->clock, now);
	pg_atomic_write_u64(&slot->entered, 0);
	for (int i = 0; i < NODE_COUNTS; i++)
		pg_atomic_write_u64(&slot->counts[i], 0);
	slot_give(slot, key, progress);
	return slot;
}
