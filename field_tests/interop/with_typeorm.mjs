// TypeORM, with node-postgres

import { ID, NUMBER, ORDERED, Scru64Id, done, failure, isEqual, psql, registerArrays, versionOf } from './harness.mjs';

import pg from 'pg';
import { Any, DataSource, EntitySchema, In, IsNull, MoreThan, MoreThanOrEqual, Raw } from 'typeorm';

console.log(`# typeorm ${versionOf('typeorm')}`);
Scru64Id.prototype.toPostgres = Scru64Id.prototype.toString;

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

const { PGHOST, PGPORT, PGUSER, PGDATABASE } = process.env;
const dataSource = new DataSource({ type: 'postgres', host: PGHOST, port: Number(PGPORT), username: PGUSER,
  database: PGDATABASE, poolSize: 1, entities: [Event], synchronize: true });
isEqual((await failure(dataSource.initialize())).includes('is not supported'), true, 'the type has to be made known');
await dataSource.destroy().catch(() => {});
// [recipe: TypeORM, type]
dataSource.driver.supportedDataTypes.push('scru64');
await dataSource.initialize();
// [end]
isEqual((await dataSource.driver.createSchemaBuilder().log()).upQueries, [], 'the table is as it should be');
const events = dataSource.getRepository(Event);
const whats = async (where) => (await events.find({ where, order: { id: 'ASC' } })).map((event) => event.what);

const { id: first } = await events.save({ what: 'first' });
isEqual([first], psql('SELECT id FROM event'), 'DEFAULT gives an ID, a string');
await events.insert({ what: 'second' });
isEqual(await whats({ id: first }), ['first'], 'parameter in a comparison');
isEqual(await whats({ id: MoreThan(first) }), ['second'], 'parameter in a range');
await events.save({ id: ID, what: 'given', related: [first, null] });
isEqual(psql("SELECT id, related FROM event WHERE what = 'given'"), [`${ID}|{${first},NULL}`],
  'parameter in an INSERT, and an array');
isEqual((await events.findOneBy({ id: ID })).related, `{${first},NULL}`, 'an array comes as text');
registerArrays(pg.types);
isEqual((await events.findOneBy({ id: ID })).related, [first, null], 'registered, an array comes as an array');
isEqual(await whats({ id: In([first, ID]) }), ['given', 'first'], 'IN');
isEqual(await whats({ id: Any([first, ID]) }), ['given', 'first'], '= ANY');
const id = Scru64Id.fromString(ID);
isEqual(await whats({ id }), ['given'], 'an object');
isEqual(await whats({ id: Any([id]) }), ['given'], 'an array of objects');
isEqual(await whats({ related: IsNull() }), ['first', 'second'], 'NULL');
isEqual(await failure(whats({ id: 'no ID' })), '22P02', 'bad text');
isEqual(await failure(whats({ id: NUMBER })), '22P02', 'a bigint needs a cast');
isEqual(await whats({ id: Raw((id) => `${id} = :number::bigint::scru64`, { number: NUMBER }) }), ['given'],
  'and has one');
const since = new Date(Date.now() - 3600000);
isEqual(await failure(whats({ id: MoreThanOrEqual(since) })), '22P02', 'a Date needs a cast');
const recent = await events.findBy({ id: Raw((id) => `${id} >= :since::timestamptz`, { since }) });
isEqual(recent.map((event) => event.what).sort(), ['first', 'second'], 'and has one');

// Order
await events.insert([...ORDERED].reverse().filter((x) => x !== ID).map((x) => ({ id: x, what: 'ordered' })));
const all = (await events.find({ order: { id: 'ASC' } })).map((event) => event.id);

await dataSource.destroy();
done(all);
