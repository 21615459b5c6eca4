/*-------------------------------------------------------------------------
 *
 * decisions.h
 *		What the lease worker does, and when.
 *
 * Pure: what is known and random bits go in, what to do comes out.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DECISIONS_H
#define DECISIONS_H

#include "pure/node_size.h"

#define CALL_TIMEOUT_MS		15000	/* longer than the realm's lock_timeout */
#define RELEASE_TIMEOUT_MS	2500
#define MIN_PAUSE_MS		1000	/* between two attempts */
#define MAX_PAUSE_MS		60000
#define MAX_CALLED_PAUSE_MS	5000	/* while sessions call */
#define MIN_LEASE_PAUSE_MS	10000	/* between two new leases */
#define SIZE_PAUSE_MS		60000	/* after a node of another size was not to be had */
#define RECOVERY_NAP_MS		1000	/* between looks whether recovery has ended */
#define MAX_SLEEP_MS		86400000	/* a wait of PostgreSQL's has at most INT_MAX */

/* What the worker goes by.  Points in time are of the monotonic clock. */
typedef struct Plan
{
	/* the settings */
	int64_t		ttl_s;
	int64_t		allowance_ms;
	NodeSize	size;			/* and what was seen of the node */

	/* how things are now */
	int64_t		now_ms;
	int64_t		failures;		/* since the last success */
	bool		in_recovery;	/* is this server a standby? */
	bool		has_ceiling;	/* loaded; if not, nobody has asked for an ID yet */
	bool		has_lease;
	bool		is_standby_lease;	/* kept from the sessions until recovery has ended */
	bool		is_unrenewable; /* the realm has refused to renew it ever again */
	bool		has_slot;		/* false: scru64_set_ceiling(), for one, has ended the lease */
	bool		has_heard;		/* the realm's clock? */
	int64_t		left_ms;		/* of the lease, by that clock */
	uint64_t	own_tick;		/* of this server's clock, */
	uint64_t	clock_tick;		/* and of the later one of both */
	uint64_t	start_tick;		/* where the lease begins, */
	uint64_t	furthest_tick;	/* there, or where its last ID is, */
	uint64_t	limit_tick;		/* and where it ends */
	bool		is_unused;		/* no ID of it was issued yet */

	/* what is planned */
	int64_t		next_attempt_ms;
	int64_t		called_attempt_ms;	/* if it has failed, and a session calls */
	int64_t		next_lease_ms;	/* no new lease before this, */
	int64_t		next_size_ms;	/* and none of another size */
	int64_t		lease_pause_ms; /* after the next new lease */
	int64_t		last_called_ms; /* by a session */
} Plan;

typedef enum Step
{
	STEP_SLEEP,
	STEP_ACTIVATE,				/* recovery has ended: activate the standby's lease */
	STEP_RETURN,
	STEP_CALL					/* acquire a lease, renew or replace it */
} Step;

extern bool has_expired(const Plan *plan);
extern bool is_worth_replacing(const Plan *plan);
extern bool is_exhausted(const Plan *plan);
extern Step next_step(const Plan *plan);
extern int64_t next_call_ms(const Plan *plan);
extern bool plan_call(Plan *plan);
extern int	wanted_size(const Plan *plan);
extern void plan_attempt(Plan *plan, bool done, uint32_t random);
extern void plan_new_lease(Plan *plan, int64_t now_ms);
extern int64_t sleep_until_ms(const Plan *plan);
extern int64_t window_s(const Plan *plan);
extern int64_t successor_timeout_ms(const Plan *plan);

#endif							/* DECISIONS_H */
