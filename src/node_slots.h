/*-------------------------------------------------------------------------
 *
 * node_slots.h
 *		The nodes in use on this server, shared by all sessions.
 *
 * Upper storey.  See node_slots.c for what guards what.
 *
 *-------------------------------------------------------------------------
 */
#ifndef NODE_SLOTS_H
#define NODE_SLOTS_H

#include "port/atomics.h"

#include "generator.h"
#include "node_spec.h"
#include "scru64.h"

/* Nodes that have a slot at the same time. */
#define NODE_SLOTS		128

/* A node as one number, to be compared in one instruction; never 0. */
typedef uint32 NodeKey;

#define NODE_KEY_SIZE_BITS	5

static inline NodeKey
node_key(Scru64Node node)
{
	return node.node_id << NODE_KEY_SIZE_BITS | node.node_id_size;
}

static inline Scru64Node
node_of_key(NodeKey key)
{
	Scru64Node	node = {
		.node_id = key >> NODE_KEY_SIZE_BITS,
		.node_id_size = key & ((1 << NODE_KEY_SIZE_BITS) - 1)
	};

	return node;
}

/*
 * One node's state, on a cache line of its own.  Read and written through the
 * functions below only.
 */
typedef struct pg_attribute_aligned(PG_CACHE_LINE_SIZE) NodeSlot
{
	pg_atomic_uint64 state;		/* last ID, or a start; see node_slots.c */
	pg_atomic_uint32 key;		/* NodeKey, or 0 while free or changing */
	pg_atomic_uint32 life;		/* how often the slot was taken from a node */
	pg_atomic_uint64 limit;		/* no ID after this tick: a lease's end */
	pg_atomic_uint64 clock;		/* the clock as last seen, in ticks */
	pg_atomic_uint64 counter_overflows;
	pg_atomic_uint64 clock_rollbacks;
	pg_atomic_uint64 waits;
	pg_atomic_uint64 saturated; /* those of the waits that were for a full counter */
	pg_atomic_uint64 entered;	/* first ID of the last tick that was entered */
	pg_atomic_uint64 used;		/* IDs of the ticks before that */
} NodeSlot;

/*
 * State words with this bit are no ID.  Any of them reads as a timestamp far
 * ahead of every clock, so that generator_increment() never takes one.
 */
#define NODE_STATE_NO_ID	(UINT64_C(1) << 63)

/* The slot is being given to another node: attach again. */
#define NODE_STATE_CHANGING UINT64_MAX

static inline bool
node_state_is_id(uint64 state)
{
	return (state & NODE_STATE_NO_ID) == 0;
}

/* The tick at or before which the node of a state word gives out nothing. */
static inline uint64
node_state_tick(uint64 state)
{
	return scru64_get_timestamp(state & ~NODE_STATE_NO_ID);
}

/*
 * The last ID that a state word other than CHANGING stands for; for a start,
 * the last one that its tick could have had.
 */
static inline uint64
node_state_last(uint64 state, const Generator *generator)
{
	return node_state_is_id(state) ? state :
		generator_last_of_tick(generator, node_state_tick(state));
}

/* What there is to know of a node in use. */
typedef struct NodeReport
{
	Scru64Node	node;
	uint64		state;
	uint64		counter_overflows;
	uint64		clock_rollbacks;
	uint64		waits;
	uint64		saturated;
	uint64		used;
} NodeReport;

/* What ceiling.c keeps with the slots; see there for what guards what. */
typedef struct Reservation
{
	pg_atomic_uint32 loaded;	/* do the slots start above the ceiling? */
	uint64		written;		/* the ceiling that was written last, in ticks */
	pg_atomic_uint64 durable;	/* IDs up to this tick may be given out */
} Reservation;

/* What lease.c keeps with the slots; see there for what guards what. */
typedef struct Lease Lease;

/* What came of giving the sessions another leased node. */
typedef enum HandOver
{
	HAND_OVER_DONE,
	HAND_OVER_ENDED,			/* there is no lease any more */
	HAND_OVER_OVERLAPS,			/* the node shares IDs with one set by hand */
	HAND_OVER_TOO_SHORT,		/* its lease ends too early */
	HAND_OVER_AHEAD				/* its lease begins ahead of the clock */
} HandOver;

/* What is logged at most once in a while about a node. */
typedef enum NodeLogKind
{
	NODE_LOG_START,
	NODE_LOG_ROLLBACK,
	NODE_LOG_WAIT,
	NODE_LOG_KINDS
} NodeLogKind;

extern Size node_slots_size(void);
extern NodeSlot *node_slots_find(Scru64Node node, uint64 now, uint64 allowance,
								 uint64 *state, NodeReport *obstacle);
extern void node_slots_restart(uint64 floor);
extern NodeSlot *node_slots_find_leased(NodeKey *key, uint64 *state);
extern bool node_slots_start_lease(Scru64Node node, uint64 timestamp, uint64 limit);
extern HandOver node_slots_hand_over(Scru64Node node, uint64 timestamp, uint64 limit,
									 uint64 now, uint64 allowance, uint64 *state);
extern void node_slots_extend_lease(Scru64Node node, uint64 limit);
extern uint64 node_slots_end_lease(Scru64Node *node);
extern bool node_slots_report_lease(NodeReport *report);
extern int	node_slots_report(NodeReport reports[NODE_SLOTS + 1]);
extern bool node_slots_log_is_due(NodeLogKind kind, NodeKey key);
extern Reservation *node_slots_reservation(void);
extern Lease *node_slots_lease(void);

/*
 * The tick up to which IDs may be given out.
 *
 * Ordering: a session reads it before it advances a state, which is a full
 * barrier.  It is raised after the ceiling was flushed, and lowered before all
 * slots are taken from their nodes: then that fails.
 */
static inline uint64
node_slots_durable(void)
{
	return pg_atomic_read_u64(&node_slots_reservation()->durable);
}

/*
 * Read a node's state word.  False if the slot is no longer this node's: then
 * attach again.
 *
 * Ordering: the state is read before the key.  Whoever takes a slot away
 * clears the key before it touches the state, and whoever gives it to a node
 * writes the state before the key.  A state word never comes back under
 * another node (see node_slots.c).  So if the key is right here and the state
 * is still the same when node_slot_advance() compares it, the slot was this
 * node's all the time, or has come back to it with the same last ID.
 */
static inline bool
node_slot_read(NodeSlot *slot, NodeKey key, uint64 *state)
{
	*state = pg_atomic_read_u64(&slot->state);
	pg_read_barrier();
	return pg_atomic_read_u32(&slot->key) == key;
}

/*
 * Make next the node's last ID if its state is still the expected one.  A full
 * barrier.  False, with *expected set anew, if another session was faster.
 */
static inline bool
node_slot_advance(NodeSlot *slot, uint64 *expected, uint64 next)
{
	return pg_atomic_compare_exchange_u64(&slot->state, expected, next);
}

/*
 * The life of a slot.  IDs that a session has taken from a node are good as long as
 * it is the same: then nobody has taken the slot away, to start its node anew.
 *
 * Ordering: it is read before the state, and raised before that is replaced.  So IDs
 * that were taken in an older life are never thought to be of a newer one.
 */
static inline uint32
node_slot_life(NodeSlot *slot)
{
	uint32		life = pg_atomic_read_u32(&slot->life);

	pg_read_barrier();
	return life;
}

/*
 * Count the IDs of the tick that a node has left by advancing from last to next.
 * To be called once a tick, by the session that has entered the next one.
 *
 * Ordering: none.  Two that are late by a tick count a bit wrong, and it does not
 * matter.
 */
static inline void
node_slot_count_used(NodeSlot *slot, uint64 last, uint64 next)
{
	uint64		entered = pg_atomic_exchange_u64(&slot->entered, next);

	if (scru64_get_timestamp(entered) == scru64_get_timestamp(last) && entered <= last)
		pg_atomic_fetch_add_u64(&slot->used, last - entered + 1);
}

#endif							/* NODE_SLOTS_H */
