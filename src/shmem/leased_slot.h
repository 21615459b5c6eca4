/*------------------------------------------------------------------------
 *
 * leased_slot.h
 *		The slot of the node that this server has leased.
 *
 * Functions that begin with scru64_ are for the lease worker, which is in a library of
 * its own.
 *
 *-------------------------------------------------------------------------
 */
#ifndef LEASED_SLOT_H
#define LEASED_SLOT_H

#include "datatype/timestamp.h"

#include "shmem/slots.h"

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

/* Was the lease of the slot replaced by another? */
typedef enum Replacement
{
	REPLACE_DONE,
	REPLACE_ENDED,				/* there is no lease any more */
	REPLACE_OVERLAPS,			/* the other's node overlaps one that is configured */
	REPLACE_TOO_SHORT,			/* the other ends too early */
	REPLACE_AHEAD				/* the other begins ahead of the clock */
} Replacement;

/* For node_slots.c, which holds the lock */
extern bool leased_overlaps(Scru64Node node, NodeReport *conflict);
extern void leased_slot_evict(void);

/* For module.c and scru64_set_ceiling() */
extern void map_kept_lease(void);
extern void forget_kept_lease(void);

extern NodeSlot *leased_slot_find(NodeKey *key, uint64 *state);

extern PGDLLEXPORT bool scru64_leased_recall(HeldLease *lease);
extern PGDLLEXPORT bool scru64_leased_activate(const HeldLease *lease, uint64 timestamp);
extern PGDLLEXPORT void scru64_leased_update(const HeldLease *lease);
extern PGDLLEXPORT Replacement scru64_leased_replace(const HeldLease *lease, uint64 *last_id);
extern PGDLLEXPORT uint64 scru64_leased_end(void);
extern PGDLLEXPORT bool scru64_leased_look(NodeReport *look);

#endif							/* LEASED_SLOT_H */
