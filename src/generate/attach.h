/*-------------------------------------------------------------------------
 *
 * attach.h
 *		Find the slot of the session's node; open ticks for the session.
 *
 *-------------------------------------------------------------------------
 */
#ifndef ATTACH_H
#define ATTACH_H

extern void attach_node(void);
extern bool open_tick(uint32 incarnation, uint64 tick, uint64 now, bool overflow, bool *raised);

#endif							/* ATTACH_H */
