/*-------------------------------------------------------------------------
 *
 * realm_calls.c
 *		The functions of a realm, as the lease worker calls them.
 *
 * Each function sends one query, and reads the answer into a lease.  It returns false if
 * there is no good answer; then call->problem says why, and the lease is unchanged.  Nothing
 * here decides, or knows of slots.
 *
 * Queries name arguments and columns, because a realm of a later version may have more.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"

#include "utils/fmgrprotos.h"

#include "clock.h"
#include "lease_worker/realm_calls.h"
#include "pure/base36.h"
#include "pure/node_spec.h"
#include "type/id_time.h"

/*
 * Times as microseconds of Unix time, which depend on no setting.  A lease that expires at
 * infinity ends with the last ID.
 */
#define USECS(column) \
	"(extract(epoch FROM least(" column ", timestamptz '4261-01-01 00:00:00+00')) * 1000000)::bigint"

static bool
read_time(RealmCall *call, int column, TimestampTz *time)
{
	const char *text = PQgetvalue(call->result, 0, column);
	char	   *end;
	long long	usecs;

	errno = 0;
	usecs = strtoll(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' ||
		usecs < TICK_USECS || usecs >= LAST_TICK_TIMESTAMP - UNIX_EPOCH_TIMESTAMP)
		return realm_problem(call, "the realm's answer has a time that cannot be");
	*time = UNIX_EPOCH_TIMESTAMP + usecs;
	return true;
}

/* Read the realm's clock, and note when by the monotonic clock. */
static bool
read_clock(RealmCall *call, int column, HeldLease *lease)
{
	lease->heard_at_ms = monotonic_ms();
	return read_time(call, column, &lease->realm_clock);
}

static const char *
seconds_text(int64 seconds)
{
	return psprintf(INT64_FORMAT " seconds", seconds);
}

/* The last ID of a lease as text, for the realm; NULL if the lease has issued none. */
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

/* Which realm is it?  Call this first, because it also sets up the connection. */
bool
call_realm_id(RealmCall *call, char *realm_id)
{
	const char *text;

	if (!realm_ask(call, 2, "SELECT scru64_realm.realm_id(), set_config('client_min_messages', 'warning', false)",
				   0, NULL))
		return false;
	text = PQgetvalue(call->result, 0, 0);
	if (strlen(text) != UUID_TEXT_LEN || strspn(text, "0123456789abcdef-") != UUID_TEXT_LEN)
		return realm_problem(call, "the realm's answer is no realm_id");
	strlcpy(realm_id, text, UUID_TEXT_LEN + 1);
	return true;
}

static const char *
random_uuid(void)
{
	return DatumGetCString(DirectFunctionCall1(uuid_out, DirectFunctionCall1(gen_random_uuid, 0)));
}

/* Read the node of an answer.  It must be one that fits the request. */
static bool
read_node(RealmCall *call, const LeaseRequest *request, NodeSpec *spec)
{
	NodeSpec	block;

	if (node_spec_parse(PQgetvalue(call->result, 0, 1), spec) != NODE_SPEC_OK)
		return realm_problem(call, "the realm's answer is no node spec");
	if ((int) spec->node.node_id_size != request->node_id_size ||
		(node_spec_parse(request->within, &block) == NODE_SPEC_OK &&
		 !nodes_overlap(spec->node, block.node)))
		return realm_problem(call, "the realm's answer is a node that was not asked for");
	return true;
}

static bool
read_lease(RealmCall *call, const LeaseRequest *request, HeldLease *lease)
{
	NodeSpec	spec;
	HeldLease	answer = *lease;

	if (strcmp(PQgetvalue(call->result, 0, 0), request->lease_id) != 0)
		return realm_problem(call, "the realm's answer is not to this request");
	if (!read_node(call, request, &spec) || !read_time(call, 2, &answer.granted_at) ||
		!read_time(call, 3, &answer.expires_at) || !read_clock(call, 4, &answer))
		return false;
	strlcpy(answer.lease_id, request->lease_id, sizeof(answer.lease_id));
	answer.node = spec.node;
	answer.start_tick = Max(tick_of_time(answer.granted_at),
							scru64_get_timestamp(spec.node_prev));
	answer.limit_tick = tick_of_time(answer.expires_at);
	if (answer.start_tick >= answer.limit_tick)
		return realm_problem(call, "the realm's answer is a lease that ends before it begins");
	*lease = answer;
	return true;
}

/* Set the values of a request.  Values that differ from those before make it a new request. */
void
set_request(LeaseRequest *request, int node_id_size, int64 ttl_s, const char *holder,
			const char *within)
{
	if (request->node_id_size != node_id_size || request->ttl_s != ttl_s ||
		strcmp(request->holder, holder) != 0 || strcmp(request->within, within) != 0)
		request->lease_id[0] = '\0';
	request->node_id_size = node_id_size;
	request->ttl_s = ttl_s;
	strlcpy(request->holder, holder, sizeof(request->holder));
	strlcpy(request->within, within, sizeof(request->within));
}

/*
 * Ask for a lease.  If the answer is lost, the next call repeats the request, and the realm
 * returns the same lease: no node is wasted.
 */
bool
call_lease(RealmCall *call, LeaseRequest *request, HeldLease *lease)
{
	const char *params[] = {
		psprintf("%d", request->node_id_size), request->holder, seconds_text(request->ttl_s),
		*request->within != '\0' ? request->within : NULL, request->lease_id
	};
	bool		answered;

	if (request->lease_id[0] == '\0')
		strlcpy(request->lease_id, random_uuid(), sizeof(request->lease_id));
	answered = realm_ask(call, 5, "SELECT lease_id, node_spec, " USECS("granted_at") ", "
						 USECS("expires_at") ", " USECS("realm_clock")
						 " FROM scru64_realm.lease(node_id_size => $1, holder => $2, ttl => $3,"
						 " within => $4, request => $5)",
						 lengthof(params), params) &&
		read_lease(call, request, lease);
	/* unless the realm has refused, it may have granted the lease */
	if (answered || call->refused)
		request->lease_id[0] = '\0';
	return answered;
}

/*
 * Renew a lease for ttl_s from now, and report its last ID.  The lease never ends earlier than
 * before, whatever the realm answers.
 */
bool
call_renew(RealmCall *call, int64 ttl_s, uint64 last_id, HeldLease *lease)
{
	const char *params[] = {lease->lease_id, seconds_text(ttl_s), last_id_text(lease, last_id)};
	HeldLease	answer = *lease;

	if (!realm_ask(call, 2, "SELECT " USECS("expires_at") ", " USECS("realm_clock")
				   " FROM scru64_realm.renew(lease_id => $1, ttl => $2, last_id => $3)",
				   lengthof(params), params) ||
		!read_time(call, 0, &answer.expires_at) || !read_clock(call, 1, &answer))
		return false;
	answer.expires_at = Max(lease->expires_at, answer.expires_at);
	answer.limit_tick = tick_of_time(answer.expires_at);
	*lease = answer;
	return true;
}

/* Return a lease, with its last ID. */
bool
call_release(RealmCall *call, const HeldLease *lease, uint64 last_id)
{
	const char *params[] = {lease->lease_id, last_id_text(lease, last_id)};

	return realm_ask(call, 1, "SELECT scru64_realm.release(lease_id => $1, last_id => $2)", lengthof(params), params);
}
