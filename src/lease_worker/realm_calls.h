/*-------------------------------------------------------------------------
 *
 * realm_calls.h
 *		The functions of a realm, as the lease worker calls them.
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
	int64		ttl_s;
	int64		longest_ttl_s;	/* of all that will be asked for */
} LeaseRequest;

extern bool call_realm_id(RealmCall *call, char *realm_id);
extern bool call_lease(RealmCall *call, LeaseRequest *request, HeldLease *lease);
extern bool call_renew(RealmCall *call, int64 ttl_s, int64 longest_ttl_s,
					   uint64 last_id, HeldLease *lease);
extern bool call_release(RealmCall *call, const HeldLease *lease, uint64 last_id);

#endif							/* REALM_CALLS_H */
