/*-------------------------------------------------------------------------
 *
 * realm_calls.c
 *		The functions of a realm, as the lease worker calls them.
 *
 * Each asks one question, and reads the answer into a lease.  Decides nothing, and
 * knows nothing of slots.  False if there is no good answer: then call->problem says
 * why, and the lease is what it was.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"

#include "utils/fmgrprotos.h"

#include "../base36.h"
#include "../id_time.h"
#include "../node_spec.h"
#include "realm_calls.h"

/* Times as microseconds of Unix time, which depend on no setting */
#define USECS(column)	"(extract(epoch FROM " column ") * 1000000)::bigint"

static TimestampTz
read_time(const RealmCall *call, int column)
{
	return UNIX_EPOCH_TIMESTAMP +
		(int64) strtoll(PQgetvalue(call->result, 0, column), NULL, 10);
}

static const char *
seconds_text(int64 seconds)
{
	return psprintf(INT64_FORMAT " seconds", seconds);
}

/* The last ID of a lease as text, for the realm; NULL if there is none. */
static const char *
last_id_text(const HeldLease *lease, uint64 last_id)
{
	char	   *text;

	if (scru64_get_timestamp(last_id) < lease->start_tick)
		return NULL;
	text = palloc0(BASE36_DIGITS + 1);
	base36_encode(last_id, text);
	return text;
}

/* Which realm is it?  To be called first: sets up the connection, too. */
bool
call_realm_id(RealmCall *call, char *realm_id)
{
	if (!realm_ask(call, "SELECT scru64_realm.realm_id(), set_config('client_min_messages', 'warning', false)",
				   0, NULL))
		return false;
	strlcpy(realm_id, PQgetvalue(call->result, 0, 0), UUID_TEXT_LEN + 1);
	return true;
}

static const char *
random_uuid(void)
{
	return DatumGetCString(DirectFunctionCall1(uuid_out, DirectFunctionCall1(gen_random_uuid, 0)));
}

static bool
read_lease(RealmCall *call, HeldLease *lease)
{
	NodeSpec	spec;

	if (node_spec_parse(PQgetvalue(call->result, 0, 1), &spec) != NODE_SPEC_OK)
		return realm_problem(call, "the realm's answer is no node spec");
	strlcpy(lease->lease_id, PQgetvalue(call->result, 0, 0), sizeof(lease->lease_id));
	lease->node = spec.node;
	lease->granted_at = read_time(call, 2);
	lease->expires_at = read_time(call, 3);
	lease->start_tick = Max(tick_of_time(lease->granted_at),
							scru64_get_timestamp(spec.node_prev));
	lease->limit_tick = tick_of_time(lease->expires_at);
	call->clock = read_time(call, 4);
	return true;
}

/*
 * Ask for a lease.  What was asked for stays in request until it is answered, and
 * is asked for again: a lost answer costs no node.
 */
bool
call_lease(RealmCall *call, LeaseRequest *request, HeldLease *lease)
{
	const char *params[] = {
		psprintf("%d", request->node_id_size), request->holder, seconds_text(request->ttl_s),
		*request->within != '\0' ? request->within : NULL, request->request,
		seconds_text(request->longest_ttl_s)
	};
	bool		answered;

	if (request->request[0] == '\0')
		strlcpy(request->request, random_uuid(), sizeof(request->request));
	answered = realm_ask(call, "SELECT lease_id, node_spec, " USECS("granted_at") ", "
						 USECS("expires_at") ", " USECS("realm_clock")
						 " FROM scru64_realm.lease($1, $2, $3, NULL, $4, $5, $6)",
						 lengthof(params), params) &&
		read_lease(call, lease);
	/* what was refused was not leased; whatever else happened may have been */
	if (answered || call->refused)
		request->request[0] = '\0';
	return answered;
}

/*
 * Renew a lease for ttl_s from now, and tell its last ID, and for how long it may be
 * asked for later.  Never shortens it.
 */
bool
call_renew(RealmCall *call, int64 ttl_s, int64 longest_ttl_s, uint64 last_id,
		   HeldLease *lease)
{
	const char *params[] = {
		lease->lease_id, seconds_text(ttl_s), last_id_text(lease, last_id),
		seconds_text(longest_ttl_s)
	};

	if (!realm_ask(call, "SELECT " USECS("expires_at") ", " USECS("realm_clock")
				   " FROM scru64_realm.renew($1, $2, $3, $4)",
				   lengthof(params), params))
		return false;
	lease->expires_at = read_time(call, 0);
	lease->limit_tick = Max(lease->limit_tick, tick_of_time(lease->expires_at));
	call->clock = read_time(call, 1);
	return true;
}

/* Give a lease back, with its last ID. */
bool
call_release(RealmCall *call, const HeldLease *lease, uint64 last_id)
{
	const char *params[] = {lease->lease_id, last_id_text(lease, last_id)};

	return realm_ask(call, "SELECT scru64_realm.release($1, $2)", lengthof(params), params);
}
