/*-------------------------------------------------------------------------
 *
 * lease_plan.h
 *		Decides which step the lease worker takes next, and when: to acquire, renew, replace or
 *		release the lease of a node, or to wait.
 *
 * Knows nothing of PostgreSQL.  Pure: what the worker knows (a Plan) and random bits go in, the
 * next step and its time come out.  worker.c takes the step.
 *
 *-------------------------------------------------------------------------
 */
#ifndef LEASE_PLAN_H
#define LEASE_PLAN_H

#include "pure/node_size.h"

#define CALL_TIMEOUT_MS		15000	/* longer than the realm's lock_timeout */
#define RELEASE_TIMEOUT_MS	2500
#define MIN_PAUSE_MS		1000	/* between two attempts */
#define MAX_PAUSE_MS		60000
#define MAX_CALLED_PAUSE_MS	5000	/* after a failure, while sessions call */
#define MIN_LEASE_PAUSE_MS	10000	/* between two new leases */
#define SIZE_PAUSE_MS		60000	/* between attempts to change the node_id_size */
#define RECOVERY_NAP_MS		1000	/* between tests whether recovery has ended */
#define MAX_SLEEP_MS		86400000	/* WaitLatch() takes INT_MAX at most */

/* All that the worker decides by.  Points in time in ms are by the monotonic clock. */
typedef struct Plan
{
	/* the settings */
	int64_t		ttl_s;
	int64_t		allowance_ms;
	NodeSize	size;			/* with the last look at the node */

	/* the present */
	int64_t		now_ms;
	int64_t		failures;		/* failed attempts since the last success */
	bool		in_recovery;	/* is this server a standby? */
	bool		has_ceiling;	/* is the ceiling loaded?  There is none before the first ID */
	bool		has_lease;
	bool		is_standby_lease;	/* no session uses the lease before recovery has ended */
	bool		renewal_refused; /* the realm has refused to renew the lease ever again */
	bool		has_slot;		/* false if scru64_set_ceiling(), say, has evicted the node */
	bool		knows_realm_clock;	/* has the realm ever answered? */
	int64_t		remaining_ms;	/* of the lease, by the realm's clock */
	uint64_t	own_tick;		/* this server's clock */
	uint64_t	clock_tick;		/* the later of this server's clock and the realm's */
	uint64_t	start_tick;		/* IDs of the lease are of ticks after this one, */
	uint64_t	limit_tick;		/* up to this one */
	uint64_t	furthest_tick;	/* of the last ID or start marker, or start_tick if later */
	bool		is_unused;		/* no ID of the lease was issued yet */

	/* the plans */
	int64_t		next_attempt_ms;
	int64_t		called_attempt_ms;	/* the next after a failure, if a session calls */
	int64_t		next_lease_ms;	/* no new lease before this */
	int64_t		next_size_ms;	/* no lease of another node_id_size before this */
	int64_t		lease_pause_ms; /* after the next new lease */
	int64_t		last_called_ms; /* when a session's call last had the worker try at once */
} Plan;

typedef enum Step
{
	STEP_SLEEP,
	STEP_ACTIVATE,				/* recovery has ended: activate the standby's lease */
	STEP_RELEASE,
	STEP_CALL					/* call the realm: acquire, renew or replace a lease */
} Step;

/*
 * Has the lease ended by the realm's clock, as last heard?  From then on the realm may lease
 * the node to another server.
 */
extern bool plan_has_expired(const Plan *plan);

/*
 * Would the sessions be better off with a new lease?
 *
 * Yes, if the lease has expired, or if a clock was ahead for a while and was then set right.
 * If it was the realm's clock, the lease may begin ahead of both clocks; if it was this
 * server's, the last ID may be too far ahead of both.  A new lease begins when it is granted,
 * so its IDs begin now.
 *
 * No, if only the realm's clock was set back.  The lease, which is ahead of the realm's clock
 * alone, still serves the sessions; a new lease would have ended already by this server's.
 */
extern bool plan_is_worth_replacing(const Plan *plan);

/*
 * Can sessions generate no more IDs of the lease?  Either its node was evicted on this server,
 * or this server's clock has passed the window, or generation fails.  The realm's clock does
 * not count, because sessions do not use it.
 */
extern bool plan_is_exhausted(const Plan *plan);

/*
 * The order of the steps matters: the worker releases a useless lease before it calls the realm.
 */
extern Step plan_next_step(const Plan *plan);

/* When to call the realm next; for a new lease, not before the pause after the last one. */
extern int64_t plan_next_call_ms(const Plan *plan);

/*
 * A session calls, because there is no lease, or the next ID is past the window.  Plan the
 * next attempt at once, or soon after a failure.  Returns true if it is sooner than planned.
 */
extern bool plan_call(Plan *plan);

/*
 * The node_id_size to lease when the lease is renewed; often the current one.  A standby's
 * lease has no load yet, so its node_id_size stays.
 */
extern int	plan_wanted_size(const Plan *plan);

/* An attempt is over, and has succeeded if done is true.  Plan the next one. */
extern void plan_attempt(Plan *plan, bool done, uint32_t random);

/* A lease was acquired.  The next new one has to wait, ever longer until one is renewed. */
extern void plan_new_lease(Plan *plan, int64_t now_ms);

/* When the worker has something to do next, unless a session calls before. */
extern int64_t plan_sleep_until_ms(const Plan *plan);

/*
 * How long a lease to ask for; the realm may grant less.  The allowance is added to the
 * setting, because a busy node reaches the end of the window so much earlier.
 */
extern int64_t plan_window_s(const Plan *plan);

/*
 * The tick after which IDs of a new lease begin: start, or last, the tick of the server's last ID
 * of a lease before, so that IDs stay in order.
 *
 *	start, limit	IDs of the lease are of ticks after start, up to limit
 *	now				the later of this server's clock and the realm's
 *	allowance		how far an ID may be ahead of the clock, in ticks
 *
 * Not last if it is more than the allowance ahead: then a clock was wrong, or the allowance was
 * greater, and the new lease is the chance to recover.  Nor if the window ends before: then
 * sessions would wait for the next renewal.
 */
static inline uint64_t
plan_start_after(uint64_t start, uint64_t limit, uint64_t last, uint64_t now, uint64_t allowance)
{
	return last > start && last < limit && last <= now + allowance ? last : start;
}

/* How long to wait for another lease, so that the current one does not end meanwhile. */
extern int64_t plan_successor_timeout_ms(const Plan *plan);

#endif							/* LEASE_PLAN_H */
