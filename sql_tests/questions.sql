--
-- Conditions on the IDs of a table, and the same on their numbers, n: of an ID and one
-- above it, :low_id and :high_id, of the first ID, the last, and times.
--
\set ECHO none
CREATE TEMP TABLE question (condition text, same text);
INSERT INTO question
	SELECT format(condition, :'low_id', :'high_id'), format(same, :'low', :'high')
	FROM (VALUES
		('id = %1$L', 'n = %1$s'),
		('id < %1$L', 'n < %1$s'),
		('id <= %1$L', 'n <= %1$s'),
		('id > %2$L', 'n > %2$s'),
		('id >= %2$L', 'n >= %2$s'),
		('%2$L <= id', 'n >= %2$s'),
		('id BETWEEN %1$L AND %2$L', 'n BETWEEN %1$s AND %2$s'),
		('id > %1$L AND id < %2$L', 'n > %1$s AND n < %2$s'),
		('id = ''000000000000''', 'n = 0'),
		('id < ''000000000000''', 'n < 0'),
		('id <= ''000000000000''', 'n <= 0'),
		('id = ''zzzzzzzzzzzz''', 'n = 4738381338321616895'),
		('id >= ''zzzzzzzzzzzz''', 'n >= 4738381338321616895'),
		('id > ''zzzzzzzzzzzz''', 'n > 4738381338321616895'),
		('id >= scru64_timestamp(%2$L)', 'n >= %2$s >> 24 << 24'),
		('id < scru64_timestamp(%1$L)', 'n < %1$s >> 24 << 24')
	) AS v (condition, same);

-- The questions whose two answers differ, or whose plan has no index; the number of
-- questions, and of questions that find rows
CREATE FUNCTION pg_temp.compare(
	relation text, index text DEFAULT NULL,
	OUT questions bigint, OUT not_empty bigint, OUT differing text[], OUT without_index text[]
) LANGUAGE plpgsql AS $$
DECLARE
	q question;
	found_rows bigint;
	expected bigint;
	plan text;
BEGIN
	questions = 0;
	not_empty = 0;
	FOR q IN SELECT * FROM question LOOP
		EXECUTE format('SELECT count(*) FROM %s WHERE %s', relation, q.condition) INTO found_rows;
		EXECUTE format('SELECT count(*) FROM %s WHERE %s', relation, q.same) INTO expected;
		EXECUTE format('EXPLAIN (FORMAT JSON) SELECT count(*) FROM %s WHERE %s', relation, q.condition) INTO plan;
		questions = questions + 1;
		not_empty = not_empty + (found_rows > 0)::integer;
		IF found_rows <> expected THEN
			differing = differing || q.condition;
		END IF;
		IF plan NOT LIKE '%"Index Name": "' || index || '"%' THEN
			without_index = without_index || q.condition;
		END IF;
	END LOOP;
END
$$;
\set ECHO all
