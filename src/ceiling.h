/*-------------------------------------------------------------------------
 *
 * ceiling.h
 *		The ceiling: how far the IDs of this server may go.
 *
 * Upper storey.  See ceiling.c for why that is enough.
 *
 *-------------------------------------------------------------------------
 */
#ifndef CEILING_H
#define CEILING_H

#include "node_slots.h"

extern void ceiling_load(uint64 now, uint64 allowance);
extern bool ceiling_raise(NodeSlot *slot, NodeKey key, uint64 state,
						  uint64 target, bool wait);

#endif							/* CEILING_H */
