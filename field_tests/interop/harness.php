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

// The end, which scripts/interop waits for.  ids: all of the table event, in the server's order,
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
