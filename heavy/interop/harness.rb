# Shared by the Ruby programs here: tests, and values fetched by another client.

require "open3"

$stdout.sync = true

ID = "0u2r85hm2pt3"
NUMBER = 109964681944955175

# IDs in the order of the server, which must be the order of strings
ORDERED = ["000000000000", "0000000000zz", "00000000a000", ID, "9zzzzzzzzzzz", "a00000000000", "zzzzzzzzzzzz"]

def is_equal(got, expected, name)
  if got == expected
    puts "ok - #{name}"
  else
    puts "not ok - #{name}", "#        got: #{got.inspect}", "#   expected: #{expected.inspect}"
  end
end

# psql's output, a string for each line
def psql(sql)
  printed, status = Open3.capture2(ENV["PSQL"], "-XqAt", "-v", "ON_ERROR_STOP=1", "-c", sql)
  raise "psql: #{sql}" unless status.success?
  printed.lines(chomp: true)
end

# The class of a failing query's error
def failure
  yield
  "none"
rescue StandardError => error
  (error.cause || error).class
end

# The end, which scripts/heavy interop waits for.  ids: all of the table, in the server's order, as the
# client has them
def done(ids, table = "events")
  is_equal(ids, psql("SELECT id FROM #{table} ORDER BY id"), "the server's order")
  is_equal(ids.sort, ids, "it is the order of the strings")
  is_equal(ids & ORDERED, ORDERED, "and the one expected")
  puts "done"
end
