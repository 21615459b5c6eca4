<?php
// The functions pg_*
declare(strict_types=1);

require 'harness.php';

$db = pg_connect('');
print '# PHP ' . PHP_VERSION . ', libpq ' . pg_version($db)['client'] . "\n";

// The first values of all rows, or the SQLSTATE if it fails
function values(string $sql, array $params = [])
{
    global $db;
    pg_send_query_params($db, $sql, $params);
    $result = pg_get_result($db);
    return pg_result_error_field($result, PGSQL_DIAG_SQLSTATE) ?? pg_fetch_all_columns($result);
}

[$first] = values('INSERT INTO event (what) VALUES ($1) RETURNING id', ['first']);
is_equal($first, psql('SELECT id FROM event'), 'DEFAULT gives an ID, a string');
[$second] = values('INSERT INTO event (what) VALUES ($1) RETURNING id', ['second']);
is_equal(values('SELECT what FROM event WHERE id = $1', [$first]), ['first'], 'parameter in a comparison');
is_equal(values('SELECT what FROM event WHERE id > $1', [$first]), ['second'], 'in a range');
is_equal(values('SELECT what FROM event WHERE id = $1', [new Id($first)]), ['first'], 'an object');
is_equal(values('SELECT $1::scru64', [null]), [null], 'NULL');
is_equal(values('SELECT $1::scru64', ['no ID']), '22P02', 'bad text');
is_equal(values('SELECT $1::scru64', [NUMBER]), '22P02', 'a number needs a cast');
is_equal(values('SELECT $1::bigint::scru64', [NUMBER]), [ID], 'and has one');
is_equal(values('INSERT INTO event (id, what) VALUES ($1, $2) RETURNING id', [strtoupper(ID), 'given']), [ID],
    'parameter in an INSERT');
pg_prepare($db, 'by id', 'SELECT what FROM event WHERE id = $1');
is_equal(pg_fetch_result(pg_execute($db, 'by id', [ID]), 0, 0), 'given', 'parameter of a prepared statement');
$since = date('c', time() - 3600);
is_equal(values('SELECT what FROM event WHERE id >= $1', [$since]), '22P02', 'a time needs a cast');
is_equal(values('SELECT id FROM event WHERE id >= $1::timestamptz ORDER BY id', [$since]), [$first, $second],
    'and has one');

// Arrays are text
is_equal(values('SELECT what FROM event WHERE id = ANY($1) ORDER BY id', ['{' . ID . ",$first}"]), ['given', 'first'],
    '= ANY');
is_equal(values('UPDATE event SET related = $1 WHERE id = $2 RETURNING related', ["{{$first},NULL}", $first]),
    ["{{$first},NULL}"], 'an array');
is_equal(json_decode(values('SELECT to_json(array_agg(id ORDER BY id)) FROM event')[0]), [ID, $first, $second],
    'as JSON it comes as an array');

// The function making SQL of arrays asks for the types of the columns
is_equal(pg_select($db, 'event', ['id' => $first])[0]['what'], 'first', 'pg_select');
is_equal(pg_copy_to($db, 'event (id)')[0], "$second\n", 'COPY out');
is_equal(pg_copy_from($db, 'event (id, what)', [ORDERED[0] . "\tordered\n"]), true, 'COPY in');
foreach (array_reverse(array_diff(ORDERED, [ID, ORDERED[0]])) as $id) {
    pg_insert($db, 'event', ['id' => $id, 'what' => 'ordered']);
}
done(values('SELECT id FROM event ORDER BY id'));
