// node-postgres

import { ID, NUMBER, ORDERED, Scru64Id, done, failure, isEqual, psql, versionOf } from './harness.mjs';

import { setTimeout } from 'node:timers/promises';
import pg from 'pg';

import { nextBatch } from './next_batch.mjs';

console.log(`# pg ${versionOf('pg')}, Node.js ${process.versions.node}`);

const client = new pg.Client();
await client.connect();

// The first values of all rows
async function values(text, params) {
  return (await client.query({ text, values: params, rowMode: 'array' })).rows.map((row) => row[0]);
}

// Works without a hint
const [first] = await values('INSERT INTO event (what) VALUES ($1) RETURNING id', ['first']);
isEqual([first], psql("SELECT id FROM event WHERE what = 'first'"), 'DEFAULT gives an ID, a string');
const more = await values('INSERT INTO event (what) VALUES ($1), ($2) RETURNING id', ['second', 'third']);
isEqual(more, psql("SELECT id FROM event WHERE what <> 'first' ORDER BY id"), 'and two');
isEqual(await values("SELECT id FROM event WHERE what = 'first'"), [first], 'an ID is read back');
isEqual(await values('SELECT what FROM event WHERE id = $1', [first]), ['first'], 'parameter in a comparison');
isEqual(await values('SELECT what FROM event WHERE id > $1 ORDER BY id', [first]), ['second', 'third'],
  'parameter in a range');
isEqual((await client.query({ name: 'by id', text: 'SELECT what FROM event WHERE id = $1', values: [first] })).rows,
  [{ what: 'first' }], 'parameter of a named statement');
isEqual(await values("INSERT INTO event (id, what) VALUES ($1, 'given') RETURNING id", [ID.toUpperCase()]), [ID],
  'parameter in an INSERT');
isEqual(psql("SELECT id FROM event WHERE what = 'given'"), [ID], 'it is stored');
isEqual(await values('SELECT what FROM event WHERE id = ANY($1) ORDER BY id', [[first, ID]]), ['given', 'first'],
  '= ANY(parameter)');
isEqual(await values('SELECT what FROM event WHERE id = ANY($1)', [[]]), [], '= ANY(empty parameter)');
await client.query('UPDATE event SET related = $1 WHERE id = $2', [[first, null, ID], first]);
isEqual(psql(`SELECT related FROM event WHERE id = '${first}'`), [`{${first},NULL,${ID}}`], 'an array in');
isEqual(await values('SELECT to_json(id) FROM event WHERE id = $1', [first]), [first], 'to_json');
isEqual(await values('SELECT json_agg(id ORDER BY id) FROM event'), [psql('SELECT id FROM event ORDER BY id')],
  'json_agg');
isEqual(JSON.parse(JSON.stringify((await client.query('SELECT id FROM event ORDER BY id')).rows)),
  psql('SELECT id FROM event ORDER BY id').map((id) => ({ id })), 'rows as JSON');

// Needs a hint
const since = new Date(Date.now() - 3600000);
isEqual(await failure(client.query('SELECT FROM event WHERE id >= $1', [since])), '22P02', 'a Date needs a cast');
const recent = await client.query('SELECT what FROM event WHERE id >= $1::timestamptz ORDER BY id', [since]);
isEqual(recent.rows.map((row) => row.what), ['first', 'second', 'third'], 'and has one');
isEqual(await values('SELECT related FROM event WHERE id = $1', [first]), [`{${first},NULL,${ID}}`],
  'unregistered, an array comes as a string');

// [recipe: node-postgres, arrays]
const { rows } = await client.query("SELECT typarray FROM pg_type WHERE typname = 'scru64'");
const parseTextArray = pg.types.getTypeParser(1009); // text[]
for (const { typarray } of rows) pg.types.setTypeParser(typarray, parseTextArray);
// [end]

isEqual(await values('SELECT related FROM event WHERE id = $1', [first]), [[first, null, ID]],
  'registered, an array comes as an array');
isEqual(await values("SELECT '{}'::scru64[]"), [[]], 'and an empty one');
isEqual(await values('SELECT array_agg(id ORDER BY id) FROM event'), [psql('SELECT id FROM event ORDER BY id')],
  'array_agg');

// The library's class
const id = Scru64Id.fromString(ID);
isEqual([`${id}`, id.toBigInt()], [ID, NUMBER], 'it is what it stands in for');
isEqual(await failure(values('SELECT what FROM event WHERE id = $1', [id])), '22P02', 'an object goes in as JSON');
// [recipe: node-postgres, objects]
Scru64Id.prototype.toPostgres = function () {
  return this.toString();
};
// [end]
isEqual(await values('SELECT what FROM event WHERE id = $1', [id]), ['given'], 'with a method, as an ID');
isEqual(await values('SELECT what FROM event WHERE id = ANY($1)', [[id, null]]), ['given'], 'and in an array');
await values('UPDATE event SET related = $1 WHERE id = $2', [[id, null], id]);
isEqual(psql(`SELECT related FROM event WHERE id = '${ID}'`), [`{${ID},NULL}`], 'that is stored');
isEqual(await failure(values('SELECT $1::scru64', [NUMBER])), '22P02', 'a bigint needs a cast');
isEqual(await values('SELECT $1::bigint::scru64', [NUMBER]), [ID], 'and has one');
isEqual(await values('SELECT $1::scru64', [null]), [null], 'NULL');
isEqual(await failure(values('SELECT $1::scru64', ['no ID'])), '22P02', 'bad text');

// The time of an ID
// [recipe: JavaScript, the time of an ID]
function timeOf(id) {
  const number = [...id].reduce((n, digit) => n * 36n + BigInt(parseInt(digit, 36)), 0n);
  return new Date(Number(number >> 24n) * 256);
}
// [end]
for (const id of [first, ...ORDERED]) {
  isEqual(timeOf(id), (await values('SELECT $1::scru64::timestamptz', [id]))[0], `the time of ${id}`);
}

// New rows
await client.query("CREATE TABLE consumer (name text PRIMARY KEY, seen scru64 NOT NULL DEFAULT '000000000000')");
await client.query("INSERT INTO consumer (name) VALUES ('mail')");
const mail = [];
const handle = (rows) => mail.push(...rows.map((row) => row.what));
const isMailed = async (expected, name) => {
  for (let i = 0; mail.length < expected.length && i < 1200; i++) {
    await nextBatch(client, 'mail', handle);
    await setTimeout(50);
  }
  isEqual((await nextBatch(client, 'mail', handle)).length, 0, `${name}: and no more`);
  isEqual(mail, expected, name);
};
await isMailed(['given', 'first', 'second', 'third'], 'all rows so far');
const other = new pg.Client();
await other.connect();
await other.query("BEGIN; INSERT INTO event (what) VALUES ('committed last')");
await values("INSERT INTO event (what) VALUES ('committed first')");
isEqual(await nextBatch(client, 'mail', handle), [], 'a row waits for an open transaction with a lower ID');
await other.query('COMMIT');
await other.end();
isEqual(await failure(nextBatch(client, 'mail', () => client.query('SELECT 1/0'))), '22012', 'an error in the handler');
await isMailed(['given', 'first', 'second', 'third', 'committed last', 'committed first'], 'in order, and once');

// Order
await client.query("INSERT INTO event (id, what) SELECT unnest($1::scru64[]), 'ordered' ON CONFLICT DO NOTHING",
  [[...ORDERED].reverse()]);
const ids = await values('SELECT id FROM event ORDER BY id');

await client.end();
done(ids);
