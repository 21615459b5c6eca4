/*-------------------------------------------------------------------------
 *
 * attach.h
 *		Find the slot of the session's node.
 *
 *-------------------------------------------------------------------------
 */
#ifndef ATTACH_H
#define ATTACH_H

extern void attach_node(void);

#endif							/* ATTACH_H */
