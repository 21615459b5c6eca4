/*-------------------------------------------------------------------------
 *
 * attach.h
 *		The session's node: find its slot, and open a tick for it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef ATTACH_H
#define ATTACH_H

extern void attach_node(void);
extern bool open_tick(uint32 generation, uint64 tick, uint64 now, bool overflow, bool *raised);

#endif							/* ATTACH_H */
