// pgx
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/jackc/pgconn"
	"github.com/jackc/pgx/v4"
	"github.com/scru64/go-scru64"
)

var ctx = context.Background()
var conn *pgx.Conn

// The first value of the first row, scanned into dest; the SQLSTATE if it fails
func value(dest any, query string, params ...any) string {
	var e *pgconn.PgError
	err := conn.QueryRow(ctx, query, params...).Scan(dest)
	if errors.As(err, &e) {
		return e.Code
	} else if err != nil {
		return err.Error()
	}
	return ""
}

func main() {
	var err error
	conn, err = pgx.Connect(ctx, "")
	check(err)

	// Strings
	var s, what string
	isEqual(value(&s, "INSERT INTO event (what) VALUES ($1) RETURNING id", "first"), "", "INSERT")
	isEqual(s, psql("SELECT id FROM event"), "DEFAULT gives an ID, a string")
	first := s
	isEqual(value(&what, "SELECT what FROM event WHERE id = $1", first), "", "a comparison")
	isEqual(what, "first", "parameter in a comparison")
	isEqual(value(&s, "SELECT id FROM event WHERE id >= $1", time.Now().Add(-time.Hour)), "22P02", "a time needs a cast")
	isEqual(value(&s, "SELECT id FROM event WHERE id >= $1::timestamptz", time.Now().Add(-time.Hour)), "", "and has one")
	isEqual(value(&s, "SELECT id FROM event WHERE id = $1", "no ID"), "22P02", "the error of bad text")

	// The library's ID
	bare, err := scru64.Parse(text)
	check(err)
	isEqual(value(&s, "SELECT $1::scru64", bare), "22P02", "the library's ID goes in as a number")
	isEqual(value(&s, "SELECT $1::bigint::scru64", bare), "", "so it needs a cast")
	isEqual(s, text, "and has one")
	isEqual(value(&bare, "SELECT id FROM event"), "", "it comes out")
	isEqual(bare.String(), first, "as it is")

	// The recipe's
	id := ID{bare}
	isEqual(value(&id, "INSERT INTO event (id, what) VALUES ($1, 'given') RETURNING id",
		ID{scru64.Id(number)}), "", "INSERT")
	isEqual(id.String(), text, "the recipe's ID comes out")
	isEqual(psql("SELECT id FROM event WHERE what = 'given'"), text, "and went in")
	var none *ID
	isEqual(value(&none, "SELECT $1::scru64", none), "", "NULL")
	isEqual(none == nil, true, "is nil")
	isEqual(value(&none, "SELECT id FROM event WHERE id = $1", id), "", "else a pointer")
	isEqual(none != nil && *none == id, true, "has the ID")

	// Arrays
	ids := []string{text, first}
	var found []string
	isEqual(value(&found, "SELECT array_agg(id) FROM event") != "", true, "an array needs a cast to come out")
	// [recipe: pgx, arrays]
	err = conn.QueryRow(ctx, "SELECT array_agg(id ORDER BY id)::text[] FROM event WHERE id = ANY($1)",
		ids).Scan(&found)
	// [end]
	check(err)
	isEqual(found, ids, "and has them")
	isEqual(value(&found, "UPDATE event SET related = $1 RETURNING related::text[]", ids), "",
		"an array is stored")
	isEqual(found, ids, "and read")
	isEqual(psql("SELECT DISTINCT related FROM event"), "{"+text+","+first+"}", "an array in")

	// Binary
	var bytes []byte
	isEqual(value(&bytes, "SELECT id FROM event WHERE id = $1", pgx.QueryResultFormats{pgx.BinaryFormatCode}, text), "",
		"binary")
	isEqual(len(bytes) == 8 && binary.BigEndian.Uint64(bytes) == number, true, "is 8 bytes, the highest first")

	// Order
	isEqual(value(&found, "SELECT array_agg(id ORDER BY id)::text[] FROM unnest($1::scru64[]) id", ordered), "",
		"all")
	isEqual(found, ordered, "the server's order")
	done()
}
