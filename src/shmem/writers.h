/*-------------------------------------------------------------------------
 *
 * writers.h
 *		Which open transactions have issued IDs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef WRITERS_H
#define WRITERS_H

#include "shmem/slots.h"

/* All IDs of the session's transaction are after this one. */
extern uint64 advertised;

extern void watch_transactions(void);
extern void advertise(uint64 last);
extern uint64 writers_bound(TransactionId *unknown);
extern void note_prepared_before(void);
extern bool writer_report(int number, int *pid, TransactionId *xid, uint64 *bound);

/*
 * To be called before a node is advanced to an ID.  In a transaction only the first ID
 * needs it, and each that is below those before, as one of another node may be.
 *
 * Ordering: the session advertises the ID, and then advances the node's state, which is a
 * release.  Whoever finds the ID in the state finds it advertised, or its transaction over
 * (litmus: entry-state).
 */
static inline void
about_to_issue(uint64 next)
{
	if (unlikely(next <= advertised))
		advertise(next - 1);
}

#endif							/* WRITERS_H */
