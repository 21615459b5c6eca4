/*-------------------------------------------------------------------------
 *
 * node_state.h
 *		The state of the nodes in use on this server, shared by all sessions.
 *
 * Upper storey.  See node_state.c for what guards what.
 *
 *-------------------------------------------------------------------------
 */
#ifndef NODE_STATE_H
#define NODE_STATE_H

#include "port/atomics.h"

#include "generator.h"
#include "node_spec.h"
#include "scru64.h"

/* Nodes that can be in use at the same time without taking turns. */
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
typedef struct NodeSlot
{
	pg_atomic_uint64 state;		/* last ID, or a start; see node_state.c */
	pg_atomic_uint32 key;		/* NodeKey, or 0 while free or changing */
	pg_atomic_uint64 durable;	/* IDs up to this tick may be given out */
	pg_atomic_uint64 wanted;	/* what durable is to be after the next write */
	pg_atomic_uint64 clock;		/* the clock as last seen, in ticks */
	pg_atomic_uint64 counter_overflows;
	pg_atomic_uint64 clock_rollbacks;
	pg_atomic_uint64 waits;
	pg_atomic_uint64 rollback_logged;	/* when, in monotonic seconds; or 0 */
	pg_atomic_uint64 wait_logged;	/* likewise */
} NodeSlot;

/*
 * State words with this bit are no ID.  Any of them reads as a timestamp far
 * ahead of every clock, so that generator_increment() never takes one.
 */
#define NODE_STATE_NO_ID	(UINT64_C(1) << 63)

/* The slot is being given to another node: attach again. */
#define NODE_STATE_CHANGING UINT64_MAX

/* Why a session did not get its node's slot. */
typedef enum NodeAttachStatus
{
	NODE_ATTACHED,
	NODE_OVERLAPS,				/* *obstacle is the node in use */
	NODE_PREV_AHEAD				/* node_prev is hopelessly ahead of the clock */
} NodeAttachStatus;

/* What the view shows of a node. */
typedef struct NodeReport
{
	Scru64Node	node;
	uint64		last_id;		/* 0 if it has given out none since the start */
	uint64		reached;		/* every ID it gave out is at or below; or 0 */
	uint64		durable;		/* in ticks; 0 if nothing is in the file yet */
	uint64		counter_overflows;
	uint64		clock_rollbacks;
	uint64		waits;
} NodeReport;

extern Size node_state_size(void);
extern NodeAttachStatus node_state_attach(const NodeSpec *spec, uint64 now,
										  uint64 allowance, NodeSlot **slot,
										  NodeReport *obstacle);
extern int	node_state_report(NodeReport reports[NODE_SLOTS]);
extern uint64 node_state_last(uint64 state, const Generator *generator);
extern void node_state_make_durable(NodeSlot *slot, NodeKey key,
									uint64 timestamp, uint64 foreseen);

/*
 * The tick up to which IDs may be given out: a ceiling at or above it is on
 * disk.
 *
 * Ordering: it is raised after the file was written, and a session reads it
 * before it advances the state, which is a full barrier.  If the slot was given
 * to another node in between, that fails.
 */
static inline uint64
node_state_durable(NodeSlot *slot)
{
	return pg_atomic_read_u64(&slot->durable);
}

/*
 * Read a node's state word.  False if the slot is no longer this node's: then
 * attach again.
 *
 * Ordering: the state is read before the key.  Whoever takes a slot away
 * clears the key before it touches the state, and whoever gives it to a node
 * writes the state before the key.  A state word never comes back under
 * another node (see node_state.c).  So if the key is right here and the state
 * is still the same when node_state_advance() compares it, the slot was this
 * node's all the time.
 */
static inline bool
node_state_read(NodeSlot *slot, NodeKey key, uint64 *state)
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
node_state_advance(NodeSlot *slot, uint64 *expected, uint64 next)
{
	return pg_atomic_compare_exchange_u64(&slot->state, expected, next);
}

#endif							/* NODE_STATE_H */
