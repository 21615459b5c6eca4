/*------------------------------------------------------------------------
 *
 * leased_slot.h
 *		The slot of the node that this server has leased.
 *
 * What begins with scru64_ is for the lease worker, which is in a library of its
 * own.
 *
 *-------------------------------------------------------------------------
 */
#ifndef LEASED_SLOT_H
#define LEASED_SLOT_H

#include "shmem/slots.h"

/* What came of giving the sessions another leased node. */
typedef enum HandOver
{
	HAND_OVER_DONE,
	HAND_OVER_ENDED,			/* there is no lease any more */
	HAND_OVER_OVERLAPS,			/* the node shares IDs with one set by hand */
	HAND_OVER_TOO_SHORT,		/* its lease ends too early */
	HAND_OVER_AHEAD				/* its lease begins ahead of the clock */
} HandOver;

/* For node_slots.c, which holds the lock */
extern bool leased_overlaps(Scru64Node node, NodeReport *obstacle);
extern void leased_slot_take(void);

extern NodeSlot *leased_slot_find(NodeKey *key, uint64 *state);

extern PGDLLEXPORT bool scru64_leased_begin(Scru64Node node, uint64 timestamp, uint64 limit);
extern PGDLLEXPORT void scru64_leased_extend(Scru64Node node, uint64 limit);
extern PGDLLEXPORT HandOver scru64_leased_hand_over(Scru64Node node, uint64 timestamp, uint64 limit,
													uint64 now, uint64 allowance, uint64 *last_id);
extern PGDLLEXPORT uint64 scru64_leased_end(void);
extern PGDLLEXPORT bool scru64_leased_look(NodeReport *look);

#endif							/* LEASED_SLOT_H */
