/*-------------------------------------------------------------------------
 *
 * node_slots_shared.h
 *		What node_slots.c and leased_slot.c share: the shared memory of the slots.
 *
 * Upper storey.  See node_slots.c for what guards what.  For these two only.
 *
 *-------------------------------------------------------------------------
 */
#ifndef NODE_SLOTS_SHARED_H
#define NODE_SLOTS_SHARED_H

#include "storage/lwlock.h"

#include "lease.h"
#include "node_slots.h"

/* Nodes whose last ID is kept when they have lost their slot. */
#define RETIRED_NODES		1024

/* Nodes that were leased since the start of the server, the last ones. */
#define LEASED_NODES		64

/* Nodes with the same remainder share their times of the last message. */
#define LOG_TIMES			64

typedef struct NodeSlots
{
	LWLock		lock;
	int			tranche_id;
	int			hand;			/* where the last slot was taken away */
	int			next_retired;	/* where the search for a place begins */
	uint32		starts;			/* serial number of the next start */
	uint64		floor;			/* in ticks */
	Reservation reservation;
	pg_atomic_uint64 logged[NODE_LOG_KINDS * LOG_TIMES];	/* monotonic seconds, or 0 */
	NodeKey		retired_keys[RETIRED_NODES];	/* 0: free */
	uint64		retired_ids[RETIRED_NODES];
	NodeKey		was_leased[LEASED_NODES];
	int			next_leased;
	Lease		lease;
	NodeSlot	leased;			/* the slot of the server's lease */
	NodeSlot	slots[NODE_SLOTS];
} NodeSlots;

/* This backend's address of the shared memory; NULL until it is needed. */
extern NodeSlots *node_slots;

/* For all below but the first, the lock has to be held. */
extern void ensure_node_slots(void);
extern uint64 start_word(uint64 timestamp);
extern void report_slot(NodeSlot *slot, NodeKey key, NodeReport *report);
extern uint64 take_slot(NodeSlot *slot);
extern NodeSlot *start_node(NodeSlot *slot, NodeKey key, uint64 state, uint64 now);
extern void forget_state(uint64 state);
extern bool overlaps_leased(Scru64Node node, NodeReport *obstacle);
extern void take_lease(void);

#endif							/* NODE_SLOTS_SHARED_H */
