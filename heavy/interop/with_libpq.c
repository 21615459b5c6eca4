/*
 * libpq: in text, with parameters of no type; in binary, where an ID is its 8 bytes, the
 * highest first
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <libpq-fe.h>

static PGconn *conn;

static void
ok(bool passed, const char *name)
{
	printf("%s - %s\n", passed ? "ok" : "not ok", name);
	if (!passed)
		printf("#   %s\n", PQerrorMessage(conn));
}

/* Does a query with a text parameter give this text, or this SQLSTATE? */
static void
gives_text(const char *sql, const char *text, const char *expected, const char *name)
{
	PGresult   *result = PQexecParams(conn, sql, 1, NULL, &text, NULL, NULL, 0);
	const char *got = PQresultErrorField(result, PG_DIAG_SQLSTATE);

	if (PQntuples(result) == 1)
		got = PQgetvalue(result, 0, 0);
	ok(got && strcmp(got, expected) == 0, name);
	PQclear(result);
}

static uint64_t
id_of_bytes(const char *bytes)
{
	uint64_t	id = 0;

	for (int i = 0; i < 8; i++)
		id = id << 8 | (unsigned char) bytes[i];
	return id;
}

static PGresult *
query_with_id(const char *sql, uint64_t id)
{
	char		bytes[8];
	const char *values[1] = {bytes};
	const int	lengths[1] = {8};
	const int	formats[1] = {1};	/* binary */

	for (int i = 7; i >= 0; i--, id >>= 8)
		bytes[i] = (char) (id & 0xff);
	return PQexecParams(conn, sql, 1, NULL, values, lengths, formats, 1);
}

/* Does a query with a binary ID give this ID, in binary? */
static void
gives(const char *sql, uint64_t id, uint64_t expected, const char *name)
{
	PGresult   *result = query_with_id(sql, id);

	ok(PQntuples(result) == 1 && PQgetlength(result, 0, 0) == 8 && id_of_bytes(PQgetvalue(result, 0, 0)) == expected,
	   name);
	PQclear(result);
}

int
main(void)
{
	const uint64_t id = UINT64_C(109964681944955175);	/* 0u2r85hm2pt3 */
	const uint64_t last = UINT64_C(4738381338321616895);	/* zzzzzzzzzzzz */
	int			version = PQlibVersion();
	PGresult   *result;

	printf("# libpq %d.%d\n", version / 10000, version % 10000);
	conn = PQconnectdb("");
	if (PQstatus(conn) != CONNECTION_OK)
	{
		fprintf(stderr, "%s", PQerrorMessage(conn));
		return 1;
	}

	/* Text */
	gives_text("INSERT INTO event (what) VALUES ($1) RETURNING length(id::text)", "first", "12", "DEFAULT gives an ID");
	gives_text("INSERT INTO event (id, what) VALUES ($1, 'given') RETURNING id", "0U2R85HM2PT3", "0u2r85hm2pt3",
			   "parameter in an INSERT");
	gives_text("SELECT what FROM event WHERE id = $1", "0u2r85hm2pt3", "given", "in a comparison");
	gives_text("SELECT what FROM event WHERE id = $1", "no ID", "22P02", "bad text");
	gives_text("SELECT what FROM event WHERE id = $1", "109964681944955175", "22P02", "a number needs a cast");
	gives_text("SELECT what FROM event WHERE id = $1::bigint::scru64", "109964681944955175", "given", "and has one");
	gives_text("SELECT what FROM event WHERE id >= $1", "2024-01-01 00:00+00", "22P02", "a time needs a cast");
	gives_text("SELECT what FROM event WHERE id >= $1::timestamptz", "2024-01-01 00:00+00", "first", "and has one");
	gives_text("SELECT what FROM event WHERE id = ANY($1)", "{0u2r85hm2pt3}", "given", "= ANY of an array as text");
	gives_text("UPDATE event SET related = $1 WHERE what = 'given' RETURNING related", "{0u2r85hm2pt3,NULL}",
			   "{0u2r85hm2pt3,NULL}", "an array as text, in and out");

	/* Binary */
	gives("UPDATE event SET id = $1 WHERE what = 'given' RETURNING id", id, id, "binary parameter in an UPDATE");
	gives("SELECT id FROM event WHERE id = $1", id, id, "in a comparison");
	gives("SELECT $1::scru64", 0, 0, "the first ID there can be");
	gives("SELECT $1::scru64", last, last, "the last one");
	result = query_with_id("SELECT $1::scru64", last + 1);
	ok(PQresultStatus(result) == PGRES_FATAL_ERROR &&
	   strcmp(PQresultErrorField(result, PG_DIAG_SQLSTATE), "22P03") == 0, "not the next");
	PQclear(result);
	gives("SELECT $1::scru64::bigint", id, id, "the same bytes are those of the bigint");

	PQfinish(conn);
	printf("done\n");
	return 0;
}
