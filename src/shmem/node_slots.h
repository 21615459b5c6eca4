/*------------------------------------------------------------------------
 *
 * node_slots.h
 *		The nodes that sessions have set: which has which slot.
 *
 *-------------------------------------------------------------------------
 */
#ifndef NODE_SLOTS_H
#define NODE_SLOTS_H

#include "shmem/slots.h"

extern NodeSlot *node_slots_find(Scru64Node node, uint64 now, uint64 allowance,
								 uint64 *state, NodeReport *obstacle);
extern void node_slots_restart(uint64 floor);
extern int	node_slots_report(NodeReport reports[NODE_SLOTS + 1]);

#endif							/* NODE_SLOTS_H */
