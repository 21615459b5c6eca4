<?php
// Shared by the PHP programs here: tests, and values fetched by another client.
declare(strict_types=1);

const ID = '0u2r85hm2pt3';
const NUMBER = 109964681944955175;

// IDs in the order of the server, which must be the order of strings
const ORDERED = ['000000000000', '0000000000zz', '00000000a000', ID, '9zzzzzzzzzzz', 'a00000000000', 'zzzzzzzzzzzz'];

function is_equal($got, $expected, string $name): void
{
    if ($got === $expected) {
        print "ok - $name\n";
    } else {
        print "not ok - $name\n";
        print '#        got: ' . json_encode($got) . "\n#   expected: " . json_encode($expected) . "\n";
    }
}

// psql's output, without the last line feed
function psql(string $sql): string
{
    exec(escapeshellarg(getenv('PSQL')) . ' -XqAt -v ON_ERROR_STOP=1 -c ' . escapeshellarg($sql), $lines, $status);
    if ($status !== 0) {
        throw new Exception("psql: $sql");
    }
    return implode("\n", $lines);
}

// An object with its text
class Id
{
    private string $text;

    public function __construct(string $text)
    {
        $this->text = $text;
    }

    public function __toString(): string
    {
        return $this->text;
    }
}

// What both programs are asked, by their function values(); returns the ID of the first row
function ask(): string
{
    [$first] = values('INSERT INTO event (what) VALUES (?) RETURNING id', ['first']);
    is_equal($first, psql('SELECT id FROM event'), 'DEFAULT gives an ID, a string');
    [$second] = values('INSERT INTO event (what) VALUES (?) RETURNING id', ['second']);
    is_equal(values('SELECT what FROM event WHERE id = ?', [$first]), ['first'], 'parameter in a comparison');
    is_equal(values('SELECT what FROM event WHERE id > ?', [$first]), ['second'], 'in a range');
    is_equal(values('SELECT what FROM event WHERE id = ?', [new Id($first)]), ['first'], 'an object');
    is_equal(values('SELECT ?::scru64', [null]), [null], 'NULL');
    is_equal(values('SELECT ?::scru64', ['no ID']), '22P02', 'bad text');
    is_equal(values('SELECT ?::scru64', [NUMBER]), '22P02', 'a number needs a cast');
    is_equal(values('SELECT ?::bigint::scru64', [NUMBER]), [ID], 'and has one');
    is_equal(values("INSERT INTO event (id, what) VALUES (?, 'given') RETURNING id", [strtoupper(ID)]), [ID],
        'parameter in an INSERT');
    $since = date('c', time() - 3600);
    is_equal(values('SELECT what FROM event WHERE id >= ?', [$since]), '22P02', 'a time needs a cast');
    is_equal(values('SELECT id FROM event WHERE id >= ?::timestamptz ORDER BY id', [$since]), [$first, $second],
        'and has one');

    // Arrays are text
    $ids = [ID, $first];
    $query = 'SELECT to_json(array_agg(id ORDER BY id)) FROM event WHERE id = ANY(?)';
    is_equal(json_decode(values($query, ['{' . implode(',', $ids) . '}'])[0]), $ids, '= ANY, and an array as JSON');
    is_equal(values('UPDATE event SET related = ? WHERE id = ? RETURNING related', ["{{$first},NULL}", $first]),
        ["{{$first},NULL}"], 'an array as text');
    return $first;
}

// The end, which scripts/heavy interop waits for.  ids: all of the table event, in the server's order,
// as the client has them
function done(array $ids): void
{
    is_equal(implode("\n", $ids), psql('SELECT id FROM event ORDER BY id'), "the server's order");
    $sorted = $ids;
    sort($sorted, SORT_STRING);
    is_equal($sorted, $ids, 'it is the order of the strings');
    is_equal(array_values(array_intersect($ids, ORDERED)), ORDERED, 'and the one expected');
    print "done\n";
}
