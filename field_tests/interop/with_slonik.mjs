// slonik, with node-postgres

import { ID, Scru64Id, ask, done, isEqual, versionOf } from './harness.mjs';

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
const where = (condition) => pool.any(sql.unsafe`SELECT * FROM event WHERE ${condition} ORDER BY id`);
const tuple = ({ id = sql.fragment`DEFAULT`, what, related }) =>
  sql.fragment`(${id}, ${what}, ${related ? sql.array(related, 'scru64') : null})`;
const words = {
  '=': sql.fragment`=`, '>': sql.fragment`>`, '>=': sql.fragment`>=`, '': sql.fragment``,
  '::scru64': sql.fragment`::scru64`, '::bigint::scru64': sql.fragment`::bigint::scru64`,
  '::timestamptz': sql.fragment`::timestamptz`,
};
const client = {
  insert: (rows) =>
    pool.any(sql.unsafe`INSERT INTO event VALUES ${sql.join(rows.map(tuple), sql.fragment`, `)} RETURNING id`),
  find: async (op, id, cast = '') =>
    where(sql.fragment`id ${words[op]} ${id instanceof Date ? sql.timestamp(id) : id}${words[cast]}`),
  any: (ids) => where(sql.fragment`id = ANY(${sql.array(ids, 'scru64')})`),
  end: () => pool.end(),
  failure,
  objects: false,
  bad: 'InvalidInputError',
  time: 'none',
};

const first = await ask(client);
isEqual((await where(sql.fragment`id IN (${sql.join([first, ID], sql.fragment`, `)})`)).map((row) => row.what),
  ['given', 'first'], 'IN');
isEqual(await values(sql.unsafe`SELECT array_agg(id ORDER BY id) FROM event WHERE id <= ${first}`), [[ID, first]],
  'array_agg');
const id = Scru64Id.fromString(ID);
isEqual(await failure(client.find('=', id)), 'TypeError', 'an object is not taken');
isEqual((await client.find('=', `${id}`))[0].what, 'given', 'its text is');
await pool.query(sql.unsafe`
  INSERT INTO event (id, what) SELECT * FROM ${sql.unnest([['0u2r85hm2pt4', 'unnest']], ['scru64', 'text'])}`);
await done(client);
