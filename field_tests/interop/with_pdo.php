<?php
// PDO
declare(strict_types=1);

require 'harness.php';

// The first values of all rows, or the SQLSTATE if it fails
function values(string $sql, ?array $params = null)
{
    global $db;
    try {
        $statement = $db->prepare($sql);
        $statement->execute($params);
        return $statement->columnCount() > 0 ? $statement->fetchAll(PDO::FETCH_COLUMN) : [];
    } catch (PDOException $error) {
        return $error->getCode();
    }
}

$db = new PDO(sprintf('pgsql:host=%s;port=%s;user=%s;dbname=%s', getenv('PGHOST'), getenv('PGPORT'),
    getenv('PGUSER'), getenv('PGDATABASE')), null, null, [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
print '# PHP ' . PHP_VERSION . ', libpq ' . $db->getAttribute(PDO::ATTR_CLIENT_VERSION) . "\n";

[$first] = values('INSERT INTO event (what) VALUES (?) RETURNING id', ['first']);
is_equal($first, psql('SELECT id FROM event'), 'DEFAULT gives an ID, a string');
values("INSERT INTO event (what) VALUES ('second')");
foreach ([false, true] as $emulate) {
    $how = $emulate ? 'emulated' : 'prepared';
    $db->setAttribute(PDO::ATTR_EMULATE_PREPARES, $emulate);
    is_equal(values('SELECT what FROM event WHERE id = ?', [$first]), ['first'], "$how: parameter in a comparison");
    is_equal(values('SELECT what FROM event WHERE id > ?', [$first]), ['second'], "$how: in a range");
    is_equal(values('SELECT what FROM event WHERE id = ?', [new Id($first)]), ['first'], "$how: an object");
    is_equal(values('SELECT ?::scru64', [null]), [null], "$how: NULL");
    is_equal(values('SELECT ?::scru64', ['no ID']), '22P02', "$how: bad text");
    is_equal(values('SELECT ?::bigint::scru64', [NUMBER]), [ID], "$how: a number");
    is_equal(values("INSERT INTO event (id, what) VALUES (?, 'given') RETURNING id", [strtoupper(ID)]), [ID],
        "$how: parameter in an INSERT");
    $since = psql("SELECT now() - interval '1 hour'");
    is_equal(values('SELECT what FROM event WHERE id >= ?', [$since]), '22P02', "$how: a time needs a cast");
    is_equal(values('SELECT what FROM event WHERE id >= ?::timestamptz ORDER BY id', [$since]), ['first', 'second'],
        "$how: and has one");

    $ids = [ID, $first];
    $found = $db->prepare('SELECT to_json(array_agg(id ORDER BY id)) FROM event WHERE id = ANY(?)');
    $found->execute(['{' . implode(',', $ids) . '}']);
    $found = json_decode($found->fetchColumn());
    is_equal($found, $ids, "$how: arrays");
    is_equal(values('UPDATE event SET related = ? WHERE id = ? RETURNING related', ["{{$first},NULL}", $first]),
        ["{{$first},NULL}"], "$how: an array as text");
    values("DELETE FROM event WHERE what = 'given'");
}

foreach (array_reverse(ORDERED) as $id) {
    values("INSERT INTO event (id, what) VALUES (?, 'ordered')", [$id]);
}
done(values('SELECT id FROM event ORDER BY id'));
