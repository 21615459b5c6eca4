/*-------------------------------------------------------------------------
 *
 * lease_worker.h
 *		The lease worker: what it remembers, and its parts.
 *
 * Part of the lease worker.  scru64_lease.c decides what to do and when; holding.c
 * does it to the lease; messages.c says it, in the view and in the log.
 *
 *-------------------------------------------------------------------------
 */
#ifndef LEASE_WORKER_H
#define LEASE_WORKER_H

#include "node_size.h"
#include "realm_calls.h"

/* Seconds: what the first lease is for, and every renewal at least. */
#define FIRST_TTL			120

/* Milliseconds */
#define CALL_TIMEOUT		15000	/* longer than the realm's lock_timeout */
#define MIN_LEASE_PAUSE		10000	/* between two new leases */

typedef struct Worker
{
	LeaseInfo	info;
	HeldLease	held;
	NodeSize	size;			/* of its node */
	bool		size_failed;	/* was another one not to be had? */
	LeaseRequest request;		/* a lease that was asked for, */
	LeaseRequest size_request;	/* and one of another size */
	char	   *realm;			/* where the lease is from */
	char	   *realm_id;		/* the settings that it is by */
	char	   *within;
	TimestampTz realm_clock;	/* as last heard; 0: not yet */
	int64		heard_at;		/* then, monotonic ms */
	int64		got_lease_at;	/* monotonic ms, as those below */
	int64		next_attempt;
	int64		next_lease;		/* no new lease before this, */
	int64		next_size;		/* and none of another size */
	int64		lease_pause;
	int64		last_logged;
	int64		last_called;	/* by a session */
} Worker;

static inline bool
has_lease(const Worker *worker)
{
	return worker->held.lease_id[0] != '\0';
}

/* messages.c */
extern void publish(Worker *worker);
extern void set_busy(Worker *worker, bool busy);
extern void failed(Worker *worker, const char *what);
extern void forget_failures(Worker *worker);
extern void log_release(const HeldLease *lease, bool done, const char *problem);
extern void log_size_problem(Worker *worker, int wanted, const char *problem);
extern void log_size(Worker *worker, const HeldLease *old);

/* holding.c */
extern TimestampTz realm_now(Worker *worker);
extern bool check_realm(Worker *worker, PGconn *conn, int64 deadline,
						RealmAnswer *answer, bool *moved);
extern void resume_lease(Worker *worker);
extern bool take_lease(Worker *worker, PGconn *conn, int64 deadline,
					   RealmAnswer *answer);
extern bool renew_lease(Worker *worker, PGconn *conn, int64 deadline,
						RealmAnswer *answer);
extern void release_lease(Worker *worker);
extern void keep_setting(char **kept, const char *value);
extern void change_size(Worker *worker, PGconn *conn, int wanted);
extern uint64 address_hash(const char *realm);

#endif							/* LEASE_WORKER_H */
