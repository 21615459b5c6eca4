# Sequel

require_relative "harness"
require "sequel"

puts "# Sequel #{Sequel::VERSION}, Ruby #{RUBY_VERSION}"

DB = Sequel.connect("postgres:///#{ENV["PGDATABASE"]}")
DB.create_table(:events) do
  column :id, :scru64, default: Sequel.function(:scru64_generate), primary_key: true
  column :what, :text, null: false
  column :related, "scru64[]"
end
DB.create_table(:comments) do
  primary_key :id
  foreign_key :event_id, :events, type: :scru64
end

class Event < Sequel::Model
  unrestrict_primary_key
  one_to_many :comments
end

class Comment < Sequel::Model
end

# Works without a hint
first = Event.create(what: "first")
is_equal([first.id], psql("SELECT id FROM events"), "DEFAULT gives an ID, a string")
second = DB[:events].insert(what: "second")
is_equal([second], psql("SELECT id FROM events WHERE what = 'second'"), "and for a dataset")
is_equal(Event[first.id].what, "first", "look up by primary key")
is_equal(Event[first.id].related, nil, "NULL")
is_equal(Event.where { id > first.id }.select_map(:what), ["second"], "parameter in a range")
Event.create(id: ID.upcase, what: "given")
is_equal(psql("SELECT id FROM events WHERE what = 'given'"), [ID], "parameter in an INSERT")
is_equal(Event.where(id: [ID, first.id]).order(:id).select_map(:what), ["given", "first"], "IN")
third = DB[:events].multi_insert([{ what: "third" }], return: :primary_key)
is_equal(third, psql("SELECT id FROM events WHERE what = 'third'"), "multi_insert")
first.add_comment({})
is_equal(first.comments.map(&:event_id), [first.id], "a foreign key")
is_equal(failure { DB.transaction { Event["no ID"] } }, PG::InvalidTextRepresentation, "bad text")
is_equal(failure { Event[NUMBER] }, PG::UndefinedFunction, "a number needs a cast")
is_equal(Event[Sequel.cast(Sequel.cast(NUMBER, :bigint), :scru64)].what, "given", "and has one")
since = Time.now - 3600
is_equal(failure { Event.where { id >= since }.all }, PG::InvalidTextRepresentation, "a time needs a cast")
is_equal(Event.where { id >= Sequel.cast(since, :timestamptz) }.order(:id).select_map(:what),
         ["first", "second", "third"], "and has one")

# Needs a hint
all = -> { DB[:events].get(Sequel.function(:array_agg, :id).order(:id)) }
DB.extension :pg_array
is_equal(all.(), "{#{psql("SELECT id FROM events ORDER BY id").join(",")}}", "unregistered, an array comes as text")
ids = [ID, first.id]
# [recipe: Sequel, arrays]
DB.extension :pg_array
DB.register_array_type("scru64")
found = DB[:events].where(id: Sequel.function(:ANY, Sequel.pg_array(ids, :scru64)))
# [end]
is_equal(all.(), psql("SELECT id FROM events ORDER BY id"), "registered, it comes as an array")
is_equal(found.order(:id).select_map(:what), ["given", "first"], "= ANY")
is_equal(DB[:events].where(id: Sequel.function(:ANY, Sequel.pg_array([], :scru64))).all, [], "= ANY of none")
Event[ID].update(related: Sequel.pg_array([first.id, nil], :scru64))
is_equal(psql("SELECT related FROM events WHERE id = '#{ID}'"), ["{#{first.id},NULL}"], "an array in")
is_equal(Event[ID].related, [first.id, nil], "and out")

DB.extension :schema_dumper
is_equal(DB.dump_table_schema(:events, same_db: true)[/^.*:related.*$/], '  column :related, "scru64[]"',
         "the schema dumper knows the type")

# Order
(ORDERED - [ID]).reverse.each { |id| Event.create(id: id, what: "ordered") }
done(Event.order(:id).select_map(:id))
