/*------------------------------------------------------------------------
 *
 * node_slots.h
 *		The slots of configured nodes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef NODE_SLOTS_H
#define NODE_SLOTS_H

#include "shmem/slots.h"

extern NodeSlot *node_slots_find(Scru64Node node, uint64 now, uint64 *state, NodeReport *conflict);
extern bool node_slots_look(Scru64Node node, uint64 now, NodeReport *report);
extern void node_slots_restart(uint64 floor);
extern int	node_slots_report(NodeReport reports[NODE_SLOTS + 1]);

#endif							/* NODE_SLOTS_H */
