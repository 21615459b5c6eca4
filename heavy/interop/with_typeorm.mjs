// TypeORM, with node-postgres

import { ID, ask, connection, done, failure, isEqual, psql, register, versionOf } from './harness.mjs';

import pg from 'pg';
import { Any, DataSource, EntitySchema, Equal, In, MoreThanOrEqual, Raw } from 'typeorm';

console.log(`# typeorm ${versionOf('typeorm')}`);

const Event = new EntitySchema({
  name: 'event',
  columns: {
    // [recipe: TypeORM, columns]
    id: { type: 'scru64', primary: true, default: () => 'scru64_generate()' },
    related: { type: 'scru64', array: true, nullable: true },
    // [end]
    what: { type: 'text' },
  },
});

const { user: username, ...others } = connection;
const dataSource = new DataSource({ type: 'postgres', username, ...others, poolSize: 1, entities: [Event],
  synchronize: true });
isEqual((await failure(dataSource.initialize())).includes('is not supported'), true, 'the type has to be made known');
await dataSource.destroy().catch(() => {});
// [recipe: TypeORM, type]
dataSource.driver.supportedDataTypes.push('scru64');
await dataSource.initialize();
// [end]
isEqual((await dataSource.driver.createSchemaBuilder().log()).upQueries, [], 'the table is as it should be');

// As test suites begin: what is in the schema is dropped, and made again.
await dataSource.query("INSERT INTO event (what) VALUES ('old')");
await dataSource.destroy();
dataSource.setOptions({ dropSchema: true });
await dataSource.initialize();
isEqual(psql('SELECT count(*) FROM event'), ['0'], 'dropSchema drops the table, and it is made again');

const events = dataSource.getRepository(Event);
const operators = { '=': Equal, '>=': MoreThanOrEqual };
const where = (id) => events.find({ where: { id }, order: { id: 'ASC' } });
const client = {
  insert: (rows) => events.save(rows),
  find: (op, id, cast) => where(cast ? Raw((column) => `${column} ${op} :id${cast}`, { id }) : operators[op](id)),
  any: (ids) => where(Any(ids)),
  register: () => register(pg.types),
  end: () => dataSource.destroy(),
};

const first = await ask(client);
await events.insert({ what: 'inserted' });
isEqual((await where(In([first, ID]))).map((event) => event.what), ['given', 'first'], 'IN');
await done(client);
