<?php
// Shared by the PHP programs here: TAP, and values fetched by another client.
declare(strict_types=1);

const ID = '0u2r85hm2pt3';
const NUMBER = 109964681944955175;

// IDs in the order of the server, which must be the order of strings
const ORDERED = ['000000000000', '0000000000zz', '00000000a000', ID, '9zzzzzzzzzzz', 'a00000000000', 'zzzzzzzzzzzz'];

$tests = $failures = 0;

function is_equal($got, $expected, string $name): void
{
    global $tests, $failures;
    $tests++;
    if ($got === $expected) {
        print "ok $tests - $name\n";
    } else {
        $failures++;
        print "not ok $tests - $name\n";
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

// The plan comes last, so a program ending early is without one.
function done(): void
{
    global $tests, $failures;
    print "1..$tests\n";
    exit($failures > 0 ? 1 : 0);
}
