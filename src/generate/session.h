/*-------------------------------------------------------------------------
 *
 * session.h
 *		The session's node.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SESSION_H
#define SESSION_H

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
session_node_is_leased(void)
{
	return configured_node.node.node_id_size == 0;
}

/*
 * Has the session opened this tick, at its present synchronous_commit?  A tick opened by
 * another session does not count: the other synchronous_commit may be lower.
 */
static inline bool
tick_is_open(uint64 tick)
{
	return tick == session_node.open_tick && synchronous_commit == session_node.open_level;
}

extern void detach_node(void);

#endif							/* SESSION_H */
