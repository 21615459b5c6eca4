-- ---------------------------------------------------------------------------
-- What is done once, when the extension is created
-- ---------------------------------------------------------------------------

CREATE TRIGGER one_row BEFORE INSERT ON settings FOR EACH ROW EXECUTE FUNCTION replace_settings();

INSERT INTO settings DEFAULT VALUES;

SELECT setval('last_identity', identity()), setval('last_timeline', timeline());

-- While an extension is created, only warnings are shown.
SET LOCAL client_min_messages = notice;

DO $do$
BEGIN
	RAISE NOTICE 'this realm knows of no leases'
		USING DETAIL = 'If there was a realm in this database before, nodes that it has leased may be in use still.',
			HINT = 'Then, before anybody leases, set max_ttl and the guard time as they were, lease what has no end by node_id for ''1000 years'', and call scru64_realm.something_was_lost().';
END
$do$;
