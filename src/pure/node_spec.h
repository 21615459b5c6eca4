/*-------------------------------------------------------------------------
 *
 * node_spec.h
 *		Node specs: a generator's node, as users write it.
 *
 * Knows nothing of PostgreSQL, allocates nothing, keeps no state.  Specification
 * v1.0.0, "Node spec API": 'node_id/node_id_size', where the left side is
 *
 *		decimal			42/8
 *		hexadecimal		0xb00/12
 *		node_prev		0u2r85hm2pt3/16, an ID to continue after
 *
 *-------------------------------------------------------------------------
 */
#ifndef NODE_SPEC_H
#define NODE_SPEC_H

#include "pure/scru64.h"

/* Bytes that node_spec_format() may write, the NUL included. */
#define NODE_SPEC_BUFLEN	16

typedef struct NodeSpec
{
	Scru64Node	node;
	uint64_t	node_prev;		/* continue after this ID; 0 if there is none */
} NodeSpec;

typedef enum NodeSpecStatus
{
	NODE_SPEC_OK,
	NODE_SPEC_BAD_SYNTAX,		/* not of one of the three forms */
	NODE_SPEC_BAD_SIZE,			/* node_id_size is not 1 .. 23 */
	NODE_SPEC_BAD_NODE_ID		/* node_id does not fit in node_id_size bits */
} NodeSpecStatus;

/*
 * Read a NUL-terminated node spec.  *spec is set if and only if the result is
 * NODE_SPEC_OK.
 *
 * No generator issues an ID of timestamp 0: a spec with such a node_prev names only
 * its node, and node_prev is set to 0.
 */
extern NodeSpecStatus node_spec_parse(const char *text, NodeSpec *spec);

/*
 * Write a spec so that node_spec_parse() reads it back: the node_prev form if
 * there is a node_prev, else the decimal one.  buf has NODE_SPEC_BUFLEN bytes.
 */
extern void node_spec_format(const NodeSpec *spec, char *buf);

/*
 * Do two nodes share any node_ctr?  They do if the bits of one node_id are a prefix of
 * the bits of the other, or the same.
 */
extern bool nodes_overlap(Scru64Node a, Scru64Node b);

/* A node as one number, to be compared in one instruction; never 0. */
typedef uint32_t NodeKey;

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

#endif							/* NODE_SPEC_H */
