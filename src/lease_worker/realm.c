/*-------------------------------------------------------------------------
 *
 * realm.c
 *		A connection to the realm, one question at a time, by libpq.
 *
 * Never blocks for longer than it is told, but for the names of hosts, which libpq
 * has resolved: it waits for the socket and the latch together, and leaves at once
 * when the worker is to stop or to read its settings, unless it is stopping already.
 * Never cancels a query: the caller closes the connection.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "../pg_compat.h"

#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
#include "storage/latch.h"

#include "../clock.h"
#include "realm.h"

/* What the realm says of a lease that has expired or was released. */
#define OVER_SQLSTATE		"55000"

static void
receive_notice(void *arg, const PGresult *result)
{
	const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);

	if (severity != NULL && strcmp(severity, "WARNING") == 0)
		((RealmCall *) arg)->warned = true;
}

/* Has something come up that has the worker leave off? */
bool
realm_is_disturbed(const RealmCall *call)
{
	return (ShutdownRequestPending || ConfigReloadPending) && !call->stopping;
}

/* Wait for the socket.  False if it takes too long, or something else is first. */
static bool
wait_for_realm(const RealmCall *call, int events)
{
	int64		left_ms = call->deadline_ms - monotonic_ms();

	if (left_ms <= 0 || realm_is_disturbed(call))
		return false;
	if (WaitLatchOrSocket(MyLatch,
						  WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH | events,
						  PQsocket(call->conn), (long) left_ms, PG_WAIT_EXTENSION) & WL_LATCH_SET)
		ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	return !realm_is_disturbed(call);
}

/* What a connection string says of a keyword, split at commas. */
static List *
items_of(const PQconninfoOption *option, const char *keyword)
{
	List	   *items = NIL;
	char	   *rest;

	while (strcmp(option->keyword, keyword) != 0)
		option++;
	rest = option->val != NULL && *option->val != '\0' ? pstrdup(option->val) : NULL;
	while (rest != NULL)
		items = lappend(items, strsep(&rest, ","));
	return items;
}

/* The i-th item; the only one for any i; or NULL. */
static const char *
item(const List *items, int i)
{
	if (list_length(items) == 1)
		return linitial(items);
	return i < list_length(items) ? list_nth(items, i) : NULL;
}

static void
connect_to_host(RealmCall *call, const char *conninfo, const char *host, const char *hostaddr,
				const char *port)
{
	const char *keywords[] = {"dbname", "host", "hostaddr", "port", "fallback_application_name", NULL};
	const char *values[] = {conninfo, host, hostaddr, port, "scru64_lease", NULL};
	PostgresPollingStatusType status = PGRES_POLLING_WRITING;

	call->conn = PQconnectStartParams(keywords, values, true);
	while (PQstatus(call->conn) != CONNECTION_BAD &&
		   status != PGRES_POLLING_OK && status != PGRES_POLLING_FAILED)
	{
		if (!wait_for_realm(call, status == PGRES_POLLING_READING ?
							WL_SOCKET_READABLE : WL_SOCKET_WRITEABLE))
			break;
		status = PQconnectPoll(call->conn);
	}
}

/*
 * Connect.  Whatever comes of it, realm_ask() says it; the caller calls
 * realm_close().
 *
 * libpq tries one host after the other, but has no limit for each when it must not
 * block.  So a host that is silent would keep the others from being tried: have
 * them one by one, each with its share of the time, and first the last good one.
 */
void
realm_open(RealmCall *call, const char *conninfo, int64 timeout_ms, bool stopping)
{
	static int	good = 0;
	int64		deadline_ms = monotonic_ms() + timeout_ms;
	PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
	List	   *hosts;
	List	   *hostaddrs;
	List	   *ports;
	int			count;

	memset(call, 0, sizeof(*call));
	call->stopping = stopping;
	/* libpq's own message would quote it, and a password may be in it */
	if (options == NULL)
		return;
	hosts = items_of(options, "host");
	hostaddrs = items_of(options, "hostaddr");
	ports = items_of(options, "port");
	PQconninfoFree(options);
	count = Max(1, Max(list_length(hosts), list_length(hostaddrs)));
	for (int i = 0; i < count; i++)
	{
		int			host = (good + i) % count;
		int64		now_ms = monotonic_ms();

		PQfinish(call->conn);
		call->deadline_ms = now_ms + (deadline_ms - now_ms) / (count - i);
		connect_to_host(call, conninfo, item(hosts, host), item(hostaddrs, host),
						item(ports, host));
		if (PQstatus(call->conn) == CONNECTION_OK)
			good = host;
		if (PQstatus(call->conn) == CONNECTION_OK || realm_is_disturbed(call))
			break;
	}
	call->deadline_ms = deadline_ms;
	PQsetNoticeReceiver(call->conn, receive_notice, call);
}

void
realm_close(RealmCall *call)
{
	PQclear(call->result);
	PQfinish(call->conn);
}

/* There is no good answer, and why.  Returns false. */
bool
realm_problem(RealmCall *call, const char *text)
{
	strlcpy(call->problem, text != NULL && *text != '\0' ? text :
			"the realm does not answer", sizeof(call->problem));
	return false;
}

/* Receive all of the answer.  Its last result is the one that counts. */
static bool
receive(RealmCall *call)
{
	PGresult   *next;

	for (;;)
	{
		while (PQisBusy(call->conn))
		{
			if (!wait_for_realm(call, WL_SOCKET_READABLE) || !PQconsumeInput(call->conn))
				return realm_problem(call, NULL);
		}
		next = PQgetResult(call->conn);
		if (next == NULL)
			return true;
		PQclear(call->result);
		call->result = next;
	}
}

/* Is what was received a good answer? */
static bool
check_answer(RealmCall *call)
{
	const PGresult *result = call->result;
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);

	/* FATAL may come after the commit */
	call->refused = sqlstate != NULL &&
		strcmp(PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED), "ERROR") == 0;
	call->over = call->refused && strcmp(sqlstate, OVER_SQLSTATE) == 0;
	if (sqlstate != NULL)
		return realm_problem(call, PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY));
	if (PQresultStatus(result) != PGRES_TUPLES_OK || PQntuples(result) != 1)
		return realm_problem(call, PQerrorMessage(call->conn));
	if (call->warned)
		return realm_problem(call, "the realm's answer has a WARNING: it may not be replicated");
	return true;
}

/*
 * Ask for one row.  False if there is no good answer: then call->problem says why.
 * Else call->result is the row, until the next question.
 */
bool
realm_ask(RealmCall *call, const char *sql, int nparams, const char *const *params)
{
	PQclear(call->result);
	call->result = NULL;
	call->refused = call->over = call->warned = false;
	call->problem[0] = '\0';
	if (call->conn == NULL)
		return realm_problem(call, "scru64.realm is not a connection string");
	if (PQstatus(call->conn) != CONNECTION_OK ||
		!PQsendQueryParams(call->conn, sql, nparams, NULL, params, NULL, NULL, 0))
		return realm_problem(call, PQerrorMessage(call->conn));
	return receive(call) && check_answer(call);
}
