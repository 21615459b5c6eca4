-- tables.sql
--		What failover/run has collected: IDs that clients have received, rows of the last
--		leader, events, promotions.

-- One that was inserted is a row; the others were only asked for.
CREATE TABLE received (tag uuid, id scru64, at timestamptz, port integer, is_row boolean);
CREATE TABLE kept (LIKE received);
CREATE TABLE event (n integer, kind text, at timestamptz, leader text, next_leader text);
CREATE TABLE promotion (port integer, at timestamptz);
