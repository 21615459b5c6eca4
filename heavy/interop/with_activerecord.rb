# ActiveRecord

require "logger"
require "open3"
require "stringio"
require "active_record"

$stdout.sync = true

ID = "0u2r85hm2pt3"
NUMBER = 109964681944955175

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

puts "# ActiveRecord #{ActiveRecord.version}, Ruby #{RUBY_VERSION}"

require_relative "../../examples/rails/scru64"

ActiveRecord::Base.establish_connection(adapter: "postgresql")
ActiveRecord::Schema.verbose = false
# Its warnings, until it has ended
warnings = $stderr = StringIO.new
at_exit { STDERR.puts $!.full_message(highlight: false) if $! && !$!.is_a?(SystemExit) && $stderr != STDERR }
ActiveRecord::Schema.define do
  # [recipe: ActiveRecord, table]
  create_table :events, id: :scru64, default: -> { "scru64_generate()" } do |t|
    t.text :what, null: false
    t.column :related, :scru64, array: true
  end
  # [end]
  create_table(:comments) { |t| t.references :event, type: :scru64, foreign_key: true }
end

class Event < ActiveRecord::Base
  has_many :comments
end

class Comment < ActiveRecord::Base
  belongs_to :event
end

first = Event.create!(what: "first")
is_equal([first.id], psql("SELECT id FROM events"), "DEFAULT gives an ID, a string")
second = Event.create!(what: "second")
is_equal(Event.find(first.id).what, "first", "find")
is_equal(Event.where(id: first.id..).order(:id).pluck(:id), [first.id, second.id], "a range")
Event.create!(id: ID, what: "given", related: [first.id, nil])
is_equal(psql("SELECT id, related FROM events WHERE what = 'given'"), ["#{ID}|{#{first.id},NULL}"],
         "parameter in an INSERT, and an array")
is_equal(Event.find(ID).related, [first.id, nil], "an array out")
is_equal(first.reload.related, nil, "NULL")
is_equal(Event.where(id: [ID, first.id]).order(:id).pluck(:what), ["given", "first"], "IN")
ids = [ID, first.id]
found = Event.where("id = ANY(ARRAY[?]::scru64[])", ids)
is_equal(found.map(&:what).sort, ["first", "given"], "= ANY")
is_equal(Event.insert_all([{ what: "third" }], returning: :id).rows.flatten,
         psql("SELECT id FROM events WHERE what = 'third'"), "insert_all")
first.comments.create!
is_equal(first.comments.first.event_id, first.id, "a foreign key")
is_equal(Event.joins(:comments).pluck(:id), [first.id], "a join")
is_equal(failure { Event.find("no ID") }, PG::InvalidTextRepresentation, "bad text")
is_equal(failure { Event.find(NUMBER) }, PG::InvalidTextRepresentation, "a number needs a cast")
is_equal(Event.where("id = ?::bigint::scru64", NUMBER).pluck(:id), [ID], "and has one")
since = Time.now - 3600
is_equal(failure { Event.where("id >= ?", since).to_a }, PG::InvalidTextRepresentation, "a time needs a cast")
is_equal(Event.where("id >= ?::timestamptz", since).count, 3, "and has one")
$stderr = STDERR
is_equal(warnings.string, "", "no warning")

dump = StringIO.new
source = ActiveRecord.version >= Gem::Version.new("7.2") ? :connection_pool : :connection
ActiveRecord::SchemaDumper.dump(ActiveRecord::Base.public_send(source), dump)
is_equal(dump.string[/^.*"related".*$/], '    t.string "related", array: true', "schema.rb does not know the type")
puts "done" # which scripts/heavy interop waits for
