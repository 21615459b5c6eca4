/*------------------------------------------------------------------------
 *
 * slots.h
 *		The shared memory of all slots, and the changes of a slot under its lock.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SLOTS_H
#define SLOTS_H

#include "access/xlogdefs.h"
#include "datatype/timestamp.h"
#include "storage/condition_variable.h"
#include "storage/lwlock.h"
#include "storage/spin.h"

#include "pure/watermark_rules.h"
#include "shmem/slot.h"

/*
 * The number is the version of the layout, and of what the lease worker's library calls:
 * others share nothing.
 */
#define SHARED_MEMORY_NAME(part) "scru64 " part " 1"

/*
 * Nodes that have a slot at the same time.  Most servers use one, some dozens, for roles
 * or tenants.  A search reads all of them, a cache line each, and without preloading 15
 * and 16 have little shared memory to spare: this is 30 kB.
 */
#define NODE_SLOTS			128

/* Retired nodes: they have lost their slot, and their last ID is kept. */
#define RETIRED_NODES		1024

/* The last nodes that were leased since the start of the server. */
#define LEASED_NODES		64

/* Subjects with the same remainder share the times of their last messages. */
#define LOG_TIMES			64

/* Messages that are logged at most once in a while about one subject: a node_id, */
typedef enum LogKind
{
	LOG_START,
	LOG_ROLLBACK,
	LOG_WAIT,
	LOG_CONFIGURED_NODE,		/* or a GucSource, */
	LOG_LEASE_WORKER,			/* or the only worker */
	LOG_KINDS
} LogKind;

/* The ceiling; see ceiling.c, also for what guards what. */
typedef struct Reservation
{
	pg_atomic_uint32 generation;	/* how often all nodes were started above the ceiling */
	uint64		written;		/* the ceiling written last, in ticks */
	XLogRecPtr	written_at;		/* the end of its record in the WAL */
	uint64		sent;			/* the ceiling that the standbys flush next */
	XLogRecPtr	sent_at;		/* the end of its record */
	slock_t		mutex;
	pg_atomic_uint64 durable;	/* the ceiling as flushed here, */
	pg_atomic_uint64 replicated;	/* and as flushed by the synchronous standbys */
	ConditionVariable moved;	/* waits for replicated */
} Reservation;

/* What watermark.c keeps with the slots; see there. */
typedef struct Watermark
{
	uint64		closed;			/* nodes begin above this tick */
	uint32		restarts;		/* how often all nodes were started again, */
	uint64		highest;		/* and the greatest watermark since */
	AnswerRing	answers;
} Watermark;

/*
 * The entry of a process for its open transaction; see writers.c.  Unpadded: it is
 * written twice in a transaction.
 */
typedef struct Writer
{
	pg_atomic_uint64 bound;		/* its IDs are after this one; 0: it has issued none */
	pg_atomic_uint32 lxid;		/* the transaction, as its process numbers it */
} Writer;

/* Likewise of a prepared transaction. */
typedef struct PreparedWriter
{
	uint64		bound;
	uint64		xid;			/* in 64 bits; 0: free, as when the transaction is over */
} PreparedWriter;

#define UUID_TEXT_LEN		36

/* A lease, as the lease worker holds it. */
typedef struct HeldLease
{
	char		lease_id[UUID_TEXT_LEN + 1];	/* a secret; empty: there is none */
	char		realm_id[UUID_TEXT_LEN + 1];
	bool		is_standby_lease;	/* no session has it before recovery has ended */
	bool		is_unrenewable; /* the realm has refused to renew it ever again */
	Scru64Node	node;
	uint64		start_tick;		/* IDs are of ticks after this */
	uint64		limit_tick;		/* and not after this */
	TimestampTz granted_at;
	TimestampTz expires_at;
	TimestampTz realm_clock;	/* as last heard; 0: not yet */
	int64		heard_at_ms;	/* then, by the monotonic clock */
	uint64		conninfo_hash;	/* of the realm that it is from */
} HeldLease;

/* The lease that a worker leaves to the next one; see leased_slot.c. */
typedef struct KeptLease
{
	bool		is_whole;		/* false: none, or a process was killed while it wrote */
	HeldLease	lease;
} KeptLease;

typedef struct NodeSlots
{
	LWLock		lock;
	int			tranche_id;
	uint32		starts;			/* serial number of the next start */
	uint64		floor;			/* in ticks */
	Reservation reservation;
	Watermark	watermark;
	pg_atomic_uint64 logged[LOG_KINDS][LOG_TIMES];	/* monotonic seconds, or 0 */

	/* For node_slots.c */
	int			last_evicted;	/* the slot */
	int			next_retired;	/* the place used longest ago */
	NodeKey		retired_keys[RETIRED_NODES];	/* 0: free */
	uint64		retired_ids[RETIRED_NODES];

	/* For leased_slot.c */
	int			next_leased;	/* where the next node is noted in was_leased */
	NodeKey		was_leased[LEASED_NODES];	/* 0: free */
	uint64		ended_id;		/* the last ID of the lease that was ended last */

	KeptLease	kept_lease;		/* where no page is mapped for it */

	NodeSlot	leased;			/* the slot of the server's lease */
	NodeSlot	slots[NODE_SLOTS];

	int			n_writers;		/* MaxBackends, or 0: there was no room */
	int			n_prepared;		/* places after the writers */
	LWLock		prepared_lock;	/* of those places */
	Writer		writers[FLEXIBLE_ARRAY_MEMBER];
} NodeSlots;

/* This backend's address of the shared memory; NULL until it is needed. */
extern NodeSlots *node_slots;

static inline PreparedWriter *
prepared_writers(NodeSlots *slots)
{
	return (PreparedWriter *) &slots->writers[slots->n_writers];
}

extern void slots_are_reserved(void);
extern void slots_request(void);
extern void ensure_slots(void);
extern bool try_slots(void);
extern bool slots_are_mixed(void);
extern bool log_is_due(LogKind kind, uint32 subject);
extern uint64 last_of_state(Scru64Node node, uint64 state);

/* To be called with the lock held: slot_report() shared at least, the others exclusively. */
extern bool slot_report(NodeSlot *slot, NodeReport *report);
extern uint64 slot_evict(NodeSlot *slot);
extern uint64 slot_left(const NodeSlot *slot, uint64 state);
extern void slot_give(NodeSlot *slot, NodeKey key, uint64 left);
extern NodeSlot *slot_start(NodeSlot *slot, NodeKey key, uint64 left, uint64 now);
extern uint64 start_word(uint64 timestamp);
extern uint64 new_start(uint64 timestamp);
extern void restart_watermark(uint64 floor);
extern void forget_state(uint64 state);

#endif							/* SLOTS_H */
