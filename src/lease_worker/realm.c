/*-------------------------------------------------------------------------
 *
 * realm.c
 *		One question to the realm and its answer, by libpq.
 *
 * Part of the lease worker.  Never blocks for longer than it is told, but for the
 * names of hosts, which libpq has resolved: it waits for the socket and the latch
 * together, and leaves at once when the worker is to stop or to read its settings,
 * unless it is stopping already.  Never cancels a query: the caller closes the
 * connection.  May call nothing of ours.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "../pg_compat.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
#include "storage/latch.h"

#include "realm.h"

/* What the realm says of a lease that has expired or was released. */
#define OVER_SQLSTATE		"55000"

static void
receive_notice(void *arg, const PGresult *result)
{
	const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);

	if (severity != NULL && strcmp(severity, "WARNING") == 0)
		*(bool *) arg = true;
}

/* Wait for the socket.  False if it takes too long, or something else is first. */
static bool
wait_for_realm(PGconn *conn, int events, int64 deadline, bool stopping)
{
	int64		left = deadline - monotonic_ms();
	int			happened;

	if (left <= 0 || (ShutdownRequestPending && !stopping))
		return false;
	happened = WaitLatchOrSocket(MyLatch,
								 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH | events,
								 PQsocket(conn), (long) left, PG_WAIT_EXTENSION);
	if (happened & WL_LATCH_SET)
		ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	return !((ShutdownRequestPending || ConfigReloadPending) && !stopping);
}

/* Items of a list with commas; an empty one has none. */
static int
count_items(const char *list)
{
	int			count = list != NULL && *list != '\0' ? 1 : 0;

	for (; count > 0 && (list = strchr(list, ',')) != NULL; list++)
		count++;
	return count;
}

/* The i-th item of a list, palloc'd; the only one for any i; or NULL. */
static char *
item(const char *list, int i)
{
	int			count = count_items(list);

	if (count == 0 || (count > 1 && i >= count))
		return NULL;
	for (; count > 1 && i > 0; i--)
		list = strchr(list, ',') + 1;
	return pnstrdup(list, strcspn(list, ","));
}

/* What a connection string says of a keyword, or what the environment does. */
static const char *
option(const PQconninfoOption *options, const char *keyword)
{
	for (; options != NULL && options->keyword != NULL; options++)
	{
		if (strcmp(options->keyword, keyword) == 0)
			return options->val;
	}
	return NULL;
}

static PGconn *
connect_to_host(const char *conninfo, const PQconninfoOption *options, int i,
				int64 deadline, bool stopping)
{
	const char *keywords[] = {"dbname", "host", "hostaddr", "port", "fallback_application_name", NULL};
	const char *values[] = {
		conninfo, item(option(options, "host"), i), item(option(options, "hostaddr"), i),
		item(option(options, "port"), i), "scru64_lease", NULL
	};
	PGconn	   *conn = PQconnectStartParams(keywords, values, true);
	PostgresPollingStatusType status = PGRES_POLLING_WRITING;

	while (conn != NULL && PQstatus(conn) != CONNECTION_BAD &&
		   status != PGRES_POLLING_OK && status != PGRES_POLLING_FAILED)
	{
		if (!wait_for_realm(conn, status == PGRES_POLLING_READING ?
							WL_SOCKET_READABLE : WL_SOCKET_WRITEABLE,
							deadline, stopping))
			break;
		status = PQconnectPoll(conn);
	}
	return conn;
}

/*
 * Connect.  Whatever comes of it, realm_ask() says it; the caller calls PQfinish().
 *
 *	deadline	by monotonic_ms()
 *	stopping	go on also if the worker is to stop
 *
 * libpq tries one host after the other, but has no limit for each when it must not
 * block.  So a host that is silent would keep the others from being tried: have
 * them one by one, each with its share of the time, and first the last good one.
 */
PGconn *
realm_connect(const char *conninfo, int64 deadline, bool stopping)
{
	static int	good = 0;
	PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
	int			hosts = Max(1, Max(count_items(option(options, "host")),
								   count_items(option(options, "hostaddr"))));
	PGconn	   *conn = NULL;

	/* libpq's own message would quote it, and a password may be in it */
	if (options == NULL)
		return NULL;
	for (int i = 0; i < hosts; i++)
	{
		int			host = (good + i) % hosts;
		int64		share = (deadline - monotonic_ms()) / (hosts - i);

		PQfinish(conn);
		conn = connect_to_host(conninfo, options, host, monotonic_ms() + share, stopping);
		if (conn != NULL && PQstatus(conn) == CONNECTION_OK)
		{
			good = host;
			break;
		}
		if ((ShutdownRequestPending || ConfigReloadPending) && !stopping)
			break;
	}
	PQconninfoFree(options);
	return conn;
}

static bool
problem(RealmAnswer *answer, const char *text)
{
	strlcpy(answer->problem, text != NULL && *text != '\0' ? text :
			"the realm does not answer", LEASE_TEXT_LEN);
	PQclear(answer->result);
	answer->result = NULL;
	return false;
}

/*
 * Ask for one row.  False if there is no good answer: then answer->problem says
 * why.  Else answer->result is the row, which the caller clears.
 *
 * An answer with a WARNING is none: a commit that has not reached the realm's
 * synchronous standby warns.
 */
bool
realm_ask(PGconn *conn, const char *sql, int nparams, const char *const *params,
		  int64 deadline, bool stopping, RealmAnswer *answer)
{
	PGresult   *next;
	const char *sqlstate;
	bool		warned = false;

	memset(answer, 0, sizeof(*answer));
	if (conn == NULL || PQstatus(conn) != CONNECTION_OK)
		return problem(answer, conn == NULL ?
					   "scru64.realm is not a connection string" : PQerrorMessage(conn));
	PQsetNoticeReceiver(conn, receive_notice, &warned);
	if (!PQsendQueryParams(conn, sql, nparams, NULL, params, NULL, NULL, 0))
		return problem(answer, PQerrorMessage(conn));

	for (;;)
	{
		while (PQisBusy(conn))
		{
			if (!wait_for_realm(conn, WL_SOCKET_READABLE, deadline, stopping) ||
				!PQconsumeInput(conn))
				return problem(answer, NULL);
		}
		next = PQgetResult(conn);
		if (next == NULL)
			break;
		PQclear(answer->result);
		answer->result = next;
	}

	sqlstate = PQresultErrorField(answer->result, PG_DIAG_SQLSTATE);
	/* FATAL may come after the commit */
	answer->refused = sqlstate != NULL &&
		strcmp(PQresultErrorField(answer->result, PG_DIAG_SEVERITY_NONLOCALIZED), "ERROR") == 0;
	answer->over = answer->refused && strcmp(sqlstate, OVER_SQLSTATE) == 0;
	if (sqlstate != NULL)
		return problem(answer, PQresultErrorField(answer->result, PG_DIAG_MESSAGE_PRIMARY));
	if (PQresultStatus(answer->result) != PGRES_TUPLES_OK ||
		PQntuples(answer->result) != 1)
		return problem(answer, PQerrorMessage(conn));
	if (warned)
		return problem(answer, "the realm's answer has a WARNING: it may not be replicated");
	return true;
}
