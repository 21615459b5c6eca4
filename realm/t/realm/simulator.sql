-- The world of t/realm/simulator.pl, which makes a function of each "step NAME: what is selected"
CREATE SCHEMA sim;		-- the world: numbers, times in microseconds
CREATE SCHEMA step;		-- what may happen in it: "step NAME: what is selected"

CREATE FUNCTION sim.get(name text) RETURNS bigint LANGUAGE sql RETURN current_setting('sim.' || name)::bigint;
CREATE FUNCTION sim.set(name text, value bigint) RETURNS text LANGUAGE sql RETURN set_config('sim.' || name, value::text, false);
CREATE FUNCTION sim.pass(us float8) RETURNS text LANGUAGE sql RETURN sim.set('now', sim.get('now') + greatest(us, 0)::bigint);
CREATE FUNCTION sim.us(span interval) RETURNS bigint LANGUAGE sql RETURN (extract(epoch FROM span) * 1000000)::bigint;
CREATE FUNCTION sim.tick(at timestamptz) RETURNS bigint LANGUAGE sql
	RETURN CASE WHEN isfinite(at) THEN floor(extract(epoch FROM at) * 1000 / 256)::bigint ELSE 1::bigint << 38 END;
CREATE FUNCTION sim.one_of(VARIADIC choices anycompatiblearray) RETURNS anycompatible LANGUAGE sql
	AS 'SELECT choices[1 + floor(random() * cardinality(choices))::integer]';
CREATE FUNCTION sim.slack() RETURNS interval LANGUAGE sql RETURN (SELECT greatest(guard, '30 s') FROM scru64_realm.settings);

-- The clock is ahead by its skew for good, and by a leap for a time.
CREATE OR REPLACE FUNCTION scru64_realm.clock() RETURNS timestamptz LANGUAGE sql
	RETURN timestamptz 'epoch' + (sim.get('now') + sim.get('skew') + sim.get('leap')) * interval '1 us';
CREATE OR REPLACE FUNCTION scru64_realm_internal.identity() RETURNS bigint LANGUAGE sql RETURN sim.get('identity');
CREATE OR REPLACE FUNCTION scru64_realm_internal.timeline() RETURNS integer LANGUAGE sql RETURN sim.get('timeline')::integer;
CREATE OR REPLACE FUNCTION scru64_realm_internal.begin_change(is_short boolean) RETURNS void LANGUAGE sql AS '';
CREATE OR REPLACE FUNCTION scru64_realm_internal.unleased(OUT node text, OUT node_ctr_range int4range, OUT last_tick bigint)
	RETURNS SETOF record LANGUAGE sql AS 'SELECT NULL, NULL::int4range, NULL::bigint WHERE false';

-- What holders have heard: IDs of ticks after one and up to another; used: as reported
CREATE TABLE sim.heard (n integer, lease_id uuid, nodes int4range, after bigint, up_to bigint, used bigint, is_over boolean DEFAULT false);

-- A standby or backup; and how the last change that it has was made, and what happened since
CREATE TABLE sim.snap (k integer, ledger scru64_realm.ledger[], settings scru64_realm.settings, marks jsonb, taken bigint, identity bigint,
	timeline bigint, known_leap bigint, least_ttl interval, is_set boolean DEFAULT false, lost_leap bigint DEFAULT 0, is_wrong boolean DEFAULT false);
CREATE FUNCTION sim.save(slot integer, lacks uuid DEFAULT NULL) RETURNS void LANGUAGE sql AS $$
	DELETE FROM sim.snap WHERE k = slot;
	INSERT INTO sim.snap SELECT slot, (SELECT array_agg(l ORDER BY change) FROM scru64_realm.ledger AS l WHERE lease_id IS DISTINCT FROM lacks), s,
		(SELECT jsonb_object_agg(oid, pg_sequence_last_value(oid)) FROM pg_class WHERE relnamespace = 'scru64_realm_internal'::regnamespace AND relkind = 'S'),
		sim.get('now') - CASE WHEN lacks IS NULL THEN 0 ELSE 15000000 END, sim.get('identity'), sim.get('timeline'),
		-- in a ledger without the lease "lacks", the last change may have been made in a leap
		CASE WHEN lacks IS NULL OR EXISTS (SELECT FROM scru64_realm.ledger WHERE change > sim.get('leap_change') AND lease_id <> lacks)
			THEN sim.get('known_leap') ELSE sim.get('leap_then') END, max_ttl
	FROM scru64_realm.settings AS s;
$$;
CREATE FUNCTION sim.load(slot integer) RETURNS void LANGUAGE sql AS $$
	DELETE FROM scru64_realm.ledger;
	INSERT INTO scru64_realm.ledger (:columns) SELECT :columns FROM unnest((SELECT ledger FROM sim.snap WHERE k = slot));
	INSERT INTO scru64_realm.settings SELECT (settings).* FROM sim.snap WHERE k = slot;
	SELECT sim.set('leap_then', known_leap), sim.set('leap_change', CASE WHEN known_leap = 0 THEN 0 ELSE (SELECT coalesce(max(change), 0) FROM scru64_realm.ledger) END)
	FROM sim.snap WHERE k = slot;
	SELECT setval(m.key::oid, coalesce(m.value::bigint, seqmin), m.value IS NOT NULL)
	FROM sim.snap, jsonb_each_text(marks) AS m, pg_sequence WHERE k = slot AND seqrelid = m.key::oid;
$$;

-- A failover costs nobody a lease that the realm knows, if it lasted until then and, with its guard time, for 30 seconds more.
CREATE FUNCTION sim.check_kept(call text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	kept text := (SELECT l FROM scru64_realm.ledger AS l, scru64_realm.clock() AS c, scru64_realm_internal.last_failover() AS f
				  WHERE strpos(call, l.lease_id::text) > 0 AND l.released_at IS NULL AND l.expires_at > c
					AND l.expires_at > f.noticed_at AND l.occupied_until > f.noticed_at + interval '30 s');
BEGIN
	IF kept IS NOT NULL THEN
		RAISE EXCEPTION SQLSTATE 'SIM01' USING MESSAGE = 'an active lease is refused: ' || kept;
	END IF;
END
$$;
-- Calls the realm. Errors of doc/realm.md are answers; those of class 23 are violations: a constraint did what rules should have done.
CREATE FUNCTION sim.ask(call text) RETURNS SETOF jsonb LANGUAGE plpgsql AS $$
DECLARE
	at text := format('%s, clock %s', sim.get('now') / 1e6, to_char(scru64_realm.clock(), 'MM-DD HH24:MI:SS.MS'));
	answers jsonb;
BEGIN
	EXECUTE 'SELECT jsonb_agg(to_jsonb(a)) FROM ' || call || ' AS a' INTO answers;
	RAISE NOTICE '%: % -> %', at, call, answers;
	PERFORM sim.set('known_leap', sim.get('leap'));
	IF sim.get('leap') <> 0 THEN
		PERFORM sim.set('leapt', sim.get('now')), sim.set('leap_then', sim.get('leap')),
			sim.set('leap_change', (SELECT coalesce(max(change), 0) FROM scru64_realm.ledger));
		UPDATE sim.snap SET is_wrong = true, lost_leap = greatest(lost_leap, sim.get('leap'));
	END IF;
	RETURN QUERY SELECT jsonb_array_elements(answers);
EXCEPTION WHEN SQLSTATE '22023' OR SQLSTATE '53400' OR SQLSTATE '55000' OR SQLSTATE '55006' OR SQLSTATE '58000' THEN
	RAISE NOTICE '%: % -> %', at, call, SQLERRM;
	IF SQLERRM = 'lease is not active' THEN
		PERFORM sim.check_kept(call);
	END IF;
	PERFORM sim.set('refused', 9);
END
$$;
CREATE FUNCTION sim.check() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	twice text := (SELECT format('%s and %s', p, q) FROM sim.heard AS p, sim.heard AS q
				   WHERE p.n < q.n AND p.nodes && q.nodes AND greatest(p.after, q.after) < least(p.up_to, q.up_to) LIMIT 1);
BEGIN
	IF twice IS NOT NULL THEN
		RAISE EXCEPTION SQLSTATE 'SIM01' USING MESSAGE = 'promised twice: ' || twice;
	END IF;
END
$$;

-- Holders: one, mostly of a lease that is not over, or was not long ago
CREATE FUNCTION sim.holder(width integer DEFAULT 2) RETURNS sim.heard LANGUAGE sql RETURN (
	SELECT sim.one_of(VARIADIC array_agg(h ORDER BY n)) FROM sim.heard AS h
	WHERE NOT is_over AND upper(nodes) - lower(nodes) >= width AND up_to > CASE WHEN random() < .9 THEN sim.tick(scru64_realm.clock()) - 200 ELSE 0 END);
CREATE FUNCTION sim.hear(answer jsonb) RETURNS text LANGUAGE sql AS $$
	INSERT INTO sim.heard SELECT (SELECT count(*) FROM sim.heard), (answer ->> 'lease_id')::uuid,
		int4range(n.node_id << 24 - n.node_id_size, n.node_id + 1 << 24 - n.node_id_size),
		n.node_prev::bigint >> 24, sim.tick((answer ->> 'expires_at')::timestamptz), n.node_prev::bigint >> 24
	FROM scru64_parse_node_spec(answer ->> 'node_spec') AS n;
	SELECT sim.check()::text;
$$;
CREATE FUNCTION sim.lease(size integer, ttl text DEFAULT NULL) RETURNS SETOF text LANGUAGE sql AS $$
	SELECT sim.hear(a) FROM sim.ask(format('scru64_realm.lease(%s, ''h'', %L, within => ''5/%s'')', size, ttl, sim.get('size'))) AS a WHERE random() < .95;
$$;
CREATE FUNCTION sim.renew(h sim.heard, more text DEFAULT '') RETURNS void LANGUAGE sql AS $$
	-- some do not hear the answer
	UPDATE sim.heard SET up_to = greatest(up_to, sim.tick((a ->> 'expires_at')::timestamptz))
	FROM sim.ask(format('scru64_realm.renew(%L%s)', h.lease_id, more)) AS a WHERE n = h.n AND random() < .9;
	SELECT sim.check();
$$;
CREATE FUNCTION sim.report(h sim.heard) RETURNS bigint LANGUAGE sql AS $$
	UPDATE sim.heard SET used = greatest(used, least(up_to, sim.tick(scru64_realm.clock()) + floor(random() * 80)::bigint - 40))
	WHERE n = h.n AND random() < .5 RETURNING used << 24 | lower(nodes);
$$;
-- The end of a lease: its last ID as an argument, or nothing, where no ID is so far ahead of the clock
CREATE FUNCTION sim.stop(h sim.heard, ahead interval) RETURNS text LANGUAGE sql AS $$
	UPDATE sim.heard SET is_over = true, up_to = greatest(used, least(up_to, latest + sim.one_of(0, floor(random() * 400)::integer, 100000)))
	FROM sim.tick(scru64_realm.clock() + ahead) AS latest WHERE n = h.n
	RETURNING CASE WHEN up_to > latest OR random() < .5 THEN format(', last_id => %L::bigint::scru64', up_to << 24 | lower(nodes)) ELSE '' END;
$$;
CREATE FUNCTION sim.left_us() RETURNS bigint LANGUAGE sql AS $$	-- to the first end of a lease
	SELECT coalesce(min(up_to * 256000 - sim.us(c - timestamptz 'epoch')), 300000000) FROM sim.heard, scru64_realm.clock() AS c
	WHERE NOT is_over AND up_to BETWEEN sim.tick(c) AND 1::bigint << 37;
$$;
step lease: sim.lease(sim.one_of(22, 23, 23), sim.one_of(NULL, NULL, NULL, NULL, '10 s', '100 s', '1 day', CASE WHEN random() < .3 THEN '1000 years' END))
step big: sim.lease(22)
step fill: sim.set('refused', 0); SELECT sim.lease(23) FROM generate_series(1, 4) AS i WHERE i > sim.get('refused')
step renew: sim.renew(h, format(', %L, %L::bigint::scru64', sim.one_of(NULL, NULL, '30 s', '1 h'), sim.report(h))) FROM sim.holder() AS h
step release: sim.ask(format('scru64_realm.release(%L%s)', h.lease_id, sim.stop(h, guard))) FROM sim.holder() AS h, scru64_realm.settings
step split: sim.hear(a) FROM sim.holder(4) AS h, sim.ask(format('scru64_realm.split(%L, 23%s)', h.lease_id, sim.stop(h, '0'))) AS a
step all: sim.renew(h) FROM (SELECT h FROM sim.heard AS h, sim.one_of(1, 1, .6) AS share
	WHERE NOT is_over AND up_to >= sim.tick(scru64_realm.clock()) AND random() < share ORDER BY n) AS h
step late: sim.pass(sim.left_us() * sim.one_of(.9, .99, .99, random()))
step keep: step.late(), step.all()

-- Time: to where something ends, mostly to what ends first; clocks are right until the realm has noticed a failover
CREATE FUNCTION sim.notice() RETURNS SETOF jsonb LANGUAGE sql AS $$ SELECT sim.ask(format('scru64_realm.release(%L)', gen_random_uuid())) $$;
CREATE FUNCTION sim.go(ends timestamptz[], aside interval DEFAULT '0') RETURNS text LANGUAGE sql AS $$
	SELECT sim.pass(sim.us(ahead[1 + floor(random() ^ 3 * cardinality(ahead))::integer] + aside) + random() * 4e5)
	FROM (SELECT array_agg(e - c ORDER BY e) FROM unnest(ends) AS e, scru64_realm.clock() AS c WHERE e BETWEEN c AND c + interval '3 days') AS a (ahead);
$$;
CREATE FUNCTION sim.marks() RETURNS timestamptz[] LANGUAGE sql
	AS 'SELECT ARRAY[granting_from, lost_until, next_from] FROM scru64_realm_internal.last_failover(), scru64_realm.settings';
step pause: sim.pass(random() * 14e6)
step wait: sim.pass(random() * sim.one_of(1e6, 2e7, 1e8, 1e9))
step pass: sim.pass(random() * sim.one_of(.3, 1, 2) * sim.us(max_ttl)) FROM scru64_realm.settings
step edge: sim.go(array_agg(expires_at) || array_agg(occupied_until) || (SELECT array_agg(scru64_realm_internal.tick_start(after)) FROM sim.heard),
	sim.one_of('0', '0', '0', sim.slack(), -sim.slack())) FROM scru64_realm.ledger
step soon: sim.go(sim.marks(), '-3 s')
step mark: sim.notice(); SELECT sim.go(sim.marks())
step leap: sim.notice(); SELECT sim.set('leap',
	(random() * sim.one_of(1.4 * sim.left_us(), 1.4 * sim.left_us(), 3e8, 1e9, 5e9, 3e11) * sim.one_of(1, 1, 1, -1))::bigint)
step back: sim.notice(); SELECT sim.set('leap', (random() * sim.one_of(-3e7, -3e8))::bigint)
step right: sim.set('leap', 0)

-- A standby has all this; or all but a lease whose transaction is open, for up to 15 seconds.
step snap: sim.save(1, (SELECT lease_id FROM scru64_realm.ledger, scru64_realm.clock() AS c
	WHERE clock_reading = granted_at AND parent IS NULL AND released_at IS NULL AND revoked_at IS NULL AND random() < .5
	  AND granted_at BETWEEN greatest(c - interval '15 s', timestamptz 'epoch' + (sim.get('owned') + sim.get('skew') + 1) * interval '1 us') AND c
	  AND sim.get('now') - sim.get('leapt') > 16000000 AND sim.get('leap') = 0 ORDER BY change LIMIT 1))

-- The realm goes on elsewhere, and its owner says what has to be said.
CREATE FUNCTION sim.move(slot integer, how text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	s sim.snap := (SELECT s FROM sim.snap AS s WHERE k = slot);
	is_young boolean := sim.get('now') - s.taken < sim.us(s.least_ttl);
	longest interval := (SELECT greatest(max_ttl, next_max_ttl, (s.settings).max_ttl, (s.settings).next_max_ttl) FROM scru64_realm.settings);
	guard interval := greatest(sim.slack(), (s.settings).guard);
	leap interval := greatest(s.known_leap, s.lost_leap, 0) * interval '1 us';
	was bigint := sim.get('skew');
BEGIN
	-- what a standby lacks is younger than max_ttl; who restores a backup has no lease without end, and none is lost by a leap
	IF s.k IS NULL OR NOT is_young AND how = 'standby' OR EXISTS (
		SELECT FROM sim.heard AS h WHERE up_to = 1::bigint << 38 AND (NOT is_young OR s.is_wrong AND NOT EXISTS (
			SELECT FROM unnest(s.ledger) AS l WHERE l.lease_id = h.lease_id AND l.endless_since IS NOT NULL))) THEN
		RETURN;
	END IF;
	PERFORM sim.load(slot), sim.set('leap', 0), sim.set('known_leap', s.known_leap), sim.set('owned', sim.get('now')), sim.set('homes', sim.get('homes') + 1),
		sim.set('skew', (sim.get('half') * CASE WHEN random() < .65 THEN -sign(was) ELSE sim.one_of(sign(was), 2 * random() - 1) END)::bigint),
		sim.set('identity', CASE WHEN how = 'copy' THEN s.identity ELSE sim.get('homes') END),
		sim.set('timeline', s.timeline + (how <> 'copy')::integer), sim.set('lossless', (slot = 2)::integer);
	RAISE NOTICE '%: % of %, skew % s', sim.get('now') / 1e6, how, s.taken / 1e6, sim.get('skew') / 1e6;
	-- the realm sees itself that a last change which is ahead of the clock was made in a leap
	s.is_wrong := s.is_wrong OR s.known_leap <> 0 AND (SELECT at <= scru64_realm.clock() + sim.slack()
		FROM scru64_realm_internal.readings ORDER BY change DESC LIMIT 1);
	IF slot = 1 AND (s.is_wrong OR how = 'copy' OR NOT is_young AND s.is_set) THEN
		-- earlier than the page asks for, where no lease that had ended looks active
		IF NOT s.is_wrong AND sim.get('skew') + coalesce((SELECT min(sim.us(occupied_until - expires_at)) FROM scru64_realm.ledger
				WHERE released_at IS NULL AND revoked_at IS NULL AND isfinite(expires_at)), 0) > was AND random() < .8 THEN
			PERFORM step.all();
		END IF;
		PERFORM sim.ask(format('scru64_realm.something_was_lost(%L)', CASE WHEN s.is_wrong OR s.is_set THEN scru64_realm.clock() + leap + longest + guard END));
		PERFORM sim.ask(format('(SELECT scru64_realm.revoke(lease_id) FROM scru64_realm.ledger WHERE occupied_until < %L)', scru64_realm.clock() + leap + guard))
		WHERE s.is_wrong;
	ELSIF slot = 1 AND random() < .5 THEN
		PERFORM sim.notice();
	END IF;
END
$$;
step failover: sim.move(1, 'standby')
step restore: sim.move(1, 'backup')
step copy: sim.move(1, 'copy')
step switchover: sim.save(2), sim.move(2, 'standby')

-- The owner
CREATE FUNCTION sim.own(call text) RETURNS void LANGUAGE sql AS $$
	SELECT sim.set('owned', sim.get('now')), sim.ask('scru64_realm.' || call);
	UPDATE sim.snap SET is_set = is_set OR call LIKE 'set%ttl%', least_ttl = least(least_ttl, s.max_ttl) FROM scru64_realm.settings AS s;
$$;
step nothing: sim.own('nothing_was_lost()') WHERE sim.get('lossless') = 1
step something: sim.own('something_was_lost()'), sim.set('lossless', 1)
step limits: sim.own(format('set_%s_ttl(%L)', sim.one_of('max', 'first'), sim.one_of('60 s', '120 s', '600 s', '1 h', '1 day')))
step raise: sim.own(sim.one_of(format('set_max_ttl(%L)', 2 * max_ttl), format('set_first_ttl(%L)', 2 * first_ttl))) FROM scru64_realm.settings
step guard: sim.own(format('set_guard(%L, true)', g)) FROM sim.one_of('0', '11 s', '30 s', '100 s', '5 min') AS g
	WHERE .497 * greatest(g::interval, '30 s') >= sim.get('half') * interval '1 us'
step prune: sim.own(format('prune(%L)', sim.one_of('0', '0', '0', '10 s')))
step revoke: sim.own('revoke(''h''::text)')

CREATE TABLE sim.template (steps text);
CREATE FUNCTION sim.episode(seed bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	every text[] := (SELECT array_agg(proname ORDER BY proname) FROM pg_proc WHERE pronamespace = 'step'::regnamespace);
	step text;
	longest interval;
	chance float8;
BEGIN
	PERFORM setseed(seed % 1000000007 / 1e9), sim.load(0);
	longest := sim.one_of('2 min', '5 min', '20 min', '1 h', '1 day');
	chance := sim.one_of(0, 0, 0, .2);
	DELETE FROM sim.heard;
	DELETE FROM sim.snap WHERE k > 0;
	PERFORM sim.set(name, 0) FROM unnest(ARRAY['skew', 'leap', 'known_leap', 'leapt', 'owned', 'refused']) AS name;
	PERFORM sim.set(name, 1) FROM unnest(ARRAY['identity', 'timeline', 'homes', 'lossless']) AS name;
	PERFORM sim.set('now', 1700000000000000 + (random() * 1e12)::bigint), sim.set('size', sim.one_of(21, 21, 22));
	UPDATE scru64_realm.settings SET made_at = scru64_realm.clock(), max_ttl = longest, guard = sim.one_of('0', '0', '0', '11 s', '30 s', '5 min')::interval,
		first_ttl = least(longest, sim.one_of('60 s', '131 s', '131 s', '1 day')::interval);
	-- two clocks differ by less than slack
	PERFORM sim.set('half', (.497 * sim.us(sim.slack()))::bigint);
	PERFORM sim.set('skew', (sim.get('half') * sim.one_of(1, 1, 1, 1, -1, 2 * random() - 1))::bigint), sim.save(1);
	FOREACH step IN ARRAY string_to_array((SELECT sim.one_of(VARIADIC array_agg(steps ORDER BY steps COLLATE "C")) FROM sim.template) || ' mark fill edge fill mark fill', ' ') LOOP
		FOR i IN 1 .. CASE WHEN step LIKE '%*%' THEN floor(random() * (split_part(step, '*', 2)::integer + 1)) ELSE 1 END LOOP
			PERFORM sim.pass(random() * sim.one_of(1e4, 3e5, 2e6));
			IF random() < chance THEN
				EXECUTE format('SELECT step.%I()', sim.one_of(VARIADIC every));
			END IF;
			EXECUTE format('SELECT step.%I()', sim.one_of(VARIADIC string_to_array(split_part(step, '*', 1), '/')));
		END LOOP;
	END LOOP;
	RETURN (SELECT count(*) FROM sim.heard);
END
$$;

-- every episode begins so
SELECT sim.set('now', 0), sim.set('known_leap', 0), sim.set('leap_change', 0), sim.set('leap_then', 0), sim.set('identity', 1), sim.set('timeline', 1);
SELECT setval('scru64_realm_internal.last_identity', 1), setval('scru64_realm_internal.last_timeline', 1), sim.save(0);
