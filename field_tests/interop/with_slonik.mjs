// slonik, with node-postgres

import { ID, NUMBER, ORDERED, Scru64Id, done, isEqual, psql, versionOf } from './harness.mjs';

import { sql } from 'slonik';

console.log(`# slonik ${versionOf('slonik')}`);

const uri = 'postgresql://'; // the rest is in the environment
const plain = await createPool(uri, { maximumPoolSize: 1 });
isEqual(await plain.oneFirst(sql.unsafe`SELECT ARRAY[scru64_min('1970-01-01'), NULL]`), '{000000000000,NULL}',
  'an array comes as text');
await plain.end();

// [recipe: slonik, arrays]
import { createPool, createTypeParserPreset } from 'slonik';

const typeParsers = [...createTypeParserPreset(), { name: 'scru64', parse: (id) => id }];
const pool = await createPool(uri, { typeParsers });
// [end]

// The class of a failing query's error: for 22P02, slonik has one in place of the SQLSTATE.
const failure = (query) => query.then(() => 'none', (error) => error.constructor.name);

const values = (query) => pool.anyFirst(query);
const whats = (where) => values(sql.unsafe`SELECT what FROM event WHERE ${where} ORDER BY id`);

const first = await pool.oneFirst(sql.unsafe`INSERT INTO event (what) VALUES (${'first'}) RETURNING id`);
isEqual([first], psql('SELECT id FROM event'), 'DEFAULT gives an ID, a string');
await pool.query(sql.unsafe`INSERT INTO event (what) VALUES ('second')`);
isEqual(await whats(sql.fragment`id = ${first}`), ['first'], 'parameter in a comparison');
isEqual(await whats(sql.fragment`id > ${first}`), ['second'], 'parameter in a range');
isEqual(await values(sql.unsafe`INSERT INTO event (id, what) VALUES (${ID.toUpperCase()}, 'given') RETURNING id`), [ID],
  'parameter in an INSERT');
isEqual(psql("SELECT id FROM event WHERE what = 'given'"), [ID], 'it is stored');
isEqual(await whats(sql.fragment`id IN (${sql.join([first, ID], sql.fragment`, `)})`), ['given', 'first'], 'IN');

// Arrays
const ids = [ID, first];
isEqual(await whats(sql.fragment`id = ANY(${sql.array(ids, 'scru64')})`), ['given', 'first'], '= ANY');
isEqual(await values(sql.unsafe`SELECT array_agg(id ORDER BY id) FROM event WHERE id <= ${first}`), [ids],
  'registered, an array comes as an array');
isEqual(await values(sql.unsafe`
  UPDATE event SET related = ${sql.array([first, null], 'scru64')} WHERE id = ${first} RETURNING related`),
  [[first, null]], 'an array in, and NULL');
isEqual(psql(`SELECT related FROM event WHERE id = '${first}'`), [`{${first},NULL}`], 'it is stored');

// The library's class
const id = Scru64Id.fromString(ID);
isEqual(await failure((async () => whats(sql.fragment`id = ${id}`))()), 'TypeError', 'an object is not taken');
isEqual(await whats(sql.fragment`id = ${`${id}`}`), ['given'], 'its text is');
isEqual(await failure(whats(sql.fragment`id = ${NUMBER}`)), 'InvalidInputError', 'a bigint needs a cast');
isEqual(await whats(sql.fragment`id = ${NUMBER}::bigint::scru64`), ['given'], 'and has one');

isEqual(await values(sql.unsafe`SELECT ${null}::scru64`), [null], 'NULL');
isEqual(await failure(whats(sql.fragment`id = ${'no ID'}`)), 'InvalidInputError', 'bad text');
isEqual(await failure(values(sql.unsafe`INSERT INTO event VALUES (${'no ID'}, 'bad')`)), 'InvalidInputError',
  'and in an INSERT');
isEqual(await whats(sql.fragment`id = ${ID}`), ['given'], 'the connection goes on');
const since = new Date(Date.now() - 3600000);
isEqual(await whats(sql.fragment`id >= ${sql.timestamp(since)}`), ['first', 'second'], 'a time in a comparison');

// Order
const ordered = [...ORDERED].reverse().filter((x) => x !== ID).map((x) => [x, 'ordered']);
await pool.query(sql.unsafe`INSERT INTO event (id, what) SELECT * FROM ${sql.unnest(ordered, ['scru64', 'text'])}`);
const all = await values(sql.unsafe`SELECT id FROM event ORDER BY id`);

await pool.end();
done(all);
