/*-------------------------------------------------------------------------
 *
 * realm_calls.h
 *		The functions of a realm, as the lease worker calls them.
 *
 * Part of the lease worker.
 *
 *-------------------------------------------------------------------------
 */
#ifndef REALM_CALLS_H
#define REALM_CALLS_H

#include "kept_lease.h"
#include "realm.h"

/* A lease that is asked for; the same one as long as request is the same. */
typedef struct LeaseRequest
{
	char		request[UUID_TEXT_LEN + 1]; /* empty: not asked for yet */
	int			node_id_size;
	const char *holder;
	const char *within;			/* node spec of a block, or empty */
	int64		ttl;			/* in seconds, as longest_ttl */
	int64		longest_ttl;	/* of all that will be asked for */
} LeaseRequest;

extern bool call_realm_id(PGconn *conn, int64 deadline, RealmAnswer *answer,
						  char *realm_id);
extern bool call_lease(PGconn *conn, int64 deadline, RealmAnswer *answer,
					   LeaseRequest *request, HeldLease *lease,
					   TimestampTz *realm_clock);
extern bool call_renew(PGconn *conn, int64 deadline, RealmAnswer *answer,
					   int64 ttl, int64 longest_ttl, uint64 last_id,
					   HeldLease *lease, TimestampTz *realm_clock);
extern bool call_release(PGconn *conn, int64 deadline, bool stopping,
						 RealmAnswer *answer, const HeldLease *lease,
						 uint64 last_id);

#endif							/* REALM_CALLS_H */
