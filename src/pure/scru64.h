/*-------------------------------------------------------------------------
 *
 * scru64.h
 *		The layout of a SCRU64 ID: constants and accessors.
 *
 * Knows nothing of PostgreSQL.  Follows the SCRU64 specification v1.0.0:
 *
 *		id = timestamp << 24 | node_id << (24 - node_id_size) | counter
 *
 * Invariants:
 *
 *	- A valid ID is 0 .. SCRU64_MAX_ID.  It fits in 63 bits, so the same
 *	  number can be kept as a signed or as an unsigned 64-bit integer.
 *	- A timestamp is Unix time in ticks of 256 milliseconds,
 *	  0 .. SCRU64_MAX_TIMESTAMP.  The IDs of the first and the last tick are
 *	  reserved: valid values that no generator may issue.
 *	- node_ctr is node_id and counter together: the low 24 bits.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SCRU64_H
#define SCRU64_H

#include <stdbool.h>
#include <stdint.h>

#define SCRU64_NODE_CTR_SIZE	24	/* bits of node_id and counter together */
#define SCRU64_MAX_NODE_CTR		((UINT32_C(1) << SCRU64_NODE_CTR_SIZE) - 1)

#define SCRU64_MAX_ID			UINT64_C(4738381338321616895)	/* 36^12 - 1 */
#define SCRU64_MAX_TIMESTAMP	(SCRU64_MAX_ID >> SCRU64_NODE_CTR_SIZE)

/* The ticks whose IDs may be generated; the two around them are reserved. */
#define SCRU64_FIRST_TIMESTAMP	UINT64_C(1)
#define SCRU64_LAST_TIMESTAMP	(SCRU64_MAX_TIMESTAMP - 1)

#define SCRU64_MIN_NODE_ID_SIZE 1
#define SCRU64_MAX_NODE_ID_SIZE 23

/* A tick is 2^8 milliseconds. */
#define SCRU64_TICK_SHIFT		8
#define SCRU64_TICK_MS			(1 << SCRU64_TICK_SHIFT)

/* A generator's node.  Unset: node_id_size is 0. */
typedef struct Scru64Node
{
	uint32_t	node_id;		/* 0 .. 2^node_id_size - 1 */
	uint32_t	node_id_size;	/* bits, 1 .. 23 */
} Scru64Node;

/* Unlike Min() and Max(), these evaluate once an argument that others may be changing. */
static inline uint64_t
least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t
greatest_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline uint64_t
scru64_get_timestamp(uint64_t id)
{
	return id >> SCRU64_NODE_CTR_SIZE;
}

static inline uint32_t
scru64_get_node_ctr(uint64_t id)
{
	return (uint32_t) (id & SCRU64_MAX_NODE_CTR);
}

/*
 * The ID of a timestamp and a node_ctr, both inside their ranges.  Every such
 * pair gives a valid ID: 36^12 is a multiple of 2^24.
 */
static inline uint64_t
scru64_compose(uint64_t timestamp, uint32_t node_ctr)
{
	return timestamp << SCRU64_NODE_CTR_SIZE | node_ctr;
}

/* The node's own bits of a node_ctr: its node_ctr with counter 0. */
static inline uint32_t
scru64_node_base(Scru64Node node)
{
	return node.node_id << (SCRU64_NODE_CTR_SIZE - node.node_id_size);
}

/* The largest counter of a node, which is also the mask of the counter. */
static inline uint32_t
scru64_max_counter(Scru64Node node)
{
	return SCRU64_MAX_NODE_CTR >> node.node_id_size;
}

#endif							/* SCRU64_H */
