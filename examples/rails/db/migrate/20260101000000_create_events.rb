class CreateEvents < ActiveRecord::Migration[6.1]
  def change
    enable_extension "scru64"
    create_table :events, id: :scru64, default: -> { "scru64_generate()" } do |t|
      t.text :what, null: false
    end
  end
end
