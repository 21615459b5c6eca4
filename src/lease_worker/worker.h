/*-------------------------------------------------------------------------
 *
 * worker.h
 *		The state of the lease worker: update, publish and log it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef WORKER_H
#define WORKER_H

#include "lease_worker/realm_calls.h"
#include "pure/lease_plan.h"

typedef struct Worker
{
	LeaseInfo	info;			/* as published to sessions */
	HeldLease	held;			/* the current lease, if has_lease() */
	Plan		plan;
	bool		size_failed;	/* could the node_id_size not be changed? */
	LeaseRequest request;		/* the last request for a lease */
	char	   *conninfo;		/* of the realm of the lease */
	int			first_host;		/* index of the realm's host to call first */
	int64		logged_at_ms;	/* the last failure, by the monotonic clock */
} Worker;

/* A node as the arguments of %u/%u */
#define NODE_ARGS(lease)	(lease)->node.node_id, (lease)->node.node_id_size

static inline bool
has_lease(const Worker *worker)
{
	return worker->held.lease_id[0] != '\0';
}

extern Plan *refresh_plan(Worker *worker);
extern void publish_info(Worker *worker);
extern void publish_busy(Worker *worker, bool busy);
extern void forget_failures(Worker *worker);
extern void note_failure(Worker *worker, const RealmCall *call);

#endif							/* WORKER_H */
