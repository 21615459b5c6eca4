/*-------------------------------------------------------------------------
 *
 * slots.h
 *		The shared memory of all slots, and the changes of a slot under the lock.
 *
 * A slot is a node's place in shared memory.  NodeSlots.lock guards all slots: the functions here
 * change one for callers that hold the lock: node_slots.c, leased_slot.c and watermark.c.  Sessions
 * that generate IDs hold no lock: see slot.h.  The watermark's state is here, too, and when a line
 * of the log was last written.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SLOTS_H
#define SLOTS_H

#include "storage/lwlock.h"

#include "pure/watermark_rules.h"
#include "shmem/shared_parts.h"
#include "shmem/slot.h"

/*
 * Nodes that have a slot at the same time.  Most servers use one node, some use dozens, for
 * roles or tenants.  A search reads every slot, a cache line each.  All slots are 30 kB:
 * without preloading, 15 and 16 have little shared memory to spare.
 */
#define NODE_SLOTS			128

/*
 * Parked nodes: they have lost their slots, and their last IDs are kept.  To forget a node raises
 * the floor: if more nodes than have slots take turns, each turn would cost the next node a tick.
 * And a lease of a node that overlaps a forgotten one might start below the latter's last ID.
 */
#define PARKED_NODES		1024

/* Subjects with the same remainder share the times of their last messages. */
#define LOG_TIMES			64

/* Kinds of messages that slots_log_is_due() limits, each about a subject: a node_id, */
typedef enum LogKind
{
	LOG_START,
	LOG_ROLLBACK,
	LOG_WAIT,
	LOG_CONFIGURED_NODE,		/* a GucSource, */
	LOG_LEASE_WORKER,			/* the only worker, */
	LOG_STANDBYS,				/* or the server */
	LOG_SLOW_RAISE,
	LOG_KINDS
} LogKind;

/* The state of watermark.c; see there. */
typedef struct Watermark
{
	uint64		closed_tick;	/* nodes start above this tick */
	uint32		restarts;		/* how often slots_restart_watermark() was called, */
	uint64		highest;		/* and the greatest watermark since */
	AnswerRing	answers;
} Watermark;

typedef struct NodeSlots
{
	LWLock		lock;
	uint32		next_serial;	/* of the next start marker */
	uint64		floor;			/* in ticks */
	Watermark	watermark;
	pg_atomic_uint64 logged[LOG_KINDS][LOG_TIMES];	/* monotonic seconds, or 0 */

	int			last_evicted;	/* the slot whose node was evicted last */
	int			next_parked;	/* the entry after the one used last */
	NodeKey		parked_keys[PARKED_NODES];	/* 0: free */
	uint64		parked_ids[PARKED_NODES];

	NodeSlot	leased;			/* the slot of the server's lease */
	NodeSlot	slots[NODE_SLOTS];
} NodeSlots;

/* Where this process has attached the shared memory; NULL: not yet */
extern NodeSlots *node_slots;

extern const SharedPart slots_part;

extern bool slots_log_is_due(LogKind kind, uint32 subject);
extern uint64 slots_last_id(Scru64Node node, uint64 state);

/* Lock held: at least shared for slot_report() and slot_progress(), else exclusively. */
extern bool slot_report(NodeSlot *slot, NodeReport *report);
extern uint64 slot_evict(NodeSlot *slot);
extern uint64 slot_progress(const NodeSlot *slot, uint64 state);
extern void slot_give(NodeSlot *slot, NodeKey key, uint64 progress);
extern NodeSlot *slot_start(NodeSlot *slot, NodeKey key, uint64 progress, uint64 now);
extern uint64 slots_make_start(uint64 timestamp);
extern uint64 slots_start_above_closed(uint64 timestamp);
extern void slots_restart_watermark(uint64 tick);
extern void slots_raise_floor(uint64 state);

#endif							/* SLOTS_H */
