/*-------------------------------------------------------------------------
 *
 * realm_client.h
 *		Calls of a realm: the database that leases nodes to servers.
 *
 * The lease worker gets, renews and releases leases here, over libpq.  realm_client.c says when a call
 * ends, and which answers are good: no other answer changes a lease.
 *
 *-------------------------------------------------------------------------
 */
#ifndef REALM_CLIENT_H
#define REALM_CLIENT_H

#include "libpq-fe.h"

#include "shmem/leased_slot.h"
#include "shmem/worker_mailbox.h"

/* A connection, and the answer to the last query. */
typedef struct RealmCall
{
	PGconn	   *conn;			/* NULL: the connection string is invalid */
	int			host;			/* its index in the connection string's list */
	int64		deadline_ms;	/* by monotonic_ms() */
	bool		stopping;		/* go on even if the worker has to stop */
	bool		in_recovery;	/* was this server a standby when the call began? */
	size_t		received;		/* bytes to read at each wait, added up */
	PGresult   *result;			/* the row, or NULL */
	bool		refused;		/* has the realm answered with an ERROR, */
	bool		lease_over;		/* because the lease is over? */
	bool		warned;			/* may the answer not be replicated? */
	bool		other_realm;	/* is this another realm than the one to lease from? */
	char		problem[LEASE_TEXT_LEN];	/* why there is no good answer; or empty */
} RealmCall;

/* A request for a lease */
typedef struct LeaseRequest
{
	char		lease_id[UUID_TEXT_LEN + 1];	/* empty: the next call makes a new one */
	int			node_id_size;
	int64		ttl_s;
	char		holder[MAX_HOLDER_LEN + 1];
	char		within[LEASE_TEXT_LEN]; /* node spec of a block of nodes, or empty */
} LeaseRequest;

extern void realm_open(RealmCall *call, const char *conninfo, int first_host,
					   int64 timeout_ms, bool stopping);
extern bool realm_problem(RealmCall *call, const char *text);
extern bool realm_is_disturbed(const RealmCall *call);
extern void realm_close(RealmCall *call);

extern void realm_set_request(LeaseRequest *request, int node_id_size, int64 ttl_s,
							  const char *holder, const char *within);
extern bool realm_get_id(RealmCall *call, char *realm_id);
extern bool realm_lease(RealmCall *call, LeaseRequest *request, HeldLease *lease);
extern bool realm_renew(RealmCall *call, int64 ttl_s, uint64 last_id, HeldLease *lease);
extern bool realm_release(RealmCall *call, const HeldLease *lease, uint64 last_id);

#endif							/* REALM_CLIENT_H */
