# A whole Rails program: rake db:migrate, then puma
require "logger"
require "rails"
require "active_record/railtie"
require "action_controller/railtie"

# PGHOST, PGPORT, PGUSER and so on name the server.
ENV["DATABASE_URL"] ||= "postgresql:///#{ENV["PGDATABASE"]}"

class App < Rails::Application
  config.root = __dir__
  config.load_defaults 6.1
  config.eager_load = false
  config.logger = Logger.new($stdout)
  config.secret_key_base = ENV.fetch("SECRET_KEY")
  config.consider_all_requests_local = false # errors get a status, not a page for programmers
  config.active_record.schema_format = :sql  # schema.rb would call the ID a string
end

require_relative "scru64"

Rails.application.initialize!

class Event < ActiveRecord::Base
  validates :what, presence: true
end

class EventsController < ActionController::Base
  PAGE = 10

  # Text that is no ID or no time, or has a NUL
  rescue_from(ActiveRecord::StatementInvalid) { |e| e.cause.is_a?(PG::DataException) ? head(:bad_request) : raise(e) }
  rescue_from(ArgumentError) { |e| e.message == "string contains null byte" ? head(:bad_request) : raise(e) }
  rescue_from(ActiveRecord::RecordInvalid) { head :bad_request }
  rescue_from(ActiveRecord::RecordNotFound) { head :not_found }

  def index
    found = Event.order(id: :desc)
    # to_s: a list, or something nested, becomes text that is no ID and no time.
    found = found.where("id < ?", params[:before].to_s) if params[:before]
    # PostgreSQL compares a time with the IDs themselves, so the primary key serves it too.
    found = found.where("id >= ?::timestamptz", params[:since].to_s) if params[:since]
    found = found.where("id < ?::timestamptz", params[:until].to_s) if params[:until]
    @events = found.limit(PAGE).to_a
    @older = request.query_parameters.merge(before: @events.last.id) if @events.size == PAGE
    render inline: <<~ERB
      <%= form_with url: events_path do |f| %><%= f.text_field :what %><%= f.submit "Add" %><% end %>
      <ul>
        <% @events.each do |event| %><li><%= link_to event.what, event_path(event) %></li><% end %>
      </ul>
      <%= link_to "Older", events_path(@older), rel: "next" if @older %>
    ERB
  end

  def create
    redirect_to event_path(Event.create!(params.permit(:what)))
  end

  def show
    @event = Event.find(params[:id])
    render inline: '<h1><%= @event.id %></h1><p><%= @event.what %></p><%= link_to "All", events_path %>'
  end
end

Rails.application.routes.draw do
  # All of these are IDs. Whatever else is in the URL is a 404.
  resources :events, only: [:index, :create, :show], constraints: { id: /[0-9A-Za-z]{12}/ }
end
