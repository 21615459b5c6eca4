// pgx
package main

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgconn"
	"github.com/jackc/pgx/v4"
	"github.com/scru64/go-scru64"
)

// A fixed ID, as text and as the integer in it
const (
	text   = "0u2r85hm2pt3"
	number = 109964681944955175
)

// [recipe: Go, type]
type ID struct{ scru64.Id }

func (id ID) Value() (driver.Value, error) { return id.String(), nil }

func (id *ID) Scan(src any) error {
	if text, ok := src.([]byte); ok {
		src = string(text)
	}
	return id.Id.Scan(src)
}
// [end]

func isEqual(got, expected any, name string) {
	if reflect.DeepEqual(got, expected) {
		fmt.Printf("ok - %s\n", name)
	} else {
		fmt.Printf("not ok - %s\n#        got: %#v\n#   expected: %#v\n", name, got, expected)
	}
}

// psql's output, without the last line feed
func psql(sql string) string {
	printed, err := exec.Command(os.Getenv("PSQL"), "-XqAt", "-v", "ON_ERROR_STOP=1", "-c", sql).Output()
	check(err)
	return strings.TrimSuffix(string(printed), "\n")
}

// End the program at an unexpected error.
func check(err error) {
	if err != nil {
		_, _, line, _ := runtime.Caller(1)
		fmt.Printf("# line %d: %v\n", line, err)
		os.Exit(1)
	}
}

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
	var first, s, what string
	since := time.Now().Add(-time.Hour)
	isEqual(value(&first, "INSERT INTO event (what) VALUES ($1) RETURNING id", "first"), "", "INSERT")
	isEqual(first, psql("SELECT id FROM event"), "DEFAULT gives an ID, a string")
	isEqual(value(&what, "SELECT what FROM event WHERE id = $1", first), "", "a comparison")
	isEqual(what, "first", "parameter in a comparison")
	isEqual(value(&s, "SELECT id FROM event WHERE id >= $1", since), "22P02", "a time needs a cast")
	isEqual(value(&s, "SELECT id FROM event WHERE id >= $1::timestamptz", since), "", "and has one")
	isEqual(value(&s, "SELECT id FROM event WHERE id = $1", "no ID"), "22P02", "the error of bad text")

	// The library's ID
	bare := scru64.Id(number)
	isEqual(value(&s, "SELECT $1::scru64", bare), "22P02", "the library's ID goes in as a number")
	isEqual(value(&s, "SELECT $1::bigint::scru64", bare), "", "so it needs a cast")
	isEqual(s, text, "and has one")
	isEqual(value(&bare, "SELECT id FROM event"), "", "it comes out")
	isEqual(bare.String(), first, "as it is")

	// The recipe's ID
	var id ID
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
	isEqual(value(&found, "SELECT array_agg(id ORDER BY id)::text[] FROM event WHERE id = ANY($1)", ids), "", "= ANY")
	isEqual(found, ids, "and the array is cast")
	isEqual(value(&found, "UPDATE event SET related = $1 RETURNING related::text[]", ids), "", "an array is stored")
	isEqual(psql("SELECT DISTINCT related FROM event"), "{"+text+","+first+"}", "an array in")

	// Binary
	var bytes []byte
	isEqual(value(&bytes, "SELECT id FROM event WHERE id = $1", pgx.QueryResultFormats{pgx.BinaryFormatCode}, text), "",
		"binary")
	isEqual(len(bytes) == 8 && binary.BigEndian.Uint64(bytes) == number, true, "is 8 bytes, the highest first")

	fmt.Println("done") // which scripts/heavy interop waits for
}
