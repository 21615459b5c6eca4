/*-------------------------------------------------------------------------
 *
 * realm.h
 *		A connection to the realm, one query at a time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef REALM_H
#define REALM_H

#include "libpq-fe.h"

#include "shmem/worker_mailbox.h"

/* A connection, and the answer to the last query. */
typedef struct RealmCall
{
	PGconn	   *conn;			/* NULL: the connection string is invalid */
	int			host;			/* its index in the connection string's list */
	int64		deadline_ms;	/* by monotonic_ms() */
	bool		stopping;		/* go on even if the worker has to stop */
	bool		in_recovery;	/* was this server a standby when the call began? */
	size_t		received;		/* bytes that the host has sent, at least */
	PGresult   *result;			/* the row, or NULL */
	bool		refused;		/* has the realm answered with an ERROR, */
	bool		lease_over;		/* because the lease is over? */
	bool		warned;			/* has the realm answered with a WARNING? */
	bool		other_realm;	/* is this another realm than the one to lease from? */
	char		problem[LEASE_TEXT_LEN];	/* why there is no good answer; or empty */
} RealmCall;

extern void realm_open(RealmCall *call, const char *conninfo, int first_host,
					   int64 timeout_ms, bool stopping);
extern bool realm_ask(RealmCall *call, int columns, const char *sql, int nparams,
					  const char *const *params);
extern bool realm_problem(RealmCall *call, const char *text);
extern bool realm_is_disturbed(const RealmCall *call);
extern void realm_close(RealmCall *call);

#endif							/* REALM_H */
