// Kysely, with node-postgres

import { ID, ask, done, isEqual, register, versionOf } from './harness.mjs';

import { Kysely, PostgresDialect, sql } from 'kysely';
import pg from 'pg';

console.log(`# kysely ${versionOf('kysely')}`);

const db = new Kysely({ dialect: new PostgresDialect({ pool: new pg.Pool({ max: 1 }) }) });

await db.schema.createTable('event')
  .addColumn('id', sql`scru64`, (col) => col.primaryKey().defaultTo(sql`scru64_generate()`))
  .addColumn('what', 'text', (col) => col.notNull())
  .addColumn('related', sql`scru64[]`)
  .execute();

const select = db.selectFrom('event').selectAll().orderBy('id');
const client = {
  insert: (rows) => db.insertInto('event').values(rows).returning('id').execute(),
  find: (op, id, cast) => select.where('id', op, cast ? sql`${id}${sql.raw(cast)}` : id).execute(),
  any: (ids) => select.where(sql`id = ANY(${ids})`).execute(),
  register: () => register(pg.types),
  end: () => db.destroy(),
};

const first = await ask(client);
isEqual((await client.find('in', [first, ID])).map((row) => row.what), ['given', 'first'], 'IN');
const [{ cast }] = await select.select(sql`related::text[]`.as('cast')).execute();
isEqual(cast, [first, null], 'an array, cast');
await done(client);
