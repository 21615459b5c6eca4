// pgx
package main

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/jackc/pgconn"
	"github.com/jackc/pgx/v4"
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

	first := testStrings()
	bare := testLibrary()
	isEqual(value(&bare, "SELECT id FROM event"), "", "it comes out")
	isEqual(bare.String(), first, "as it is")
	testRecipe()

	// Arrays
	ids := []string{text, first}
	var found []string
	isEqual(value(&found, "SELECT array_agg(id) FROM event") != "", true, "an array needs a cast to come out")
	err = conn.QueryRow(ctx, "SELECT array_agg(id ORDER BY id)::text[] FROM event WHERE id = ANY($1)",
		ids).Scan(&found)
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
	done(found)
}
