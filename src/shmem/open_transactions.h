/*-------------------------------------------------------------------------
 *
 * open_transactions.h
 *		Which open transactions have generated IDs, and a bound below the IDs of each, for
 *		scru64_watermark().
 *
 * A session advertises such a bound in shared memory before the first ID of a transaction
 * (generate.c).  watermark.c reads the bounds.  ceiling.c notes what a recovery has left.
 *
 *-------------------------------------------------------------------------
 */
#ifndef OPEN_TRANSACTIONS_H
#define OPEN_TRANSACTIONS_H

#include "shmem/shared_parts.h"

/* The bound that the session has advertised: all IDs of its transaction are above this. */
extern uint64 transactions_advertised;

extern const SharedPart transactions_part;

extern void transactions_watch(void);
extern int	transactions_entries(void);
extern void transactions_advertise(uint64 last);
extern uint64 transactions_bound(TransactionId *unknown);
extern void transactions_note_recovered(void);
extern bool transactions_report(int number, int *pid, TransactionId *xid, uint64 *bound);

/*
 * Call this before a node is advanced to an ID.  Only the first ID of a transaction needs to
 * be advertised, and an ID below the earlier ones, as another node may issue.
 *
 * Ordering: the session advertises the ID, and then advances the node's state, which is a
 * release.  A reader that finds the ID in the state finds the ID advertised, or its
 * transaction over (mutants: advertised-late, bound-cleared-early).
 */
static inline void
transactions_about_to_issue(uint64 next)
{
	if (unlikely(next <= transactions_advertised))
		transactions_advertise(next - 1);
}

#endif							/* OPEN_TRANSACTIONS_H */
