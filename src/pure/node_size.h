/*-------------------------------------------------------------------------
 *
 * node_size.h
 *		The size of a node that a load needs.
 *
 * Knows nothing of PostgreSQL.  Pure: what was seen of a node goes in, the
 * node_id_size that it should have comes out.
 *
 *	- A node whose sessions have had to wait for the clock because its counter was
 *	  full, before each of NODE_SIZE_WAITING_LOOKS looks in turn, a second or more apart,
 *	  should be larger by a step.  A burst is over sooner, or is absorbed by the
 *	  allowance.
 *	- One that has used less than 1/NODE_SIZE_QUIET of its capacity between all
 *	  looks for as long as a lease lasts should be smaller by a step.  It uses less
 *	  than a quarter of what is left then.
 *	- Never beyond the two sizes of the settings.
 *
 * A node is larger the smaller its node_id_size is.
 *
 *-------------------------------------------------------------------------
 */
#ifndef NODE_SIZE_H
#define NODE_SIZE_H

#include "pure/scru64.h"

/* Bits by which a node grows or shrinks at a time */
#define NODE_SIZE_STEP			2

#define NODE_SIZE_WAITING_LOOKS	3
#define NODE_SIZE_QUIET			16

/* Milliseconds between two looks at a node that makes sessions wait, or has grown */
#define NODE_SIZE_LOOK_MS			1000
#define NODE_SIZE_CALM_LOOK_MS		10000

/* What is remembered of a node.  Times are milliseconds of one clock. */
typedef struct NodeSize
{
	int			quiet;			/* node_id_size of a quiet server */
	int			least;			/* and of the busiest, at most quiet */
	int			current;
	int64_t		quiet_since_ms;	/* no change and no load since then */
	int64_t		looked_at_ms;
	uint64_t	saturated;		/* as seen then, since the node's beginning */
	uint64_t	used;
	int			waiting_looks;	/* the last ones, in turn */
} NodeSize;

extern void node_size_begin(NodeSize *size, int current, int64_t now_ms,
							uint64_t saturated, uint64_t used);
extern void node_size_look(NodeSize *size, int64_t now_ms, uint64_t saturated,
						   uint64_t used);
extern int64_t node_size_next_look(const NodeSize *size);
extern int	node_size_larger(const NodeSize *size);
extern int	node_size_smaller(const NodeSize *size, int64_t now_ms, int64_t ttl_ms);

#endif							/* NODE_SIZE_H */
