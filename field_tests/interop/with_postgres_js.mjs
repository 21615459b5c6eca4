// postgres.js

import { ID, NUMBER, ORDERED, Scru64Id, done, failure, isEqual, psql, versionOf } from './harness.mjs';

import postgres from 'postgres';

console.log(`# postgres ${versionOf('postgres')}`);

const { PGHOST, PGPORT, PGUSER, PGDATABASE } = process.env;
const sql = postgres({ path: `${PGHOST}/.s.PGSQL.${PGPORT}`, user: PGUSER, database: PGDATABASE, max: 1 });

// The first values of all rows
async function values(query) {
  return (await query.values()).map((row) => row[0]);
}

const [first] = await values(sql`INSERT INTO event (what) VALUES (${'first'}) RETURNING id`);
isEqual([first], psql('SELECT id FROM event'), 'DEFAULT gives an ID, a string');
await sql`INSERT INTO event ${sql([{ what: 'second' }])}`;
isEqual(await values(sql`SELECT what FROM event WHERE id = ${first}`), ['first'], 'parameter in a comparison');
isEqual(await values(sql`SELECT what FROM event WHERE id > ${first}`), ['second'], 'parameter in a range');
isEqual(await values(sql`INSERT INTO event (id, what) VALUES (${ID.toUpperCase()}, 'given') RETURNING id`), [ID],
  'parameter in an INSERT');
isEqual(psql("SELECT id FROM event WHERE what = 'given'"), [ID], 'it is stored');
isEqual(await values(sql`SELECT what FROM event WHERE id IN ${sql([first, ID])} ORDER BY id`), ['given', 'first'],
  'IN');

// Arrays
const ids = [ID, first];
isEqual(await values(sql`SELECT what FROM event WHERE id = ANY(${ids}) ORDER BY id`), ['given', 'first'], '= ANY');
isEqual(await values(sql`SELECT array_agg(id ORDER BY id) FROM event WHERE id = ANY(${ids})`), [ids], 'an array out');
await sql`UPDATE event SET related = ${[first, null]} WHERE id = ${first}`;
isEqual(psql(`SELECT related FROM event WHERE id = '${first}'`), [`{${first},NULL}`], 'an array in');
isEqual(await values(sql`SELECT related FROM event WHERE id = ${first}`), [[first, 'NULL']],
  'NULL in one comes as a string');
isEqual(await values(sql`SELECT array['x', NULL]`), [['x', 'NULL']], 'as it does with other types');

// The library's class
const id = Scru64Id.fromString(ID);
isEqual(await values(sql`SELECT what FROM event WHERE id = ${id}`), ['given'], 'an object');
isEqual(await values(sql`SELECT what FROM event WHERE id = ANY(${[id]})`), ['given'], 'an array of objects');
isEqual(await failure(values(sql`SELECT what FROM event WHERE id = ${NUMBER}`)), '42883', 'a bigint needs a cast');
isEqual(await values(sql`SELECT what FROM event WHERE id = ${NUMBER}::bigint::scru64`), ['given'], 'and has one');

isEqual(await values(sql`SELECT ${null}::scru64`), [null], 'NULL');
isEqual(await failure(values(sql`SELECT ${'no ID'}::scru64`)), '22P02', 'bad text');
const since = new Date(Date.now() - 3600000);
isEqual(await values(sql`SELECT what FROM event WHERE id >= ${since} ORDER BY id`), ['first', 'second'],
  'a Date in a comparison');

// Order
await sql`INSERT INTO event ${sql([...ORDERED].reverse().filter((x) => x !== ID).map((x) => ({ id: x, what: 'x' })))}`;
const all = await values(sql`SELECT id FROM event ORDER BY id`);

await sql.end();
done(all);
