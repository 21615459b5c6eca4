/*-------------------------------------------------------------------------
 *
 * attach.h
 *		The session's node: find its slot, and see to it that it may enter a tick.
 *
 *-------------------------------------------------------------------------
 */
#ifndef ATTACH_H
#define ATTACH_H

#include "access/xact.h"

#include "settings.h"

/*
 * May IDs of this tick leave in this session, as far as it has found out?  Another one
 * may have entered it, for which less has to be safe.
 */
static inline bool
tick_is_open(uint64 tick)
{
	return tick == session_node.open_tick && synchronous_commit == session_node.open_level;
}

extern void attach_node(void);
extern bool open_tick(uint64 state, uint64 tick, uint64 now, bool overflow, uint64 *paid);

#endif							/* ATTACH_H */
