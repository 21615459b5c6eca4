/*-------------------------------------------------------------------------
 *
 * leased_slot.h
 *		The node that this server has leased: its slot, and the lease.
 *
 * A slot is a node's place in shared memory, with its last ID and the end of its lease.  Slot and
 * lease change together, under the lock of slots.c.  The functions that begin with scru64_ are for
 * the lease worker, whose library is another one; the others, for node_slots.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef LEASED_SLOT_H
#define LEASED_SLOT_H

#include "datatype/timestamp.h"

#include "shmem/slots.h"

/* The nodes leased last since the server was started */
#define LEASED_NODES		64

#define UUID_TEXT_LEN		36

/* A lease of the lease worker */
typedef struct HeldLease
{
	char		lease_id[UUID_TEXT_LEN + 1];	/* a secret; empty: there is none */
	char		realm_id[UUID_TEXT_LEN + 1];
	bool		is_standby_lease;	/* sessions may use it only after recovery */
	bool		renewal_refused;	/* the realm will not renew it again */
	Scru64Node	node;
	uint64		start_tick;		/* its IDs are of ticks above this, */
	uint64		limit_tick;		/* and at or below this */
	TimestampTz granted_at;
	TimestampTz expires_at;
	TimestampTz realm_clock;	/* as last heard; 0: not yet */
	int64		heard_at_ms;	/* when it was heard, by the monotonic clock */
	uint64		conninfo_hash;	/* of its realm */
} HeldLease;

/* Was the current lease replaced by the next one?  If not, why? */
typedef enum Replacement
{
	REPLACE_DONE,
	REPLACE_EVICTED,			/* the current lease's node was evicted before */
	REPLACE_OVERLAPS,			/* the next lease's node overlaps a configured node */
	REPLACE_TOO_SHORT,			/* the next lease ends too early */
	REPLACE_AHEAD				/* the next lease begins ahead of the clock */
} Replacement;

extern const SharedPart leased_part;

/* For node_slots.c, which holds the lock */
extern bool leased_overlaps(Scru64Node node, NodeReport *conflict);
extern void leased_evict(void);
extern void leased_restart(void);

extern PGDLLEXPORT bool scru64_leased_resume(HeldLease *lease);
extern PGDLLEXPORT bool scru64_leased_activate(const HeldLease *lease, uint64 now,
											   uint64 *back_from);
extern PGDLLEXPORT bool scru64_leased_activate_above(const HeldLease *lease, uint64 timestamp);
extern PGDLLEXPORT void scru64_leased_update(const HeldLease *lease);
extern PGDLLEXPORT Replacement scru64_leased_replace(const HeldLease *lease, uint64 *last_id);
extern PGDLLEXPORT uint64 scru64_leased_evict(void);
extern PGDLLEXPORT bool scru64_leased_report(NodeReport *report);

#endif							/* LEASED_SLOT_H */
