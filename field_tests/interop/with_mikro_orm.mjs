// MikroORM, with node-postgres

import { ID, NUMBER, ORDERED, Scru64Id, done, failure, isEqual, psql, registerArrays, versionOf } from './harness.mjs';

import { EntitySchema, raw } from '@mikro-orm/core';
import { MikroORM } from '@mikro-orm/postgresql';
import pg from 'pg';

console.log(`# @mikro-orm/postgresql ${versionOf('@mikro-orm/postgresql')}`);

const Event = new EntitySchema({
  name: 'Event',
  properties: {
    // [recipe: MikroORM, properties]
    id: { type: 'string', columnType: 'scru64', primary: true, defaultRaw: 'scru64_generate()' },
    related: { type: 'array', columnType: 'scru64[]', nullable: true },
    // [end]
    what: { type: 'text' },
  },
});

const { PGHOST: host, PGPORT: port, PGUSER: user, PGDATABASE: dbName } = process.env;
const orm = await MikroORM.init({ host, port: Number(port), user, dbName, entities: [Event],
  pool: { min: 0, max: 1 } });
await orm.schema.createSchema();
isEqual(await orm.schema.getUpdateSchemaSQL(), '', 'the table is as it should be');
// Without the identity map, where a query may find rows it did not fetch
const find = (where) => orm.em.fork().find('Event', where, { orderBy: { id: 'asc' } });
const whats = async (where) => (await find(where)).map((event) => event.what);

const em = orm.em.fork();
const [one, two] = ['first', 'second'].map((what) => em.create('Event', { what }));
await em.flush();
const first = one.id;
isEqual([first, two.id], psql('SELECT id FROM event ORDER BY id'), 'DEFAULT gives IDs, strings');
isEqual((await orm.em.fork().findOne('Event', first)).what, 'first', 'findOne');
isEqual(await whats({ id: first }), ['first'], 'parameter in a comparison');
isEqual(await whats({ id: { $gt: first } }), ['second'], 'parameter in a range');
const page = await orm.em.fork().findByCursor('Event', {}, { first: 1, after: { id: first }, orderBy: { id: 'asc' } });
isEqual(page.items.map((event) => event.what), ['second'], 'a cursor');
em.create('Event', { id: ID, what: 'given', related: [first, null] });
await em.flush();
isEqual(psql("SELECT id, related FROM event WHERE what = 'given'"), [`${ID}|{${first},NULL}`],
  'parameter in an INSERT, and an array');
isEqual((await find({ id: ID }))[0].related, [first, null], 'an array comes as an array');
const related = 'SELECT related FROM event WHERE id = ?';
isEqual(await orm.em.execute(related, [ID]), [{ related: `{${first},NULL}` }], 'in a query in SQL as text');
registerArrays(pg.types);
isEqual(await orm.em.execute(related, [ID]), [{ related: [first, null] }], 'registered, as an array');
isEqual(await whats({ id: [first, ID] }), ['given', 'first'], 'IN');
isEqual(await whats({ related: { $contains: [first] } }), ['given'], '$contains');
isEqual(await orm.em.execute('SELECT what FROM event WHERE id = ANY(ARRAY[?]::scru64[])', [[ID]]), [{ what: 'given' }],
  '= ANY');
const id = Scru64Id.fromString(ID);
isEqual(await whats({ id }), ['given'], 'an object');
isEqual(await whats({ id: [id] }), ['given'], 'an array of objects');
isEqual(await whats({ related: null }), ['first', 'second'], 'NULL');
isEqual(await failure(find({ id: 'no ID' })), '22P02', 'bad text');
isEqual(await failure(find({ id: NUMBER })), '22P02', 'a bigint needs a cast');
isEqual(await whats({ id: raw('?::bigint::scru64', [NUMBER]) }), ['given'], 'and has one');
const since = new Date(Date.now() - 3600000);
isEqual(await failure(find({ id: { $gte: since } })), '22P02', 'a Date needs a cast');
isEqual(await whats({ id: { $gte: raw('?::timestamptz', [since]) } }), ['first', 'second'], 'and has one');

// Order
await orm.em.fork().insertMany('Event',
  [...ORDERED].reverse().filter((x) => x !== ID).map((x) => ({ id: x, what: 'ordered' })));
const all = (await find({})).map((event) => event.id);

await orm.close();
done(all);
