/*-------------------------------------------------------------------------
 *
 * node_slots.h
 *		Gives slots to configured nodes: those that scru64.node_spec names.
 *
 * A slot is a node's place in shared memory.  Nodes that overlap never have slots at the same time.
 * For session_node.c, which needs a slot, ceiling.c, which restarts all nodes, and admin/server.c,
 * which reports them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef NODE_SLOTS_H
#define NODE_SLOTS_H

#include "shmem/slots.h"

extern NodeSlot *node_slots_find(Scru64Node node, uint64 now, uint64 *state, NodeReport *conflict);
extern bool node_slots_look(Scru64Node node, uint64 now, NodeReport *report);
extern void node_slots_restart(uint64 floor, bool keep_lease);
extern int	node_slots_report(NodeReport reports[NODE_SLOTS + 1]);

#endif							/* NODE_SLOTS_H */
