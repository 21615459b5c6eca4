// node-postgres

import { ID, NUMBER, ORDERED, Scru64Id, done, failure, isEqual, psql, versionOf } from './harness.mjs';

import pg from 'pg';

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

// Order
await client.query("INSERT INTO event (id, what) SELECT unnest($1::scru64[]), 'ordered' ON CONFLICT DO NOTHING",
  [[...ORDERED].reverse()]);
const ids = await values('SELECT id FROM event ORDER BY id');
isEqual(ids, psql('SELECT id FROM event ORDER BY id'), "the server's order");
isEqual([...ids].sort(), ids, 'it is the order of the strings');
isEqual(ids.filter((id) => ORDERED.includes(id)), ORDERED, 'and the one expected');

await client.end();
done();
