// lib/pq
package main

import (
	"database/sql"

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

	first := testStrings()
	bare := testLibrary()
	isEqual(value(&bare, "SELECT id FROM event") != "", true, "it does not come out")
	isEqual(value(&bare, "SELECT id::text FROM event"), "", "but as text")
	isEqual(bare.String(), first, "it does")
	testRecipe()

	// Arrays
	ids := []ID{{scru64.Id(number)}, {}}
	check(ids[1].Scan(first))
	var found, related []ID
	err = db.QueryRow("SELECT array_agg(id ORDER BY id) FROM event WHERE id = ANY($1)",
		pq.Array(ids)).Scan(pq.Array(&found))
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
	done(all)
}
