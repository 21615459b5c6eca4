# What the Ruby programs here share: TAP, and values that another client fetched.

require "open3"

$stdout.sync = true

ID = "0u2r85hm2pt3"
NUMBER = 109964681944955175

# IDs in the order of the server, which has to be that of strings
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

# What psql prints, a string for each line
def psql(sql)
  printed, status = Open3.capture2(ENV["PSQL"], "-XqAt", "-v", "ON_ERROR_STOP=1", "-c", sql)
  raise "psql: #{sql}" unless status.success?
  printed.lines(chomp: true)
end

# The class of the error of a query that fails
def failure
  yield
  "none"
rescue StandardError => error
  (error.cause || error).class
end

# The plan comes last, so a program that ends early is without one.
def done
  puts "1..#{$tests}"
  exit $failures == 0
end
