/*-------------------------------------------------------------------------
 *
 * worker.h
 *		What the lease worker remembers, sees and shows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef WORKER_H
#define WORKER_H

#include "lease_worker/realm_calls.h"
#include "pure/decisions.h"

typedef struct Worker
{
	LeaseInfo	info;			/* what it shows */
	HeldLease	held;
	Plan		plan;
	bool		size_failed;	/* was a node of another size not to be had? */
	LeaseRequest request;		/* the lease that it has asked for last */
	char	   *conninfo;		/* of the realm that the lease is from, */
	int			first_host;		/* and which of its hosts to call first */
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
extern void show(Worker *worker);
extern void show_busy(Worker *worker, bool busy);
extern void forget_failures(Worker *worker);
extern void note_failure(Worker *worker, const RealmCall *call);

#endif							/* WORKER_H */
