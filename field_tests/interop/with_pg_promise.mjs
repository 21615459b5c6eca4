// pg-promise, with node-postgres

import { ID, NUMBER, ORDERED, Scru64Id, done, failure, isEqual, psql, registerArrays, versionOf } from './harness.mjs';

import pgPromise from 'pg-promise';

console.log(`# pg-promise ${versionOf('pg-promise')}`);

const pgp = pgPromise();
const { PGHOST: host, PGPORT: port, PGUSER: user, PGDATABASE: database } = process.env;
const db = pgp({ host, port, user, database, max: 1 });
const whats = (where, values) => db.map(`SELECT what FROM event WHERE ${where} ORDER BY id`, values, (row) => row.what);

const { id: first } = await db.one('INSERT INTO event (what) VALUES ($1) RETURNING id', 'first');
isEqual([first], psql('SELECT id FROM event'), 'DEFAULT gives an ID, a string');
await db.none(pgp.helpers.insert({ what: 'second' }, null, 'event'));
isEqual(await whats('id = $1', first), ['first'], 'value in a comparison');
isEqual(await whats('id > $<id>', { id: first }), ['second'], 'value in a range');
const byId = new pgp.PreparedStatement({ name: 'by id', text: 'SELECT what FROM event WHERE id = $1' });
byId.values = [first];
isEqual(await db.one(byId), { what: 'first' }, 'parameter of a prepared statement');
isEqual(await db.one('INSERT INTO event (id, what) VALUES ($1, $2) RETURNING id', [ID.toUpperCase(), 'given']),
  { id: ID }, 'value in an INSERT');
isEqual(psql("SELECT id FROM event WHERE what = 'given'"), [ID], 'it is stored');
isEqual(await whats('id IN ($1:csv)', [[first, ID]]), ['given', 'first'], 'IN');

// Arrays
isEqual(await failure(whats('id = ANY($1)', [[first, ID]])), '42883', '= ANY needs a cast');
isEqual(await whats('id = ANY($1::scru64[])', [[first, ID]]), ['given', 'first'], 'and has one');
const byIds = new pgp.ParameterizedQuery({ text: 'SELECT what FROM event WHERE id = ANY($1)', values: [[ID]] });
isEqual(await db.any(byIds), [{ what: 'given' }], 'a ParameterizedQuery needs none');
const store = 'UPDATE event SET related = $1 WHERE id = $2 RETURNING related';
isEqual(await db.one(store, [[first, null], first]), { related: `{${first},NULL}` }, 'an array in; it comes as text');
registerArrays(pgp.pg.types);
isEqual(await db.one('SELECT related FROM event WHERE id = $1', first), { related: [first, null] },
  'registered, an array comes as an array');

// The library's class
const id = Scru64Id.fromString(ID);
isEqual(await failure(whats('id = $1', [id])), '22P02', 'an object goes in as JSON');
Scru64Id.prototype.toPostgres = Scru64Id.prototype.toString;
isEqual(await whats('id = $1', [id]), ['given'], 'with a method, as an ID');
isEqual(await whats('id = ANY($1::scru64[])', [[id]]), ['given'], 'and in an array');
isEqual(await failure(whats('id = $1', NUMBER)), '42883', 'a bigint needs a cast');
isEqual(await whats('id = $1::bigint::scru64', NUMBER), ['given'], 'and has one');

isEqual(await db.one('SELECT $1::scru64 AS id', [null]), { id: null }, 'NULL');
isEqual(await failure(whats('id = $1', 'no ID')), '22P02', 'bad text');
isEqual(await failure(db.none('INSERT INTO event VALUES ($1, $2)', ['no ID', 'bad'])), '22P02', 'and in an INSERT');
const since = new Date(Date.now() - 3600000);
isEqual(await failure(whats('id >= $1', since)), '22P02', 'a Date needs a cast');
isEqual(await whats('id >= $1::timestamptz', since), ['first', 'second'], 'and has one');

// Order
const ordered = [...ORDERED].reverse().filter((x) => x !== ID).map((x) => ({ id: x, what: 'ordered' }));
await db.none(pgp.helpers.insert(ordered, ['id', 'what'], 'event'));
const all = await db.map('SELECT id FROM event ORDER BY id', [], (row) => row.id);

await db.$pool.end();
done(all);
