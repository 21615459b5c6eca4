// Package scru64 stands in for github.com/scru64/go-scru64: a number with the methods
// of that library's Id that drivers look for.
package scru64

import (
	"fmt"
	"strconv"
	"strings"
)

type Id uint64

func (id Id) String() string {
	digits := strconv.FormatUint(uint64(id), 36)
	return strings.Repeat("0", 12-len(digits)) + digits
}

func (id Id) MarshalText() ([]byte, error) {
	return []byte(id.String()), nil
}

func (id *Id) UnmarshalText(text []byte) error {
	number, err := strconv.ParseUint(string(text), 36, 64)
	*id = Id(number)
	return err
}

// Scan takes what the library takes: no []byte, no nil.
func (id *Id) Scan(src any) error {
	switch src := src.(type) {
	case int64:
		*id = Id(src)
		return nil
	case string:
		return id.UnmarshalText([]byte(src))
	}
	return fmt.Errorf("cannot scan %T", src)
}
