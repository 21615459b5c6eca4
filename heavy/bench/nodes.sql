-- heavy/bench/nodes.sql
--		The cost of an ID for a session drawing from many nodes, in random order.
--
-- 128 nodes have a slot at the same time, so that of 1,024 nearly every one has to
-- come back to one. Setting the node is part of it, for all of them alike. None of
-- these nodes overlaps the server's own.

SET search_path = bench, public;

INSERT INTO contender (subject, contender, statement, rows)
SELECT 'one ID, nodes in turn', to_char(nodes, 'FM9,999') || CASE nodes WHEN 1 THEN ' node' ELSE ' nodes' END, format($statement$
	DO $$
	BEGIN
		FOR i IN 1 .. %s LOOP
			PERFORM set_config('scru64.node_spec', 1024 + (random() * %s)::integer || '/11', false);
			PERFORM scru64_generate();
		END LOOP;
	END
	$$ $statement$, :ids / 10, nodes - 1), :ids / 10
FROM unnest('{1, 100, 1024}'::integer[]) AS nodes
ORDER BY nodes;

CALL measure('one ID, nodes in turn', :rounds);
