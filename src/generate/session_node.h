/*-------------------------------------------------------------------------
 *
 * session_node.h
 *		The node whose IDs this session generates: where its slot is, and which tick is open.
 *
 * A slot is a node's place in shared memory.  To open a tick is to make sure that the ceiling and
 * the lease reach the tick; then the session generates the tick's IDs without asking again.  For
 * generate.c; module.c detaches the session when its node changes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SESSION_NODE_H
#define SESSION_NODE_H

#include "access/xact.h"

#include "pure/generator.h"
#include "settings.h"
#include "shmem/slot.h"

typedef struct SessionNode
{
	NodeSlot   *slot;			/* NULL: not found yet, or the setting has changed */
	NodeKey		key;			/* of the node for which the slot was found */
	Generator	generator;
	uint64		open_tick;		/* the tick that the session has opened last, */
	int			open_level;		/* with this synchronous_commit */
} SessionNode;

extern SessionNode session_node;

/* Does the session use the node that the server has leased? */
static inline bool
session_is_leased(void)
{
	return configured_node.node.node_id_size == 0;
}

/* Has the node issued the last ID of a tick?  A start marker is no ID. */
static inline bool
session_node_is_full(uint64 state)
{
	uint64		max_counter = session_node.generator.max_counter;

	return node_state_is_id(state) && (state & max_counter) == max_counter;
}

/*
 * Has the session opened this tick, at its present synchronous_commit?  A tick opened by
 * another session does not count: the other synchronous_commit may be lower.
 */
static inline bool
session_tick_is_open(uint64 tick)
{
	return tick == session_node.open_tick && synchronous_commit == session_node.open_level;
}

extern void session_detach(void);
extern void session_attach(void);
extern bool session_open_tick(uint32 incarnation, uint64 tick, uint64 now, bool overflow,
							  bool *raised);

#endif							/* SESSION_NODE_H */
