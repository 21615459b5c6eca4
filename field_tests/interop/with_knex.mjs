// Knex, with node-postgres

import { ID, ask, done, isEqual, register, versionOf } from './harness.mjs';

import Knex from 'knex';
import pg from 'pg';

console.log(`# knex ${versionOf('knex')}`);

const knex = Knex({ client: 'pg', connection: {}, pool: { min: 0, max: 1 } });

await knex.schema.createTable('event', (table) => {
  table.specificType('id', 'scru64').primary().defaultTo(knex.raw('scru64_generate()'));
  table.text('what').notNullable();
  table.specificType('related', 'scru64[]');
});

const event = () => knex('event').orderBy('id');
const client = {
  insert: (rows) => knex('event').insert(rows).returning('id'),
  find: (op, id, cast) => event().where('id', op, cast ? knex.raw(`?${cast}`, [id]) : id),
  any: (ids) => event().whereRaw('id = ANY(?)', [ids]),
  register: () => register(pg.types),
  end: () => knex.destroy(),
};

const first = await ask(client);
isEqual(await event().whereIn('id', [first, ID]).pluck('what'), ['given', 'first'], 'whereIn');
isEqual((await event().first(knex.raw('related::text[]'))).related, [first, null], 'an array, cast');
await done(client);
