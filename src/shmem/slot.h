/*------------------------------------------------------------------------
 *
 * slot.h
 *		A node's slot in shared memory, as sessions use it: without a lock.
 *
 * See slots.c for what guards what.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SLOT_H
#define SLOT_H

#include "port/atomics.h"

#include "pure/generator.h"
#include "pure/node_spec.h"
#include "pure/scru64.h"

/* The counts of a node.  No ID depends on them. */
typedef enum NodeCount
{
	NODE_OVERFLOWS,				/* ticks entered because the counter was full */
	NODE_ROLLBACKS,				/* times the clock went back */
	NODE_WAITS,					/* IDs that had to wait for the clock, */
	NODE_SATURATED,				/* and those of them because the counter was full */
	NODE_USED,					/* IDs of the ticks before the current one */
	NODE_COUNTS
} NodeCount;

/*
 * On cache lines of its own.  Without the lock of slots.c only the functions below read
 * and write it, but for the clock, which generate.c observes.
 */
typedef struct pg_attribute_aligned(PG_CACHE_LINE_SIZE) NodeSlot
{
	pg_atomic_uint64 state;		/* last ID, or a start; see slots.c */
	pg_atomic_uint32 key;		/* NodeKey, or 0 while free or changing */
	pg_atomic_uint64 limit;		/* no ID after this tick: a lease's end */
	pg_atomic_uint64 clock;		/* the clock as last seen, in ticks */
	pg_atomic_uint64 entered;	/* first ID of the last tick that was entered */
	pg_atomic_uint64 counts[NODE_COUNTS];
	uint64		left;			/* where state is a start: see slots.c */
} NodeSlot;

/*
 * State words with this bit are no ID.  generator_increment() never takes one: its
 * timestamp is far ahead of every clock.
 */
#define NODE_STATE_NO_ID	(UINT64_C(1) << 63)

/* The slot is being given to another node: attach again. */
#define NODE_STATE_CHANGING UINT64_MAX

static inline bool
node_state_is_id(uint64 state)
{
	return (state & NODE_STATE_NO_ID) == 0;
}

/* The tick of the last ID, or of the start, in which the node issues nothing. */
static inline uint64
node_state_tick(uint64 state)
{
	return scru64_get_timestamp(state & ~NODE_STATE_NO_ID);
}

/* The last ID of a state word other than CHANGING; for a start, the last of its tick. */
static inline uint64
node_state_last(uint64 state, const Generator *generator)
{
	return node_state_is_id(state) ? state :
		generator_last_of_tick(generator, node_state_tick(state));
}

/* A node in use. */
typedef struct NodeReport
{
	Scru64Node	node;
	uint64		state;			/* its last ID, or its first start */
	uint64		last_id;		/* node_state_last() of that */
	uint64		tick;			/* its next ID is of this one or later */
	uint64		counts[NODE_COUNTS];
} NodeReport;

/*
 * Read a node's state word.  False if the slot is no longer this node's: then
 * attach again.
 *
 * Ordering: the state is read before the key.  slot_evict() clears the key, and only after
 * that slot_give() writes the state of another node.  So if the key is right here and the
 * state is still the same when node_slot_advance() compares it, the node had the slot all
 * the time, or has got it again with the same state; slots.c says why no other state comes
 * back (litmus: key-old-session, key-new-session).
 *
 * The key tells nodes apart where the state does not: a start marker has no node's bits,
 * and an ID may have those of two nodes, of which one was retired for the other.
 */
static inline bool
node_slot_read(NodeSlot *slot, NodeKey key, uint64 *state)
{
	*state = pg_atomic_read_u64(&slot->state);
	pg_read_barrier();
	return pg_atomic_read_u32(&slot->key) == key;
}

/*
 * The last tick of the slot's lease.  A session reads it before it enters a tick, not at
 * every ID.
 *
 * Ordering: it is read after the state, by the barrier of node_slot_read().  It never falls
 * while a lease has the slot, so the node has this limit or a later one when its state is
 * compared (litmus: limit-old-session, limit-new-lease, limit-new-node).
 */
static inline uint64
node_slot_limit(NodeSlot *slot)
{
	return pg_atomic_read_u64(&slot->limit);
}

/*
 * Make next the node's last ID if its state is still the expected one.  False, with
 * *expected set anew, if another session was faster.
 *
 * Ordering: a compare-and-swap is an acquire, also one that fails, and a release.  It is
 * no full barrier: on ARM, a read after it may come before others see the new state.
 * Nothing here needs more (litmus: entry-state, entry-fast-forward).
 */
static inline bool
node_slot_advance(NodeSlot *slot, uint64 *expected, uint64 next)
{
	return pg_atomic_compare_exchange_u64(&slot->state, expected, next);
}

static inline void
node_slot_count(NodeSlot *slot, NodeCount what)
{
	pg_atomic_fetch_add_u64(&slot->counts[what], 1);
}

/*
 * Count the IDs of the tick that a node has left by advancing from last to next.  The
 * session that has entered the next tick calls it, once a tick.
 *
 * Ordering: none.  Two sessions that are late by a tick count a bit wrong, which does not
 * matter.
 */
static inline void
node_slot_count_used(NodeSlot *slot, uint64 last, uint64 next)
{
	uint64		entered = pg_atomic_exchange_u64(&slot->entered, next);

	if (scru64_get_timestamp(entered) == scru64_get_timestamp(last) && entered <= last)
		pg_atomic_fetch_add_u64(&slot->counts[NODE_USED], last - entered + 1);
}

#endif							/* SLOT_H */
