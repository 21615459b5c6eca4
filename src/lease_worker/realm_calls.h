/*-------------------------------------------------------------------------
 *
 * realm_calls.h
 *		The functions of a realm, as the lease worker calls them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef REALM_CALLS_H
#define REALM_CALLS_H

#include "lease_worker/realm.h"
#include "shmem/leased_slot.h"

/* A request for a lease */
typedef struct LeaseRequest
{
	char		lease_id[UUID_TEXT_LEN + 1];	/* empty: the next call makes a new one */
	int			node_id_size;
	int64		ttl_s;
	char		holder[MAX_HOLDER_LEN + 1];
	char		within[LEASE_TEXT_LEN]; /* node spec of a block of nodes, or empty */
} LeaseRequest;

extern void set_request(LeaseRequest *request, int node_id_size, int64 ttl_s,
						const char *holder, const char *within);
extern bool call_realm_id(RealmCall *call, char *realm_id);
extern bool call_lease(RealmCall *call, LeaseRequest *request, HeldLease *lease);
extern bool call_renew(RealmCall *call, int64 ttl_s, uint64 last_id, HeldLease *lease);
extern bool call_release(RealmCall *call, const HeldLease *lease, uint64 last_id);

#endif							/* REALM_CALLS_H */
