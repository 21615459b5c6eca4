/*-------------------------------------------------------------------------
 *
 * realm_client.c
 *		Calls of a realm, the database that leases nodes to servers: by the lease worker, over
 *		libpq.
 *
 * The first half is the connection: hosts are tried one by one, and each has its share of the time.
 * The second half is realm_get_id(), realm_lease(), realm_renew() and realm_release(): one query
 * each.  They return false if there is no good answer, and call->problem then says why.  Only a
 * good answer changes a lease.  Nothing here decides, or knows of the sessions.
 *
 * Queries name arguments and columns, because a realm of a later version may have more.
 *
 * A wait ends when the socket is ready, at the deadline of the call, when the host has sent too
 * much, on a signal to the worker, or when recovery ends, because sessions may then be waiting for
 * the lease.  Only libpq may block beyond the deadline: while it resolves a host name, and while it
 * hashes a password as often as the host asks for.  No query is cancelled: the caller closes the
 * connection.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifndef WIN32
#include <sys/ioctl.h>
#endif

#include "pg_compat.h"

#include "access/xlog.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
#include "storage/latch.h"
#include "utils/fmgrprotos.h"

#include "clock.h"
#include "pure/base36.h"
#include "pure/node_spec.h"
#include "realm/worker/realm_client.h"
#include "type/id_time.h"

/* The realm's error for a lease that has expired or was released */
#define LEASE_OVER_SQLSTATE	"55000"

/*
 * How many bytes a host may send.  Certificates, parameters, errors and a row are some kB.  libpq
 * keeps what a host sends, parameters above all, even before the host has proved who it is.
 *
 * The worker checks this limit between two reads.  One read of libpq goes on while there is more
 * of a long message, so a host that sends as fast as libpq reads can make libpq allocate as much
 * memory as the message claims to need.
 */
#define MAX_RECEIVED		(256 * 1024)

/*
 * Times as microseconds of Unix time, which depend on no setting.  A lease that expires at
 * infinity ends with the last ID.
 */
#define USECS(column) \
	"(extract(epoch FROM least(" column ", timestamptz '4261-01-01 00:00:00+00')) * 1000000)::bigint"

/*
 * A connection, one query at a time
 */

static bool
is_one_of(const char *field, const char *const *names)
{
	for (; field != NULL && *names != NULL; names++)
	{
		if (strcmp(field, *names) == 0)
			return true;
	}
	return false;
}

/*
 * May a notice say that the answer is committed, and not replicated?  SyncRepWaitForLSN() says
 * so, by a WARNING of SQLSTATE class 01 or 57.  Others are harmless: those about a setting of
 * the realm's server have another class, and those of transaction IDs that run out name a
 * function.  A notice without a field may be anything.
 */
static bool
may_not_be_replicated(const PGresult *notice)
{
	static const char *const harmless[] = {"NOTICE", "INFO", "LOG", "DEBUG", NULL};
	static const char *const wraparound[] = {"GetNewTransactionId", "GetNewMultiXactId", NULL};
	const char *severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
	const char *sqlstate = PQresultErrorField(notice, PG_DIAG_SQLSTATE);

	if (is_one_of(severity, harmless) ||
		is_one_of(PQresultErrorField(notice, PG_DIAG_SOURCE_FUNCTION), wraparound))
		return false;
	return severity == NULL || strcmp(severity, "WARNING") != 0 || sqlstate == NULL ||
		strncmp(sqlstate, "01", 2) == 0 || strncmp(sqlstate, "57", 2) == 0;
}

static void
receive_notice(void *arg, const PGresult *notice)
{
	RealmCall  *call = arg;
	const char *message = PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY);
	char		problem[LEASE_TEXT_LEN];

	if (!may_not_be_replicated(notice))
		return;
	snprintf(problem, sizeof(problem), "the realm's answer may not be replicated: %s",
			 message != NULL ? message : "WARNING");
	call->warned = true;
	realm_problem(call, problem);
}

/*
 * Does the worker have to do something else first: stop, read its settings, or activate the
 * standby's lease, for which sessions wait since the promotion?
 */
bool
realm_is_disturbed(const RealmCall *call)
{
	return !call->stopping &&
		(ShutdownRequestPending || ConfigReloadPending ||
		 (call->in_recovery && !RecoveryInProgress()));
}

/* How many bytes does a socket have for libpq to read?  0 if the system does not say. */
static size_t
bytes_to_read(pgsocket sock)
{
#ifdef WIN32
	u_long		bytes = 0;

	(void) ioctlsocket(sock, FIONREAD, &bytes);
#else
	int			bytes = 0;

	(void) ioctl(sock, FIONREAD, &bytes);
#endif
	return (size_t) bytes;
}

/*
 * Wait for the socket.  Returns false at the deadline, if the host has sent too much, or if the
 * worker is disturbed.  When only the latch was set, the wait goes on: the socket is not ready,
 * and libpq would block on it without end.
 */
static bool
wait_for_socket(RealmCall *call, int event)
{
	int			events = 0;

	while ((events & event) == 0)
	{
		int64		remaining_ms = call->deadline_ms - monotonic_ms();

		if (remaining_ms <= 0 || realm_is_disturbed(call))
			return false;
		events = WaitLatchOrSocket(MyLatch,
								   WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH | event,
								   PQsocket(call->conn), (long) remaining_ms, PG_WAIT_EXTENSION);
		if (events & WL_LATCH_SET)
			ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	call->received += bytes_to_read(PQsocket(call->conn));
	return call->received <= MAX_RECEIVED;
}

/*
 * The options of a connection string, with those of the service file and of the environment; NULL
 * if the string is no connection string.
 *
 * libpq joins these options for connections only.  So this connection is to fail before libpq
 * looks for a host.
 */
static PQconninfoOption *
resolve_options(const char *conninfo)
{
	const char *keywords[] = {"dbname", "sslmode", NULL};
	const char *values[] = {conninfo, "not to be connected", NULL};
	PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
	PGconn	   *conn;

	if (options == NULL)
		return NULL;
	PQconninfoFree(options);
	conn = PQconnectStartParams(keywords, values, true);
	options = PQconninfo(conn);
	PQfinish(conn);
	return options;
}

/* The value of an option, split at commas */
static List *
option_values(const PQconninfoOption *option, const char *keyword)
{
	List	   *values = NIL;
	char	   *rest;

	while (strcmp(option->keyword, keyword) != 0)
		option++;
	rest = option->val != NULL && *option->val != '\0' ? pstrdup(option->val) : NULL;
	while (rest != NULL)
	{
		char	   *comma = strchr(rest, ',');

		values = lappend(values, rest);
		if (comma != NULL)
			*comma++ = '\0';
		rest = comma;
	}
	return values;
}

/* The i-th value, or NULL; a single value is for every host. */
static const char *
value_of_host(const List *values, int i)
{
	if (list_length(values) == 1)
		return linitial(values);
	return i < list_length(values) ? list_nth(values, i) : NULL;
}

/* Does libpq accept these lists together?  One port is for all hosts. */
static bool
lists_match(const List *hosts, const List *hostaddrs, const List *ports)
{
	int			count = Max(1, Max(list_length(hosts), list_length(hostaddrs)));

	return (hosts == NIL || hostaddrs == NIL ||
			list_length(hosts) == list_length(hostaddrs)) &&
		(list_length(ports) <= 1 || list_length(ports) == count);
}

static void
connect_to_host(RealmCall *call, const char *conninfo, const char *host, const char *hostaddr,
				const char *port)
{
	const char *keywords[] = {"dbname", "host", "hostaddr", "port", "fallback_application_name", NULL};
	const char *values[] = {conninfo, host, hostaddr, port, "scru64_lease", NULL};
	PostgresPollingStatusType status = PGRES_POLLING_WRITING;

	call->conn = PQconnectStartParams(keywords, values, true);
	/* libpq would write the realm's notices to the log */
	PQsetNoticeReceiver(call->conn, receive_notice, call);
	while (PQstatus(call->conn) != CONNECTION_BAD &&
		   status != PGRES_POLLING_OK && status != PGRES_POLLING_FAILED)
	{
		int			awaited = WL_SOCKET_WRITEABLE;

		if (status == PGRES_POLLING_READING)
			awaited = WL_SOCKET_READABLE;
		/* on Windows, a socket that cannot connect wakes its waiters by this event alone */
		else if (PQstatus(call->conn) == CONNECTION_STARTED)
			awaited = WL_SOCKET_CONNECTED;
		if (!wait_for_socket(call, awaited))
			break;
		status = PQconnectPoll(call->conn);
	}
}

/*
 * Connect.  If that fails, all that is asked fails, too, and says why.  Call realm_close() in
 * either case.
 *
 * libpq tries one host after the other, but without blocking it has no timeout for each, so a
 * silent host would keep it from the others.  So this function tries the hosts one by one,
 * from the first_host-th on, and gives each its share of the time.
 */
void
realm_open(RealmCall *call, const char *conninfo, int first_host, int64 timeout_ms,
		   bool stopping)
{
	int64		deadline_ms = monotonic_ms() + timeout_ms;
	PQconninfoOption *options = resolve_options(conninfo);
	List	   *hosts;
	List	   *hostaddrs;
	List	   *ports;
	int			count;

	memset(call, 0, sizeof(*call));
	call->stopping = stopping;
	call->in_recovery = RecoveryInProgress();
	/* libpq's own message would quote the string, perhaps with a password */
	if (options == NULL)
		return;
	hosts = option_values(options, "host");
	hostaddrs = option_values(options, "hostaddr");
	ports = option_values(options, "port");
	PQconninfoFree(options);
	/* libpq then says in its error how many there are of each */
	if (!lists_match(hosts, hostaddrs, ports))
		hosts = hostaddrs = ports = NIL;
	count = Max(1, Max(list_length(hosts), list_length(hostaddrs)));
	for (int i = 0; i < count; i++)
	{
		int64		now_ms = monotonic_ms();

		PQfinish(call->conn);
		call->host = (first_host + i) % count;
		call->deadline_ms = now_ms + (deadline_ms - now_ms) / (count - i);
		call->received = 0;
		connect_to_host(call, conninfo, value_of_host(hosts, call->host),
						value_of_host(hostaddrs, call->host), value_of_host(ports, call->host));
		if (PQstatus(call->conn) == CONNECTION_OK || realm_is_disturbed(call))
			break;
	}
	call->deadline_ms = deadline_ms;
}

void
realm_close(RealmCall *call)
{
	PQclear(call->result);
	PQfinish(call->conn);
}

/* Set the reason why there is no good answer.  Returns false. */
bool
realm_problem(RealmCall *call, const char *text)
{
	const char *problem = "the realm does not answer";

	if (call->received > MAX_RECEIVED)
		problem = "the realm's answer is too long";
	else if (text != NULL && *text != '\0')
		problem = text;
	scru64_mailbox_copy_text(call->problem, problem, LEASE_TEXT_LEN);
	return false;
}

/* Get the next result, or NULL after the last one.  Returns false if it does not come. */
static bool
next_result(RealmCall *call, PGresult **result)
{
	while (PQisBusy(call->conn))
	{
		if (!wait_for_socket(call, WL_SOCKET_READABLE) || !PQconsumeInput(call->conn))
			return realm_problem(call, PQerrorMessage(call->conn));
	}
	*result = PQgetResult(call->conn);
	return true;
}

/*
 * The answer is not a row, or more than one.  Only an ERROR makes it certain that the realm
 * has refused: FATAL may come after the commit, and an answer without a severity may be FATAL.
 */
static bool
check_error(RealmCall *call, const PGresult *result)
{
	const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

	if (PQresultStatus(result) != PGRES_FATAL_ERROR)
		return realm_problem(call, "the realm's answer is not one row");
	call->refused = severity != NULL && strcmp(severity, "ERROR") == 0 && sqlstate != NULL;
	call->lease_over = call->refused && strcmp(sqlstate, LEASE_OVER_SQLSTATE) == 0;
	return realm_problem(call, message != NULL ? message : PQresultErrorMessage(result));
}

/* Receive one row, and the end of the answer. */
static bool
receive(RealmCall *call)
{
	PGresult   *next;
	bool		received;

	if (!next_result(call, &call->result))
		return false;
	if (PQresultStatus(call->result) != PGRES_TUPLES_OK || PQntuples(call->result) != 1)
		return check_error(call, call->result);
	if (!next_result(call, &next))
		return false;
	received = next == NULL || check_error(call, next);
	PQclear(next);
	return received;
}

/* Has the row this number of columns, and is each value a text? */
static bool
check_row(RealmCall *call, int columns)
{
	const PGresult *row = call->result;

	if (call->warned)
		return false;
	if (PQnfields(row) != columns)
		return realm_problem(call, "the realm's answer has not the columns that were asked for");
	for (int i = 0; i < columns; i++)
	{
		if (PQgetisnull(row, 0, i) ||
			strlen(PQgetvalue(row, 0, i)) != (size_t) PQgetlength(row, 0, i))
			return realm_problem(call, "the realm's answer has a value that is none");
	}
	return true;
}

/*
 * Query one row, call->result, which stays until the next query.  Returns false if there is
 * no good answer; call->problem then says why.
 */
static bool
ask(RealmCall *call, int columns, const char *sql, int nparams, const char *const *params)
{
	PGresult   *end;

	PQclear(call->result);
	call->result = NULL;
	/* after an error, the end of the previous answer is still to come */
	if (PQtransactionStatus(call->conn) == PQTRANS_ACTIVE && next_result(call, &end))
		PQclear(end);
	call->refused = call->lease_over = call->warned = false;
	call->problem[0] = '\0';
	if (call->conn == NULL)
		return realm_problem(call, "scru64.realm is not a connection string");
	if (PQstatus(call->conn) != CONNECTION_OK ||
		!PQsendQueryParams(call->conn, sql, nparams, NULL, params, NULL, NULL, 0))
		return realm_problem(call, PQerrorMessage(call->conn));
	return receive(call) && check_row(call, columns);
}

/*
 * The realm's functions
 */

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
realm_get_id(RealmCall *call, char *realm_id)
{
	const char *text;

	if (!ask(call, 2, "SELECT scru64_realm.realm_id(), set_config('client_min_messages', 'warning', false)",
			 0, NULL))
		return false;
	text = PQgetvalue(call->result, 0, 0);
	if (strlen(text) != UUID_TEXT_LEN || strspn(text, "0123456789abcdef-") != UUID_TEXT_LEN)
		return realm_problem(call, "the realm's answer is no realm_id");
	strlcpy(realm_id, text, UUID_TEXT_LEN + 1);
	return true;
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
realm_set_request(LeaseRequest *request, int node_id_size, int64 ttl_s, const char *holder,
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
realm_lease(RealmCall *call, LeaseRequest *request, HeldLease *lease)
{
	const char *params[] = {
		psprintf("%d", request->node_id_size), request->holder, seconds_text(request->ttl_s),
		*request->within != '\0' ? request->within : NULL, request->lease_id
	};
	bool		answered;

	if (request->lease_id[0] == '\0')
		strlcpy(request->lease_id,
				DatumGetCString(DirectFunctionCall1(uuid_out, DirectFunctionCall1(gen_random_uuid, 0))),
				sizeof(request->lease_id));
	answered = ask(call, 5, "SELECT lease_id, node_spec, " USECS("granted_at") ", "
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
realm_renew(RealmCall *call, int64 ttl_s, uint64 last_id, HeldLease *lease)
{
	const char *params[] = {lease->lease_id, seconds_text(ttl_s), last_id_text(lease, last_id)};
	HeldLease	answer = *lease;

	if (!ask(call, 2, "SELECT " USECS("expires_at") ", " USECS("realm_clock")
			 " FROM scru64_realm.renew(lease_id => $1, ttl => $2, last_id => $3)",
			 lengthof(params), params) ||
		!read_time(call, 0, &answer.expires_at) || !read_clock(call, 1, &answer))
		return false;
	answer.expires_at = Max(lease->expires_at, answer.expires_at);
	answer.limit_tick = tick_of_time(answer.expires_at);
	*lease = answer;
	return true;
}

/* Release a lease, and report its last ID. */
bool
realm_release(RealmCall *call, const HeldLease *lease, uint64 last_id)
{
	const char *params[] = {lease->lease_id, last_id_text(lease, last_id)};

	return ask(call, 1, "SELECT scru64_realm.release(lease_id => $1, last_id => $2)",
			   lengthof(params), params);
}
