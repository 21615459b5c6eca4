/*-------------------------------------------------------------------------
 *
 * worker.h
 *		What the lease worker remembers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef WORKER_H
#define WORKER_H

#include "decisions.h"
#include "realm_calls.h"

#define USECS_PER_MSEC		1000

typedef struct Worker
{
	LeaseInfo	info;
	HeldLease	held;
	Plan		plan;
	bool		size_failed;	/* was a node of another size not to be had? */
	LeaseRequest request;		/* a lease that was asked for, */
	LeaseRequest size_request;	/* and one of another size */
	char	   *realm;			/* where the lease is from */
	int			first_host;		/* to begin with, of those in a connection string */
	TimestampTz realm_clock;	/* as last heard; 0: not yet */
	int64		heard_at_ms;	/* then, by the monotonic clock, as those below */
	int64		got_lease_at_ms;
	int64		logged_at_ms;
} Worker;

static inline bool
has_lease(const Worker *worker)
{
	return worker->held.lease_id[0] != '\0';
}

#endif							/* WORKER_H */
