/*
 * libpq, in binary: an ID is its 8 bytes, the highest first
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

static uint64_t
id_of_bytes(const char *bytes)
{
	uint64_t	id = 0;

	for (int i = 0; i < 8; i++)
		id = id << 8 | (unsigned char) bytes[i];
	return id;
}

static void
bytes_of_id(uint64_t id, char *bytes)
{
	for (int i = 7; i >= 0; i--, id >>= 8)
		bytes[i] = (char) (id & 0xff);
}

static PGconn *conn;

static void
ok(bool passed, const char *name)
{
	printf("%s - %s\n", passed ? "ok" : "not ok", name);
	if (!passed)
		printf("#   %s\n", PQerrorMessage(conn));
}

/* A query without parameters, its result as text */
static PGresult *
query(const char *sql)
{
	PGresult   *result = PQexec(conn, sql);

	if (PQresultStatus(result) != PGRES_TUPLES_OK && PQresultStatus(result) != PGRES_COMMAND_OK)
	{
		fprintf(stderr, "%s: %s", sql, PQerrorMessage(conn));
		exit(1);
	}
	return result;
}

static PGresult *
query_with_id(PGconn *conn, const char *sql, uint64_t id)
{
	char		bytes[8];
	const char *values[1] = {bytes};
	const int	lengths[1] = {8};
	const int	formats[1] = {1};	/* binary */

	bytes_of_id(id, bytes);
	return PQexecParams(conn, sql, 1, NULL, values, lengths, formats, 1);
}

/* Does a query with a binary ID give this ID, in binary? */
static bool
gives(const char *sql, uint64_t id, uint64_t expected)
{
	PGresult   *result = query_with_id(conn, sql, id);
	bool		gives = PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1 &&
		PQgetlength(result, 0, 0) == 8 && id_of_bytes(PQgetvalue(result, 0, 0)) == expected;

	PQclear(result);
	return gives;
}

static bool
prints(const char *sql, const char *expected)
{
	PGresult   *result = query(sql);
	bool		prints = PQntuples(result) == 1 && strcmp(PQgetvalue(result, 0, 0), expected) == 0;

	PQclear(result);
	return prints;
}

int
main(void)
{
	const uint64_t id = UINT64_C(109964681944955175);	/* 0u2r85hm2pt3 */
	const uint64_t last = UINT64_C(4738381338321616895);	/* zzzzzzzzzzzz */
	int			version = PQlibVersion();
	const char *text[1];
	PGresult   *result;
	uint64_t	first;

	printf("# libpq %d.%d\n", version / 10000, version % 10000);
	conn = PQconnectdb("");
	if (PQstatus(conn) != CONNECTION_OK)
	{
		fprintf(stderr, "%s", PQerrorMessage(conn));
		return 1;
	}

	/* Text */
	text[0] = "first";
	result = PQexecParams(conn, "INSERT INTO event (what) VALUES ($1) RETURNING id", 1, NULL, text, NULL, NULL, 0);
	ok(PQntuples(result) == 1 && PQgetlength(result, 0, 0) == 12, "DEFAULT gives an ID of 12 digits");
	text[0] = PQgetvalue(result, 0, 0);
	ok(prints("SELECT id FROM event WHERE what = 'first'", text[0]), "it is stored");
	PQclear(PQexecParams(conn, "INSERT INTO event (id, what) VALUES ($1, 'again') ON CONFLICT (id) DO UPDATE SET what = 'found'",
						 1, NULL, text, NULL, NULL, 0));
	ok(prints("SELECT string_agg(what, ' ') FROM event", "found"), "text parameter in an INSERT");
	PQclear(PQexecParams(conn, "UPDATE event SET what = 'first' WHERE id = $1", 1, NULL, text, NULL, NULL, 0));
	ok(prints("SELECT string_agg(what, ' ') FROM event", "first"), "text parameter in a comparison");
	PQclear(result);

	/* Binary */
	ok(gives("INSERT INTO event (id, what) VALUES ($1, 'given') RETURNING id", id, id), "binary parameter in an INSERT");
	ok(prints("SELECT id FROM event WHERE what = 'given'", "0u2r85hm2pt3"), "it is stored");
	ok(gives("SELECT id FROM event WHERE id = $1", id, id), "binary parameter in a comparison");
	ok(gives("SELECT $1::scru64", 0, 0), "binary: the first ID there can be");
	ok(gives("SELECT $1::scru64", last, last), "binary: the last one");
	result = query_with_id(conn, "SELECT $1::scru64", last + 1);
	ok(PQresultStatus(result) == PGRES_FATAL_ERROR &&
	   strcmp(PQresultErrorField(result, PG_DIAG_SQLSTATE), "22P03") == 0, "binary: not the next");
	PQclear(result);
	ok(gives("SELECT $1::scru64::bigint", id, id), "the same bytes are those of the bigint");

	result = PQexecParams(conn, "SELECT id, id::text FROM event WHERE what = 'first'", 0, NULL, NULL, NULL, NULL, 1);
	ok(PQntuples(result) == 1 && PQgetlength(result, 0, 0) == 8, "a generated ID comes in 8 bytes");
	first = id_of_bytes(PQgetvalue(result, 0, 0));
	PQclear(result);
	ok(gives("SELECT id FROM event WHERE id > $1", id, first), "in order after that of 2023");

	PQfinish(conn);
	printf("done\n");
	return 0;
}
