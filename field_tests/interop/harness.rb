# Shared by the Ruby programs here: TAP, and values fetched by another client.

require "open3"

$stdout.sync = true

ID = "0u2r85hm2pt3"
NUMBER = 109964681944955175

# IDs in the order of the server, which must be the order of strings
ORDERED = ["000000000000", "0000000000zz", "00000000a000", ID, "9zzzzzzzzzzz", "a00000000000", "zzzzzzzzzzzz"]

$tests = 0
$failures = 0

def is_equal(got, expected, name)
  $tests += 1
  if got == expected
    puts "ok #{$tests} - #{name}"
  else
    $failures += 1
    puts "not ok #{$tests} - #{name}", "#        got: #{got.inspect}", "#   expected: #{expected.inspect}"
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

# The plan comes last, so a program ending early is without one.
def done
  puts "1..#{$tests}"
  exit $failures == 0
end
