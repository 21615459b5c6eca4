/*-------------------------------------------------------------------------
 *
 * kept_lease.h
 *		A lease that outlives its worker, under the same postmaster.
 *
 *-------------------------------------------------------------------------
 */
#ifndef KEPT_LEASE_H
#define KEPT_LEASE_H

#include "datatype/timestamp.h"

#include "pure/scru64.h"

#define UUID_TEXT_LEN		36

/* What tells one postmaster from every other on this machine, before and after. */
typedef struct Identity
{
	pid_t		postmaster;
	TimestampTz started;
	ino_t		pipe;			/* of the postmaster's death watch */
	char		boot_id[UUID_TEXT_LEN + 1];
} Identity;

/* A lease, as it is kept for the same postmaster. */
typedef struct HeldLease
{
	Identity	identity;
	char		lease_id[UUID_TEXT_LEN + 1];	/* empty: none */
	char		realm_id[UUID_TEXT_LEN + 1];
	bool		is_ahead;		/* no session has had it: it is held until recovery has ended */
	bool		is_lapsing;		/* the realm has refused to renew it ever again */
	Scru64Node	node;
	uint64		start_tick;		/* IDs are of ticks after this */
	uint64		limit_tick;		/* and not after this */
	TimestampTz granted_at;
	TimestampTz expires_at;
	TimestampTz realm_clock;	/* as last heard; 0: not yet */
	int64		heard_at_ms;	/* then, by the monotonic clock */
	uint64		address;		/* hash of the connection string that it is by */
} HeldLease;

extern void keep_lease(HeldLease *held);
extern bool recall_lease(HeldLease *held);

#endif							/* KEPT_LEASE_H */
