// MikroORM, with node-postgres

import { ID, ask, connection, done, isEqual, register, versionOf } from './harness.mjs';

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

const { database: dbName, ...others } = connection;
const orm = await MikroORM.init({ dbName, ...others, entities: [Event], pool: { min: 0, max: 1 } });
await orm.schema.createSchema();
isEqual(await orm.schema.getUpdateSchemaSQL(), '', 'the table is as it should be');

// Without the identity map, where a query may find rows it did not fetch
const where = (condition) => orm.em.fork().find('Event', condition, { orderBy: { id: 'asc' } });
const operators = { '=': '$eq', '>': '$gt', '>=': '$gte' };
const client = {
  insert: async (rows) => {
    const em = orm.em.fork();
    const events = rows.map((row) => em.create('Event', row));
    await em.flush();
    return events;
  },
  find: (op, id, cast) => where({ id: { [operators[op]]: cast ? raw(`?${cast}`, [id]) : id } }),
  any: (ids) => orm.em.execute('SELECT what FROM event WHERE id = ANY(ARRAY[?]::scru64[]) ORDER BY id', [ids]),
  end: () => orm.close(),
};

const first = await ask(client);
isEqual((await orm.em.fork().findOne('Event', first)).what, 'first', 'findOne');
const page = await orm.em.fork().findByCursor('Event', {}, { first: 1, after: { id: first }, orderBy: { id: 'asc' } });
isEqual(page.items.map((event) => event.what), ['second'], 'a cursor');
const related = 'SELECT related FROM event WHERE id = ?';
isEqual(await orm.em.execute(related, [ID]), [{ related: `{${first},NULL}` }], 'in a query in SQL, an array is text');
register(pg.types);
isEqual(await orm.em.execute(related, [ID]), [{ related: [first, null] }], 'registered, an array');
isEqual((await where({ id: [first, ID] })).map((event) => event.what), ['given', 'first'], 'IN');
isEqual((await where({ related: { $contains: [first] } })).map((event) => event.what), ['given'], '$contains');
await orm.em.fork().insertMany('Event', [{ what: 'inserted' }]);
await done(client);
