# Ruby's pg

require_relative "harness"
require "pg"

puts "# pg #{PG::VERSION}, Ruby #{RUBY_VERSION}"

conn = PG.connect

# The first values of all rows
values = ->(sql, params = []) { conn.exec_params(sql, params).values.map(&:first) }

# Works without a hint
first, = values.("INSERT INTO event (what) VALUES ($1) RETURNING id", ["first"])
is_equal([first], psql("SELECT id FROM event"), "DEFAULT gives an ID, a string")
second, = values.("INSERT INTO event (what) VALUES ($1) RETURNING id", ["second"])
is_equal(values.("SELECT what FROM event WHERE id = $1", [first]), ["first"], "parameter in a comparison")
is_equal(values.("SELECT what FROM event WHERE id > $1", [first]), ["second"], "parameter in a range")
is_equal(values.("INSERT INTO event (id, what) VALUES ($1, 'given') RETURNING id", [ID.upcase]), [ID],
         "parameter in an INSERT")
is_equal(psql("SELECT id FROM event WHERE what = 'given'"), [ID], "it is stored")
conn.prepare("by id", "SELECT what FROM event WHERE id = $1")
is_equal(conn.exec_prepared("by id", [first]).values, [["first"]], "parameter of a prepared statement")
is_equal(values.("SELECT $1::scru64", [nil]), [nil], "NULL")
is_equal(failure { values.("SELECT $1::scru64", ["no ID"]) }, PG::InvalidTextRepresentation, "bad text")
is_equal(failure { values.("SELECT $1::scru64", [NUMBER]) }, PG::InvalidTextRepresentation, "a number needs a cast")
is_equal(values.("SELECT $1::bigint::scru64", [NUMBER]), [ID], "and has one")
since = Time.now - 3600
is_equal(failure { values.("SELECT FROM event WHERE id >= $1", [since]) }, PG::InvalidTextRepresentation,
         "a time needs a cast")
is_equal(values.("SELECT id FROM event WHERE id >= $1::timestamptz ORDER BY id", [since]), [first, second],
         "and has one")
is_equal(conn.exec_params("SELECT id FROM event WHERE id = $1", [ID], 1).getvalue(0, 0).unpack1("Q>"), NUMBER,
         "binary: 8 bytes, the highest first")

# Needs a hint
ids = [ID, first]
is_equal(values.("SELECT array_agg(id ORDER BY id) FROM event"), ["{#{ID},#{first},#{second}}"],
         "an array comes as text")
encoder, decoder = PG::TextEncoder::Array.new, PG::TextDecoder::Array.new
rows = conn.exec_params("SELECT array_agg(id ORDER BY id) FROM event WHERE id = ANY($1)", [encoder.encode(ids)])
found = decoder.decode(rows.getvalue(0, 0))
is_equal(found, ids, "arrays")
values.("UPDATE event SET related = $1 WHERE id = $2", [encoder.encode([first, nil]), first])
is_equal(psql("SELECT related FROM event WHERE id = '#{first}'"), ["{#{first},NULL}"], "an array in")

# Order
ORDERED.reverse.each { |id| values.("INSERT INTO event (id, what) VALUES ($1, 'x') ON CONFLICT DO NOTHING", [id]) }
done(values.("SELECT id FROM event ORDER BY id"), "event")
