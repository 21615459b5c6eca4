-- tables.sql
--		Collected by failover/run: IDs received by clients, rows of the last
--		leader, events, promotions, members' clocks, leases.

-- One that was inserted is a row; the others were only asked for.
CREATE TABLE received (tag uuid, id scru64, at timestamptz, port integer, is_row boolean);
CREATE TABLE kept (LIKE received);
CREATE TABLE event (n integer, kind text, at timestamptz, leader text, next_leader text);

-- By the member's own clock, and when that was off, how far
CREATE TABLE promotion (port integer, at timestamptz);
CREATE TABLE clock (port integer, since timestamptz, until timestamptz, off integer);

-- The part of the realm's ledger for the report
CREATE TABLE ledger (lease_id uuid, node_ctr_range int4range, granted_at timestamptz, expires_at timestamptz,
	released_at timestamptz, last_id scru64);
