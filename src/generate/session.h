/*-------------------------------------------------------------------------
 *
 * session.h
 *		What a session keeps of its node.
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
	NodeSlot   *slot;			/* NULL: none was found yet, or the setting has changed */
	NodeKey		key;			/* the node that the slot was found for */
	Generator	generator;
	uint64		open_tick;		/* the session may issue IDs of this tick, */
	int			open_level;		/* at this synchronous_commit */
} SessionNode;

extern SessionNode session_node;

/* Does the session use the node that the server has leased? */
static inline bool
session_node_is_leased(void)
{
	return configured_node.node.node_id_size == 0;
}

/*
 * May the session issue IDs of this tick, as far as it has found out?  Another one may
 * have entered it, for which less has to be safe.
 */
static inline bool
tick_is_open(uint64 tick)
{
	return tick == session_node.open_tick && synchronous_commit == session_node.open_level;
}

extern void detach_node(void);

#endif							/* SESSION_H */
