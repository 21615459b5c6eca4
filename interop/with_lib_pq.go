// lib/pq
package main

import (
	"database/sql"
	"time"

	"github.com/lib/pq"
	"github.com/scru64/go-scru64"
)

var db *sql.DB

// The first value of the first row, scanned into dest; the SQLSTATE if it fails
func value(dest any, query string, params ...any) string {
	err := db.QueryRow(query, params...).Scan(dest)
	if e, ok := err.(*pq.Error); ok {
		return string(e.Code)
	} else if err != nil {
		return err.Error()
	}
	return ""
}

func main() {
	var err error
	db, err = sql.Open("postgres", "sslmode=disable")
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
	isEqual(value(&bare, "SELECT id FROM event") != "", true, "it does not come out")
	isEqual(value(&bare, "SELECT id::text FROM event"), "", "but as text")
	isEqual(bare.String(), first, "it does")

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
	ids := []ID{{scru64.Id(number)}, {}}
	check(ids[1].Scan(first))
	var found, related []ID
	// [recipe: lib/pq, arrays]
	err = db.QueryRow("SELECT array_agg(id ORDER BY id) FROM event WHERE id = ANY($1)",
		pq.Array(ids)).Scan(pq.Array(&found))
	// [end]
	check(err)
	isEqual(found, ids, "arrays")
	isEqual(value(pq.Array(&related), "UPDATE event SET related = $1 RETURNING related", pq.Array(ids)), "",
		"an array is stored")
	isEqual(related, ids, "and read")
	isEqual(psql("SELECT DISTINCT related FROM event"), "{"+text+","+first+"}", "an array in")

	// Order
	var all []string
	isEqual(value(pq.Array(&all), "SELECT array_agg(id ORDER BY id) FROM unnest($1::scru64[]) id", pq.Array(ordered)), "",
		"arrays of strings")
	isEqual(all, ordered, "the server's order")
	done()
}
