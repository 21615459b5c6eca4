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
    $n = 0;
    $numbered = preg_replace_callback('/\?/', function () use (&$n) {
        return '$' . ++$n;
    }, $sql);
    pg_send_query_params($db, $numbered, $params);
    $result = pg_get_result($db);
    return pg_result_error_field($result, PGSQL_DIAG_SQLSTATE) ?? pg_fetch_all_columns($result);
}

$first = ask();
pg_prepare($db, 'by id', 'SELECT what FROM event WHERE id = $1');
is_equal(pg_fetch_result(pg_execute($db, 'by id', [ID]), 0, 0), 'given', 'parameter of a prepared statement');

// The function making SQL of arrays asks for the types of the columns
is_equal(pg_select($db, 'event', ['id' => $first])[0]['what'], 'first', 'pg_select');
is_equal(pg_copy_to($db, 'event (id)')[0], psql("SELECT id FROM event WHERE what = 'second'") . "\n", 'COPY out');
is_equal(pg_copy_from($db, 'event (id, what)', [ORDERED[0] . "\tordered\n"]), true, 'COPY in');
foreach (array_reverse(array_diff(ORDERED, [ID, ORDERED[0]])) as $id) {
    pg_insert($db, 'event', ['id' => $id, 'what' => 'ordered']);
}
done(values('SELECT id FROM event ORDER BY id'));
