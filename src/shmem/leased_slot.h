/*------------------------------------------------------------------------
 *
 * leased_slot.h
 *		The slot of the node that this server has leased.
 *
 * The functions that begin with scru64_ are exported for the lease worker's library.
 *
 *-------------------------------------------------------------------------
 */
#ifndef LEASED_SLOT_H
#define LEASED_SLOT_H

#include "shmem/slots.h"

/* Was the current lease replaced by the next one?  If not, why? */
typedef enum Replacement
{
	REPLACE_DONE,
	REPLACE_EVICTED,			/* the current lease's node was evicted before */
	REPLACE_OVERLAPS,			/* the next lease's node overlaps a configured node */
	REPLACE_TOO_SHORT,			/* the next lease ends too early */
	REPLACE_AHEAD				/* the next lease begins ahead of the clock */
} Replacement;

/* For node_slots.c, which holds the lock */
extern bool leased_overlaps(Scru64Node node, NodeReport *conflict);
extern void leased_evict(void);

extern PGDLLEXPORT bool scru64_leased_resume(HeldLease *lease);
extern PGDLLEXPORT bool scru64_leased_activate(const HeldLease *lease, uint64 now, uint64 *back_from);
extern PGDLLEXPORT bool scru64_leased_activate_above(const HeldLease *lease, uint64 timestamp);
extern PGDLLEXPORT void scru64_leased_update(const HeldLease *lease);
extern PGDLLEXPORT Replacement scru64_leased_replace(const HeldLease *lease, uint64 *last_id);
extern PGDLLEXPORT uint64 scru64_leased_evict(void);
extern PGDLLEXPORT bool scru64_leased_report(NodeReport *report);

#endif							/* LEASED_SLOT_H */
