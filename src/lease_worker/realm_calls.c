/*-------------------------------------------------------------------------
 *
 * realm_calls.c
 *		The functions of a realm, as the lease worker calls them.
 *
 * Part of the lease worker.  Each asks one question, and reads the answer into a
 * lease.  Decides nothing, and knows nothing of slots.  False if there is no good
 * answer: then answer->problem says why, and the lease is what it was.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "../base36.h"
#include "../id_time.h"
#include "realm_calls.h"

#define TTL_TEXT_LEN		32

/* Times as microseconds of Unix time, which depend on no setting */
#define USECS(column)	"(extract(epoch FROM " column ") * 1000000)::bigint"

static TimestampTz
time_of_usecs(const char *text)
{
	return UNIX_EPOCH_TIMESTAMP + (int64) strtoll(text, NULL, 10);
}

static void
ttl_text(char *text, int64 seconds)
{
	snprintf(text, TTL_TEXT_LEN, "%ld seconds", (long) seconds);
}

/* The last ID of a lease as text, for the realm; NULL if there is none. */
static const char *
last_id_text(const HeldLease *lease, uint64 last_id, char *text)
{
	if (scru64_get_timestamp(last_id) < lease->start)
		return NULL;
	base36_encode(last_id, text);
	text[BASE36_DIGITS] = '\0';
	return text;
}

/* Which realm is it?  To be called first: sets up the connection, too. */
bool
call_realm_id(PGconn *conn, int64 deadline, RealmAnswer *answer, char *realm_id)
{
	if (!realm_ask(conn, "SELECT scru64_realm.realm_id(), set_config('client_min_messages', 'warning', false)",
				   0, NULL, deadline, false, answer))
		return false;
	strlcpy(realm_id, PQgetvalue(answer->result, 0, 0), UUID_TEXT_LEN + 1);
	PQclear(answer->result);
	return true;
}

static void
make_request(LeaseRequest *request)
{
	uint8		random[16];

	if (request->request[0] != '\0')
		return;
	if (!pg_strong_random(random, sizeof(random)))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate random values")));
	for (int i = 0, at = 0; i < (int) sizeof(random); i++)
		at += snprintf(request->request + at, sizeof(request->request) - at, "%s%02x",
					   i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", random[i]);
}

/*
 * Ask for a lease.  What was asked for stays in request until it is answered, and
 * is asked for again: a lost answer costs no node.
 */
bool
call_lease(PGconn *conn, int64 deadline, RealmAnswer *answer, LeaseRequest *request,
		   HeldLease *lease, TimestampTz *realm_clock)
{
	char		size[16];
	char		ttl[TTL_TEXT_LEN];
	char		longest_ttl[TTL_TEXT_LEN];
	const char *params[] = {size, request->holder, ttl,
	*request->within != '\0' ? request->within : NULL, request->request, longest_ttl};
	NodeSpec	spec;
	bool		is_spec;

	make_request(request);
	snprintf(size, sizeof(size), "%d", request->node_id_size);
	ttl_text(ttl, request->ttl);
	ttl_text(longest_ttl, request->longest_ttl);
	if (!realm_ask(conn, "SELECT lease_id, node_spec, " USECS("granted_at") ", "
				   USECS("expires_at") ", " USECS("realm_clock")
				   " FROM scru64_realm.lease($1, $2, $3, NULL, $4, $5, $6)",
				   lengthof(params), params, deadline, false, answer))
	{
		/* what was refused was not leased; whatever else happened may have been */
		if (answer->refused)
			request->request[0] = '\0';
		return false;
	}
	is_spec = node_spec_parse(PQgetvalue(answer->result, 0, 1), &spec) == NODE_SPEC_OK;
	if (is_spec)
	{
		strlcpy(lease->lease_id, PQgetvalue(answer->result, 0, 0), UUID_TEXT_LEN + 1);
		lease->node = spec.node;
		lease->granted_at = time_of_usecs(PQgetvalue(answer->result, 0, 2));
		lease->expires_at = time_of_usecs(PQgetvalue(answer->result, 0, 3));
		*realm_clock = time_of_usecs(PQgetvalue(answer->result, 0, 4));
		lease->start = Max(tick_of_time(lease->granted_at),
						   scru64_get_timestamp(spec.node_prev));
		lease->limit = tick_of_time(lease->expires_at);
		request->request[0] = '\0';
	}
	else
		snprintf(answer->problem, LEASE_TEXT_LEN, "the realm's answer is no node spec");
	PQclear(answer->result);
	return is_spec;
}

/*
 * Renew a lease for ttl seconds from now, and tell its last ID, and for how long it
 * may be asked for later.  Never shortens it.
 */
bool
call_renew(PGconn *conn, int64 deadline, RealmAnswer *answer, int64 ttl,
		   int64 longest_ttl, uint64 last_id, HeldLease *lease,
		   TimestampTz *realm_clock)
{
	char		seconds[TTL_TEXT_LEN];
	char		longest[TTL_TEXT_LEN];
	char		last[BASE36_DIGITS + 1];
	const char *params[] = {lease->lease_id, seconds, last_id_text(lease, last_id, last), longest};

	ttl_text(seconds, ttl);
	ttl_text(longest, longest_ttl);
	if (!realm_ask(conn, "SELECT " USECS("expires_at") ", " USECS("realm_clock")
				   " FROM scru64_realm.renew($1, $2, $3, $4)",
				   lengthof(params), params, deadline, false, answer))
		return false;
	lease->expires_at = time_of_usecs(PQgetvalue(answer->result, 0, 0));
	lease->limit = Max(lease->limit, tick_of_time(lease->expires_at));
	*realm_clock = time_of_usecs(PQgetvalue(answer->result, 0, 1));
	PQclear(answer->result);
	return true;
}

/*
 * Give a lease back, with its last ID.  Once this was called nothing may be given
 * out of it, whatever comes back.
 */
bool
call_release(PGconn *conn, int64 deadline, bool stopping, RealmAnswer *answer,
			 const HeldLease *lease, uint64 last_id)
{
	char		last[BASE36_DIGITS + 1];
	const char *params[] = {lease->lease_id, last_id_text(lease, last_id, last)};

	if (!realm_ask(conn, "SELECT scru64_realm.release($1, $2)", lengthof(params),
				   params, deadline, stopping, answer))
		return false;
	PQclear(answer->result);
	return true;
}
