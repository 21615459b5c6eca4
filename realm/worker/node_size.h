/*-------------------------------------------------------------------------
 *
 * node_size.h
 *		How many bits of its IDs a server's node should take (node_id_size), so that the node has
 *		the capacity that sessions use.
 *
 * Knows nothing of PostgreSQL.  Pure: counts of a node go in, the node_id_size that the
 * server should lease comes out.  Node and counter share 24 bits: one bit less of node_id_size
 * doubles the capacity, the IDs of a tick.  A step is two bits, a factor of four.  The lease
 * worker looks at the counts from time to time.
 *
 *	- More capacity by a step, if sessions have had to wait for the clock because the counter
 *	  was full, before each of NODE_SIZE_WAITING_LOOKS successive looks, which are a second
 *	  or more apart.  One look is not enough: a burst is over sooner, or the
 *	  allowance absorbs it.
 *	- Less capacity by a step, if the node has used less than 1/16 (NODE_SIZE_QUIET) of it between
 *	  any two successive looks, for as long as a lease lasts.  The load then needs less than
 *	  a quarter of the new capacity.
 *	- The node_id_size is always between scru64.lease_node_id_size_min and
 *	  scru64.lease_node_id_size.
 *
 *-------------------------------------------------------------------------
 */
#ifndef NODE_SIZE_H
#define NODE_SIZE_H

#include "pure/scru64.h"

/* Bits by which node_id_size changes at a time: the capacity changes by a factor of four */
#define NODE_SIZE_STEP			2

#define NODE_SIZE_WAITING_LOOKS	3
#define NODE_SIZE_QUIET			16

/* Milliseconds between looks: while sessions wait; while a quiet server needs less capacity */
#define NODE_SIZE_LOOK_MS			1000
#define NODE_SIZE_CALM_LOOK_MS		10000

/* The settings, and the last look at a node.  Times are milliseconds of one clock. */
typedef struct NodeSize
{
	int			quiet;			/* node_id_size of a quiet server */
	int			least;			/* node_id_size of the busiest server, at most quiet */
	int			current;		/* node_id_size of the node */
	int64_t		quiet_since_ms;	/* no change and no load since then */
	int64_t		looked_at_ms;	/* when the last look was */
	uint64_t	saturated;		/* counts at the last look, see node_size_look() */
	uint64_t	used;
	int			waiting_looks;	/* successive looks before which sessions have waited */
} NodeSize;

/* Begin to look at another node; its counts now are saturated and used. */
extern void node_size_begin(NodeSize *size, int current, int64_t now_ms,
							uint64_t saturated, uint64_t used);

/*
 * Look at a node.  Does nothing if the last look was less than NODE_SIZE_LOOK_MS ago.
 *
 *	saturated	how often a session has waited for the clock because the counter was
 *				full, since the node got its slot
 *	used		how many IDs the node has issued since then
 */
extern void node_size_look(NodeSize *size, int64_t now_ms, uint64_t saturated,
						   uint64_t used);

/* When to look again, at the latest; -1: only when a session has waited. */
extern int64_t node_size_next_look(const NodeSize *size);

/* The node_id_size to change to at once, for sessions that wait; often the current one. */
extern int	node_size_after_waits(const NodeSize *size);

/* The node_id_size to change to when the lease, which lasts for ttl_ms, is renewed. */
extern int	node_size_after_quiet(const NodeSize *size, int64_t now_ms, int64_t ttl_ms);

#endif							/* NODE_SIZE_H */
