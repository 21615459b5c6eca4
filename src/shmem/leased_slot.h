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

#include "shmem/slots.h"

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

extern PGDLLEXPORT bool scru64_leased_recall(HeldLease *lease);
extern PGDLLEXPORT bool scru64_leased_activate(const HeldLease *lease, uint64 timestamp,
													 uint64 now, uint64 *back_from);
extern PGDLLEXPORT void scru64_leased_update(const HeldLease *lease);
extern PGDLLEXPORT Replacement scru64_leased_replace(const HeldLease *lease, uint64 *last_id);
extern PGDLLEXPORT uint64 scru64_leased_end(void);
extern PGDLLEXPORT bool scru64_leased_look(NodeReport *look);

#endif							/* LEASED_SLOT_H */
