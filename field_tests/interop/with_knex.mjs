// Knex, with node-postgres

import { ID, NUMBER, ORDERED, Scru64Id, done, failure, isEqual, psql, registerArrays, versionOf } from './harness.mjs';

import Knex from 'knex';
import pg from 'pg';

console.log(`# knex ${versionOf('knex')}`);
Scru64Id.prototype.toPostgres = Scru64Id.prototype.toString;

const knex = Knex({ client: 'pg', connection: {}, pool: { min: 0, max: 1 } });

await knex.schema.createTable('event', (table) => {
  table.specificType('id', 'scru64').primary().defaultTo(knex.raw('scru64_generate()'));
  table.text('what').notNullable();
  table.specificType('related', 'scru64[]');
});

const event = () => knex('event').orderBy('id');

const [{ id: first }] = await knex('event').insert({ what: 'first' }).returning('id');
isEqual([first], psql('SELECT id FROM event'), 'DEFAULT gives an ID, a string');
await knex('event').insert({ what: 'second' });
isEqual(await event().where({ id: first }).pluck('what'), ['first'], 'parameter in a comparison');
isEqual(await event().where('id', '>', first).pluck('what'), ['second'], 'parameter in a range');
await knex('event').insert({ id: ID, what: 'given', related: [first, null] });
isEqual(psql("SELECT id, related FROM event WHERE what = 'given'"), [`${ID}|{${first},NULL}`],
  'parameter in an INSERT, and an array');
isEqual((await event().first('related')).related, `{${first},NULL}`, 'an array comes as text');
isEqual((await event().first(knex.raw('related::text[]'))).related, [first, null], 'cast, as an array');
registerArrays(pg.types);
isEqual((await event().first('related')).related, [first, null], 'registered, an array comes as an array');
isEqual(await event().whereIn('id', [first, ID]).pluck('what'), ['given', 'first'], 'whereIn');
const ids = [first, ID];
const found = await knex('event').whereRaw('id = ANY(?)', [ids]);
isEqual(found.map((row) => row.what).sort(), ['first', 'given'], '= ANY');
isEqual(await event().where('id', Scru64Id.fromString(ID)).pluck('what'), ['given'], 'an object');
isEqual(await event().where({ related: null }).pluck('what'), ['first', 'second'], 'NULL');
isEqual(await failure(event().where({ id: 'no ID' })), '22P02', 'bad text');
isEqual(await failure(event().where({ id: NUMBER })), '22P02', 'a bigint needs a cast');
isEqual(await event().where({ id: knex.raw('?::bigint::scru64', [NUMBER]) }).pluck('what'), ['given'], 'and has one');
const since = new Date(Date.now() - 3600000);
isEqual(await failure(event().where('id', '>=', since)), '22P02', 'a Date needs a cast');
isEqual(await event().where('id', '>=', knex.raw('?::timestamptz', [since])).pluck('what'), ['first', 'second'],
  'and has one');

// Order
await knex('event').insert([...ORDERED].reverse().map((id) => ({ id, what: 'ordered' }))).onConflict().ignore();
const all = await event().pluck('id');

await knex.destroy();
done(all);
