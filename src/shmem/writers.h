/*-------------------------------------------------------------------------
 *
 * writers.h
 *		Which open transactions have generated IDs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef WRITERS_H
#define WRITERS_H

#include "shmem/slots.h"

/* The bound that the session has advertised: all IDs of its transaction are above this. */
extern uint64 advertised;

extern void watch_transactions(void);
extern void advertise(uint64 last);
extern uint64 writers_bound(TransactionId *unknown);
extern void note_recovered_prepared(void);
extern bool writer_report(int number, int *pid, TransactionId *xid, uint64 *bound);

/*
 * Call this before a node is advanced to an ID.  Only the first ID of a transaction needs to
 * be advertised, and an ID below the earlier ones, as another node may issue.
 *
 * Ordering: the session advertises the ID, and then advances the node's state, which is a
 * release.  A reader that finds the ID in the state finds the ID advertised, or its
 * transaction over (litmus: entry-state).
 */
static inline void
about_to_issue(uint64 next)
{
	if (unlikely(next <= advertised))
		advertise(next - 1);
}

#endif							/* WRITERS_H */
