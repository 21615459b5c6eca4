/*-------------------------------------------------------------------------
 *
 * realm.h
 *		One question to the realm and its answer, by libpq.
 *
 * Part of the lease worker.
 *
 *-------------------------------------------------------------------------
 */
#ifndef REALM_H
#define REALM_H

#include "libpq-fe.h"

#include "../lease.h"
#include "../leased_slot.h"
#include "../clock.h"

typedef struct RealmAnswer
{
	PGresult   *result;			/* the row, or NULL */
	bool		refused;		/* the realm has answered with an error */
	bool		over;			/* of the kind of a lease that is over */
	char		problem[LEASE_TEXT_LEN];
} RealmAnswer;

extern PGconn *realm_connect(const char *conninfo, int64 deadline, bool stopping);
extern bool realm_ask(PGconn *conn, const char *sql, int nparams,
					  const char *const *params, int64 deadline, bool stopping,
					  RealmAnswer *answer);

#endif							/* REALM_H */
