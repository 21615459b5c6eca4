// What the Go programs here share: TAP, values that another client fetched, and a type.
package main

import (
	"database/sql/driver"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"strings"

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

var tests, failures int

func isEqual(got, expected any, name string) {
	tests++
	if reflect.DeepEqual(got, expected) {
		fmt.Printf("ok %d - %s\n", tests, name)
	} else {
		failures++
		fmt.Printf("not ok %d - %s\n#        got: %#v\n#   expected: %#v\n", tests, name, got, expected)
	}
}

// What psql prints, without the last line feed
func psql(sql string) string {
	printed, err := exec.Command(os.Getenv("PSQL"), "-XqAt", "-v", "ON_ERROR_STOP=1", "-c", sql).Output()
	check(err)
	return strings.TrimSuffix(string(printed), "\n")
}

// End the program at an error that nobody expects.
func check(err error) {
	if err != nil {
		_, _, line, _ := runtime.Caller(1)
		fmt.Printf("# line %d: %v\n", line, err)
		os.Exit(1)
	}
}

// The plan comes last, so a program that ends early is without one.
func done() {
	fmt.Printf("1..%d\n", tests)
	if failures > 0 {
		os.Exit(1)
	}
}
