// Shared by the Go programs here: tests, values fetched by another client, and a type.
package main

import (
	"database/sql/driver"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"strings"
	"time"

	"github.com/scru64/go-scru64"
)

// A fixed ID, as text and as the integer in it
const (
	text   = "0u2r85hm2pt3"
	number = 109964681944955175
)

// IDs in the order of the server
var ordered = []string{"000000000000", "0000000000zz", "00000000a000", text, "9zzzzzzzzzzz", "a00000000000",
	"zzzzzzzzzzzz"}

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

// The end, which scripts/heavy interop waits for.  ids: the ordered ones, as the server orders them
func done(ids []string) {
	isEqual(ids, ordered, "the server's order")
	fmt.Println("done")
}

// The same with both drivers, by their function value(): strings; returns the
// ID of the row.
func testStrings() string {
	var s, what string
	isEqual(value(&s, "INSERT INTO event (what) VALUES ($1) RETURNING id", "first"), "", "INSERT")
	isEqual(s, psql("SELECT id FROM event"), "DEFAULT gives an ID, a string")
	first := s
	isEqual(value(&what, "SELECT what FROM event WHERE id = $1", first), "", "a comparison")
	isEqual(what, "first", "parameter in a comparison")
	isEqual(value(&s, "SELECT id FROM event WHERE id >= $1", time.Now().Add(-time.Hour)), "22P02", "a time needs a cast")
	isEqual(value(&s, "SELECT id FROM event WHERE id >= $1::timestamptz", time.Now().Add(-time.Hour)), "", "and has one")
	isEqual(value(&s, "SELECT id FROM event WHERE id = $1", "no ID"), "22P02", "the error of bad text")
	return first
}

// The library's ID goes in; how it comes out is the driver's own.
func testLibrary() scru64.Id {
	var s string
	bare, err := scru64.Parse(text)
	check(err)
	isEqual(value(&s, "SELECT $1::scru64", bare), "22P02", "the library's ID goes in as a number")
	isEqual(value(&s, "SELECT $1::bigint::scru64", bare), "", "so it needs a cast")
	isEqual(s, text, "and has one")
	return bare
}

// The recipe's ID goes in and comes out.
func testRecipe() {
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
}
