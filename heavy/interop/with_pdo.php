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

$db = new PDO('pgsql:');
print '# PHP ' . PHP_VERSION . ', libpq ' . $db->getAttribute(PDO::ATTR_CLIENT_VERSION) . "\n";

foreach ([false, true] as $emulate) {
    print '# ' . ($emulate ? 'emulated' : 'prepared') . "\n";
    $db->setAttribute(PDO::ATTR_EMULATE_PREPARES, $emulate);
    values('DELETE FROM event');
    ask();
}

foreach (array_reverse(array_diff(ORDERED, [ID])) as $id) {
    values("INSERT INTO event (id, what) VALUES (?, 'ordered')", [$id]);
}
done(values('SELECT id FROM event ORDER BY id'));
