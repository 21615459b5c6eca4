/*-------------------------------------------------------------------------
 *
 * realm.h
 *		A connection to the realm, one question at a time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef REALM_H
#define REALM_H

#include "libpq-fe.h"

#include "shmem/lease.h"

/* A connection, and the answer to the last question. */
typedef struct RealmCall
{
	PGconn	   *conn;			/* NULL: the connection string is none */
	int			host;			/* of those in the connection string */
	int64		deadline_ms;	/* by monotonic_ms() */
	bool		stopping;		/* go on also if the worker is to stop */
	bool		in_recovery;	/* was this server a standby when it was opened? */
	PGresult   *result;			/* the row, or NULL */
	bool		refused;		/* the realm has answered with an error, */
	bool		over;			/* because the lease is over; */
	bool		warned;			/* or with a WARNING */
	bool		other_realm;	/* this is not the realm to have a lease from */
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
