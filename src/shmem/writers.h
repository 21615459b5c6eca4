/*-------------------------------------------------------------------------
 *
 * writers.h
 *		Who has made IDs in a transaction that is still open.
 *
 *-------------------------------------------------------------------------
 */
#ifndef WRITERS_H
#define WRITERS_H

#include "shmem/slots.h"

/* All IDs of the session's transaction are after this one, as it has announced. */
extern uint64 made_after;

extern void watch_transactions(void);
extern void announce(uint64 last);
extern uint64 writers_bound(TransactionId *unknown);
extern void note_prepared_before(void);
extern bool writer_report(int number, int *pid, TransactionId *xid, uint64 *bound);

/*
 * To be called with the ID that is about to be made.  In a transaction the first one
 * counts, and any that is before it, as of another node.
 *
 * Ordering: it is announced before the state of a node is advanced, which is a release.
 * Whoever finds the ID in a state finds it announced, or its transaction over (litmus:
 * words-state).
 */
static inline void
about_to_make(uint64 next)
{
	if (unlikely(next <= made_after))
		announce(next - 1);
}

#endif							/* WRITERS_H */
