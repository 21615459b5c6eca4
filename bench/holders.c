/*-------------------------------------------------------------------------
 *
 * holders.c
 *		Many holders of leases on one realm: they renew, stop, crash and come back.
 *
 *	holders CONNINFO HOLDERS SECONDS TTL POSTMASTER
 *
 * Asks as servers do: a connection for each call, a renewal after a third of the TTL
 * (seconds), give or take a tenth.  A holder lives for ten minutes on average.  Half of
 * them end with a release, half without a word; each comes back within a minute.
 * POSTMASTER is the process ID of the realm's server.  Its use of the processors is
 * printed, together with that of all its processes.
 *
 * Prints a line a minute; exits with 1 if anything was refused.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <libpq-fe.h>

#define PROCESSES	4
#define LIFE		600.0		/* seconds, on average */
#define NODE_SIZE	"12"
#define BUCKETS		100000		/* of 0.1 ms */

typedef enum
{
	LEASE, RENEW, RELEASE, KINDS
} Kind;

typedef struct
{
	int64_t		count[KINDS];
	int64_t		refused;
	int64_t		took[BUCKETS];	/* calls that took so long */
} Counts;

typedef struct
{
	char		lease_id[37];	/* empty: none */
	char		last_id[13];
	double		next;			/* when to call */
	double		end;			/* when it ends */
} Holder;

static Counts *counts;			/* of all processes, since the start */
static const char *conninfo;
static const char *ttl;

static double
seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/* A call, in a connection of its own.  NULL if it was refused; else the caller clears it. */
static PGresult *
call(Kind kind, const char *sql, int nparams, const char *const *params)
{
	double		began = seconds();
	PGconn	   *conn = PQconnectdb(conninfo);
	PGresult   *result = PQexecParams(conn, sql, nparams, NULL, params, NULL, NULL, 0);
	int			bucket;

	if (PQresultStatus(result) != PGRES_TUPLES_OK)
	{
		if (__atomic_fetch_add(&counts->refused, 1, __ATOMIC_RELAXED) < 10)
			fprintf(stderr, "%s", PQerrorMessage(conn));
		PQclear(result);
		result = NULL;
	}
	PQfinish(conn);
	bucket = (int) ((seconds() - began) * 10000);
	__atomic_fetch_add(&counts->took[bucket < BUCKETS ? bucket : BUCKETS - 1], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&counts->count[kind], 1, __ATOMIC_RELAXED);
	return result;
}

static void
step(Holder *holder, double now)
{
	const char *params[3];
	PGresult   *result;

	if (holder->lease_id[0] == '\0')
	{
		params[0] = ttl;
		result = call(LEASE, "SELECT lease_id, node_spec FROM scru64_realm.lease(" NODE_SIZE ", 'holder', $1::interval)", 1, params);
		if (result != NULL)
		{
			snprintf(holder->lease_id, sizeof(holder->lease_id), "%s", PQgetvalue(result, 0, 0));
			/* 12 digits, slash, size */
			snprintf(holder->last_id, sizeof(holder->last_id), "%.12s", PQgetvalue(result, 0, 1));
		}
		holder->end = now - LIFE * log(1 - drand48());
	}
	else if (now < holder->end)
	{
		params[0] = holder->lease_id;
		params[1] = ttl;
		params[2] = holder->last_id;
		result = call(RENEW, "SELECT expires_at FROM scru64_realm.renew($1, $2::interval, $3)", 3, params);
		if (result == NULL)
			holder->lease_id[0] = '\0';
	}
	else
	{
		result = NULL;
		if (drand48() < 0.5)
		{
			params[0] = holder->lease_id;
			params[1] = holder->last_id;
			result = call(RELEASE, "SELECT scru64_realm.release($1, $2)", 2, params);
		}
		holder->lease_id[0] = '\0';
		holder->next = now + 60 * drand48();
		PQclear(result);
		return;
	}
	PQclear(result);
	holder->next = now + atof(ttl) / 3 * (0.9 + 0.2 * drand48());
}

static void
run(int number, double end)
{
	Holder	   *holders = calloc(number, sizeof(Holder));

	srand48(getpid());
	for (int i = 0; i < number; i++)
		holders[i].next = seconds() + atof(ttl) / 3 * drand48();
	for (;;)
	{
		Holder	   *first = holders;
		double		wait;

		for (int i = 1; i < number; i++)
		{
			if (holders[i].next < first->next)
				first = &holders[i];
		}
		if (first->next >= end)
			return;
		wait = first->next - seconds();
		if (wait > 0)
			usleep((useconds_t) (wait * 1e6));
		step(first, seconds());
	}
}

/* Seconds that a process has used, and those of its children that have ended. */
static double
used_by(int pid, int *children)
{
	char		name[64];
	char		line[1024] = "";
	long		ticks[4] = {0};
	char	   *after;
	FILE	   *file;

	snprintf(name, sizeof(name), "/proc/%d/stat", pid);
	if ((file = fopen(name, "r")) != NULL)
	{
		if (fgets(line, sizeof(line), file) != NULL && (after = strrchr(line, ')')) != NULL)
			sscanf(after + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld %ld %ld",
				   &ticks[0], &ticks[1], &ticks[2], &ticks[3]);
		fclose(file);
	}
	if (children != NULL)
	{
		int			child;

		snprintf(name, sizeof(name), "/proc/%d/task/%d/children", pid, pid);
		if ((file = fopen(name, "r")) != NULL)
		{
			while (fscanf(file, "%d", &child) == 1)
				*children += (int) (used_by(child, NULL) * 1000);
			fclose(file);
		}
	}
	return (double) (ticks[0] + ticks[1] + ticks[2] + ticks[3]) / sysconf(_SC_CLK_TCK);
}

/* All processes of the server */
static double
used_by_server(int postmaster)
{
	int			children = 0;
	double		used = used_by(postmaster, &children);

	return used + children / 1000.0;
}

/* Milliseconds that so many of the calls since then did not take longer than */
static double
percentile(const Counts *then, double part)
{
	int64_t		all = 0;
	int64_t		sum = 0;
	int			i;

	for (i = 0; i < BUCKETS; i++)
		all += counts->took[i] - then->took[i];
	for (i = 0; i < BUCKETS - 1; i++)
	{
		sum += counts->took[i] - then->took[i];
		if (sum >= all * part)
			break;
	}
	return (i + 1) / 10.0;
}

static void
print_line(const Counts *then, double lasted, double used)
{
	PGconn	   *conn = PQconnectdb(conninfo);
	PGresult   *result = PQexec(conn, "SELECT (SELECT count(*) FROM scru64_realm.ledger), n_dead_tup, autovacuum_count, "
								"pg_total_relation_size(relid) / 1024 FROM pg_stat_user_tables WHERE relname = 'ledger'");

	printf("%10.1f %8.1f %10.1f %10.1f %8.1f %8.1f %8ld %10.1f", (counts->count[RENEW] - then->count[RENEW]) / lasted,
		   (counts->count[LEASE] - then->count[LEASE]) / lasted, (counts->count[RELEASE] - then->count[RELEASE]) / lasted,
		   percentile(then, 0.5), percentile(then, 0.99), percentile(then, 1), (long) (counts->refused - then->refused),
		   100 * used / lasted);
	if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1)
		printf(" %8s %10s %8s %8s", PQgetvalue(result, 0, 0), PQgetvalue(result, 0, 1), PQgetvalue(result, 0, 2), PQgetvalue(result, 0, 3));
	printf("\n");
	fflush(stdout);
	PQclear(result);
	PQfinish(conn);
}

int
main(int argc, char **argv)
{
	Counts	   *then = calloc(1, sizeof(Counts));
	double		end;
	double		at;
	double		used;
	int			postmaster;

	if (argc != 6)
	{
		fprintf(stderr, "usage: holders CONNINFO HOLDERS SECONDS TTL POSTMASTER\n");
		return 2;
	}
	conninfo = argv[1];
	ttl = argv[4];
	postmaster = atoi(argv[5]);
	at = seconds();
	end = at + atof(argv[3]);
	used = used_by_server(postmaster);
	counts = mmap(NULL, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (counts == MAP_FAILED || then == NULL)
		return 2;
	for (int i = 0; i < PROCESSES; i++)
	{
		if (fork() == 0)
		{
			run(atoi(argv[2]) / PROCESSES, end);
			_exit(0);
		}
	}

	printf("renewals/s leases/s releases/s  median ms   99%% ms   max ms  refused  %% of core   ledger  dead rows  vacuums       kB\n");
	while (at < end - 1)
	{
		double		next = at + 60 < end ? at + 60 : end;
		double		now_used;

		usleep((useconds_t) ((next - seconds()) * 1e6));
		now_used = used_by_server(postmaster);
		print_line(then, seconds() - at, now_used - used);
		memcpy(then, counts, sizeof(Counts));
		at = next;
		used = now_used;
	}
	while (wait(NULL) > 0)
		;
	return counts->refused > 0;
}
