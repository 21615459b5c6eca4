/*-------------------------------------------------------------------------
 *
 * worker.h
 *		What the lease worker remembers, and sees.
 *
 *-------------------------------------------------------------------------
 */
#ifndef WORKER_H
#define WORKER_H

#include "lease_worker/realm_calls.h"
#include "pure/decisions.h"

#define USECS_PER_MSEC		1000

typedef struct Worker
{
	LeaseInfo	info;
	HeldLease	held;
	Plan		plan;
	bool		size_failed;	/* was a node of another size not to be had? */
	LeaseRequest request;		/* the lease that was asked for last */
	char	   *realm;			/* where the lease is from */
	int			first_host;		/* to begin with, of those in a connection string */
	int64		logged_at_ms;	/* by the monotonic clock */
} Worker;

static inline bool
has_lease(const Worker *worker)
{
	return worker->held.lease_id[0] != '\0';
}

extern Plan *look_around(Worker *worker);

#endif							/* WORKER_H */
