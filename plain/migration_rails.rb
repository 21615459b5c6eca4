# For Rails: in db/migrate, with scru64.sql beside it, and config.active_record.schema_format = :sql.
# The environment has SCRU64_NODE_SPEC.

class AddScru64Plain < ActiveRecord::Migration[6.1]
  def up
    execute File.read(File.join(__dir__, "scru64.sql"))
    execute "SET LOCAL lock_timeout = '2s'"
    execute "SELECT scru64_plain.set_node(#{connection.quote(ENV.fetch("SCRU64_NODE_SPEC"))})"
  end

  def down
    execute "DROP SCHEMA scru64_plain CASCADE"
  end
end
