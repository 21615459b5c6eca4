// Drizzle, with node-postgres

import { ID, ask, done, isEqual, versionOf } from './harness.mjs';

import { pushSchema } from 'drizzle-kit/api';
import { arrayContains, asc, eq, gte, inArray, relations } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import pg from 'pg';

console.log(`# drizzle-orm ${versionOf('drizzle-orm')}, drizzle-kit ${versionOf('drizzle-kit')}`);

// [recipe: Drizzle, type]
import { sql } from 'drizzle-orm';
import { customType, pgTable, text } from 'drizzle-orm/pg-core';

const scru64 = customType({ dataType: () => 'scru64' });

const event = pgTable('event', {
  id: scru64('id').primaryKey().default(sql`scru64_generate()`),
  what: text('what').notNull(),
  related: scru64('related').array(),
});
// [end]

const comment = pgTable('comment', {
  event: scru64('event').references(() => event.id),
  comment: text('comment').primaryKey(),
});
const eventRelations = relations(event, ({ many }) => ({ comments: many(comment) }));
const commentRelations = relations(comment, ({ one }) => ({
  of: one(event, { fields: [comment.event], references: [event.id] }),
}));

const pool = new pg.Pool({ max: 1 });
const db = drizzle(pool, { schema: { event, comment, eventRelations, commentRelations } });
const operators = { '=': eq, '>=': gte };
const where = (condition) => db.select().from(event).where(condition).orderBy(asc(event.id));
const client = {
  insert: (rows) => db.insert(event).values(rows).returning(),
  find: (op, id, cast) => where(operators[op](event.id, cast ? sql`${id}${sql.raw(cast)}` : id)),
  any: (ids) => where(sql`${event.id} = ANY(${sql.param(ids)})`),
  end: () => pool.end(),
  objects: false,
  nullInArray: 'NULL',
};

// What "drizzle-kit push" does to the database.  It draws what a terminal would show turning.
async function push() {
  const { write } = process.stdout;
  process.stdout.write = () => true;
  const { statementsToExecute, apply } = await pushSchema({ event, comment }, db);
  await apply();
  process.stdout.write = write;
  return statementsToExecute.map((statement) => statement.split(' (')[0].split(' FOREIGN')[0]);
}
isEqual(await push(), ['CREATE TABLE "comment"', 'ALTER TABLE "comment" ADD CONSTRAINT "comment_event_event_id_fk"'],
  'push makes the table that is missing');
isEqual(await push(), [], 'and then finds nothing to change');

const first = await ask(client);
isEqual((await where(inArray(event.id, [first, ID]))).map((row) => row.what), ['given', 'first'], 'inArray');
isEqual((await where(arrayContains(event.related, [first])))[0].id, ID, 'arrayContains');
await db.insert(comment).values({ event: first, comment: 'so it is' });
isEqual(await db.query.event.findFirst({ where: eq(event.id, first), with: { comments: true } }),
  { id: first, what: 'first', related: null, comments: [{ event: first, comment: 'so it is' }] },
  'a relational query, which goes by JSON');
await done(client);
