# The type: to be loaded before ActiveRecord connects

# [recipe: ActiveRecord, type]
require "active_record/connection_adapters/postgresql_adapter"

ActiveRecord::ConnectionAdapters::PostgreSQLAdapter.prepend(Module.new do
  private def initialize_type_map(m = type_map)
    m.register_type "scru64", ActiveRecord::Type::String.new
    super
  end
end)
# [end]
