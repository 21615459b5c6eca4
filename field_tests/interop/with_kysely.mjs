// Kysely, with node-postgres

import { ID, NUMBER, ORDERED, Scru64Id, done, failure, isEqual, psql, registerArrays, versionOf } from './harness.mjs';

import { Kysely, PostgresDialect, sql } from 'kysely';
import pg from 'pg';

console.log(`# kysely ${versionOf('kysely')}`);
Scru64Id.prototype.toPostgres = Scru64Id.prototype.toString;

const db = new Kysely({ dialect: new PostgresDialect({ pool: new pg.Pool({ max: 1 }) }) });

await db.schema.createTable('event')
  .addColumn('id', sql`scru64`, (col) => col.primaryKey().defaultTo(sql`scru64_generate()`))
  .addColumn('what', 'text', (col) => col.notNull())
  .addColumn('related', sql`scru64[]`)
  .execute();

const select = db.selectFrom('event').orderBy('id');
const whats = async (query) => (await query.select('what').execute()).map((row) => row.what);

const { id: first } = await db.insertInto('event').values({ what: 'first' }).returning('id').executeTakeFirst();
isEqual([first], psql('SELECT id FROM event'), 'DEFAULT gives an ID, a string');
await db.insertInto('event').values({ what: 'second' }).execute();
isEqual(await whats(select.where('id', '=', first)), ['first'], 'parameter in a comparison');
isEqual(await whats(select.where('id', '>', first)), ['second'], 'parameter in a range');
await db.insertInto('event').values({ id: ID, what: 'given', related: [first, null] }).execute();
isEqual(psql("SELECT id, related FROM event WHERE what = 'given'"), [`${ID}|{${first},NULL}`],
  'parameter in an INSERT, and an array');
isEqual((await select.select('related').executeTakeFirst()).related, `{${first},NULL}`, 'an array comes as text');
isEqual((await select.select(sql`related::text[]`.as('related')).executeTakeFirst()).related, [first, null],
  'cast, as an array');
registerArrays(pg.types);
isEqual((await select.select('related').executeTakeFirst()).related, [first, null], 'registered, an array comes as an array');
isEqual(await whats(select.where('id', 'in', [first, ID])), ['given', 'first'], 'IN');
const ids = [first, ID];
const found = await db.selectFrom('event').select('what').where(sql`id = ANY(${ids})`).execute();
isEqual(found.map((row) => row.what).sort(), ['first', 'given'], '= ANY');
isEqual(await whats(select.where('id', '=', Scru64Id.fromString(ID))), ['given'], 'an object');
isEqual(await whats(select.where('related', 'is', null)), ['first', 'second'], 'NULL');
isEqual(await failure(whats(select.where('id', '=', 'no ID'))), '22P02', 'bad text');
isEqual(await failure(whats(select.where('id', '=', NUMBER))), '22P02', 'a bigint needs a cast');
isEqual(await whats(select.where('id', '=', sql`${NUMBER}::bigint::scru64`)), ['given'], 'and has one');
const since = new Date(Date.now() - 3600000);
isEqual(await failure(whats(select.where('id', '>=', since))), '22P02', 'a Date needs a cast');
isEqual(await whats(select.where('id', '>=', sql`${since}::timestamptz`)), ['first', 'second'], 'and has one');

// Order
await db.insertInto('event').values([...ORDERED].reverse().map((id) => ({ id, what: 'ordered' })))
  .onConflict((conflict) => conflict.doNothing()).execute();
const all = (await select.select('id').execute()).map((row) => row.id);

await db.destroy();
done(all);
