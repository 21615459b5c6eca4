/*-------------------------------------------------------------------------
 *
 * slot.h
 *		A node's slot, its place in shared memory, as sessions use it: without a lock.
 *
 * A session reads the node's last ID from the slot, and puts the next one there by
 * compare-and-swap.  The node of a slot changes only under the lock of slots.c, which says what
 * guards what; a session that comes late finds another key in the slot.
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
	NODE_SATURATED,				/* of these, because the counter was full */
	NODE_USED,					/* IDs of the ticks before the current one */
	NODE_COUNTS
} NodeCount;

/*
 * A slot has its own cache lines.  Without the lock of slots.c, processes access it only by
 * the functions below, except for the clock, which generate.c observes.
 */
typedef struct pg_attribute_aligned(PG_CACHE_LINE_SIZE) NodeSlot
{
	pg_atomic_uint64 state;		/* last ID, or a start marker; see slots.c */
	pg_atomic_uint32 key;		/* NodeKey, or 0 while free or changing */
	pg_atomic_uint64 limit;		/* the last tick of IDs: the end of a lease */
	pg_atomic_uint64 clock;		/* the clock as last seen, in ticks */
	pg_atomic_uint64 entered;	/* first ID of the last tick that was entered */
	pg_atomic_uint64 counts[NODE_COUNTS];
	uint64		progress;		/* if state is a start marker; see slots.c */
} NodeSlot;

/*
 * A state word with this bit is not an ID.  generator_increment() never accepts one, because
 * its timestamp is far ahead of every clock.
 */
#define NODE_STATE_NO_ID	(UINT64_C(1) << 63)

/* No node has the slot: attach again. */
#define NODE_STATE_CHANGING UINT64_MAX

static inline bool
node_state_is_id(uint64 state)
{
	return (state & NODE_STATE_NO_ID) == 0;
}

/* The tick of the last ID or of the start marker.  A start marker has no ID in its tick. */
static inline uint64
node_state_tick(uint64 state)
{
	return scru64_get_timestamp(state & ~NODE_STATE_NO_ID);
}

/* The last ID of a state other than CHANGING; for a start marker, the last of its tick. */
static inline uint64
node_state_last(uint64 state, const Generator *generator)
{
	return node_state_is_id(state) ? state :
		generator_last_of_tick(generator, node_state_tick(state));
}

/* A report about a node */
typedef struct NodeReport
{
	Scru64Node	node;
	bool		is_leased;		/* is it, or was it, the leased node? */
	uint64		state;			/* its last ID, or its first start marker */
	uint64		last_id;		/* node_state_last() of state */
	uint64		tick;			/* its next ID is of this tick or a later one */
	uint64		counts[NODE_COUNTS];
} NodeReport;

/*
 * Fetch the cache line of the state word for writing.  A session that only reads the word before
 * it writes to it fetches the line twice, from the processor of the session that was there last.
 */
static inline void
node_slot_prefetch(NodeSlot *slot)
{
#if defined(__x86_64__) && defined(__GNUC__)
	/* __builtin_prefetch() gives the instruction only for processors that surely have it */
	__asm__ volatile ("prefetchw %0" : : "m" (slot->state));
#elif defined(__GNUC__)
	__builtin_prefetch(&slot->state, 1);
#else
	(void) slot;
#endif
}

/*
 * Read a node's state word.  False if the slot is no longer this node's: then attach again.
 *
 * Ordering: the state is read before the key.  slot_evict() clears the key, and only then
 * slot_give() writes the state of another node.  So if the key is right here, and
 * node_slot_advance() still finds the same state, the node has had the slot all the time, or
 * has got it back with this state, which is harmless; slots.c says why (mutants:
 * no-read-barrier, key-not-compared).
 *
 * The key tells nodes apart where the state does not: a start marker has no node's bits, and
 * an ID may have the bits of two nodes that overlap, one of which was evicted for the other.
 */
static inline bool
node_slot_read(NodeSlot *slot, NodeKey key, uint64 *state)
{
	*state = pg_atomic_read_u64(&slot->state);
	pg_read_barrier();
	return pg_atomic_read_u32(&slot->key) == key;
}

/*
 * The last tick of the slot's lease.  A session reads this limit when it enters a tick, not at
 * every ID.
 *
 * Ordering: the limit is read after the state, by the barrier of node_slot_read().  It never
 * falls while a lease has the slot, so the node has this limit or a later one when the state
 * is compared (mutants: limit-before-eviction, limit-late, no-read-barrier).
 */
static inline uint64
node_slot_limit(NodeSlot *slot)
{
	return pg_atomic_read_u64(&slot->limit);
}

/*
 * Advance the node to the ID next, if its state is still *expected.  Otherwise return false,
 * with the present state in *expected.
 *
 * Ordering: a compare-and-swap is a release, and an acquire even if it fails.  It is no full
 * barrier: on ARM, a read after it may come before others see the new state.  Nothing here
 * needs a full barrier (mutants: advertised-late, fast-forward-split).
 */
static inline bool
node_slot_advance(NodeSlot *slot, uint64 *expected, uint64 next)
{
	return pg_atomic_compare_exchange_u64(&slot->state, expected, next);
}

static inline void
node_slot_count(NodeSlot *slot, NodeCount count)
{
	pg_atomic_fetch_add_u64(&slot->counts[count], 1);
}

/*
 * Count the IDs of the tick that the node leaves by advancing from last to next.  The session
 * that enters the next tick calls this, once a tick; a fast-forward calls it with next 0.
 *
 * Ordering: none.  If two sessions are late by a tick, the count is a bit wrong, and no ID
 * depends on it.
 */
static inline void
node_slot_count_used(NodeSlot *slot, uint64 last, uint64 next)
{
	uint64		entered = pg_atomic_exchange_u64(&slot->entered, next);

	if (scru64_get_timestamp(entered) == scru64_get_timestamp(last) && entered <= last)
		pg_atomic_fetch_add_u64(&slot->counts[NODE_USED], last - entered + 1);
}

#endif							/* SLOT_H */
