// Drizzle, with node-postgres

import { ID, ORDERED, done, failure, isEqual, psql, versionOf } from './harness.mjs';

import { arrayContains, asc, eq, gt, gte, inArray, ne, relations } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import pg from 'pg';

console.log(`# drizzle-orm ${versionOf('drizzle-orm')}`);

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

const comment = pgTable('comment', { event: scru64('event'), comment: text('comment').primaryKey() });
const eventRelations = relations(event, ({ many }) => ({ comments: many(comment) }));
const commentRelations = relations(comment, ({ one }) => ({
  of: one(event, { fields: [comment.event], references: [event.id] }),
}));

const pool = new pg.Pool({ max: 1 });
const db = drizzle(pool, { schema: { event, comment, eventRelations, commentRelations } });

// The tool making tables of this is another package; here, its output is tested.
isEqual([event.id.getSQLType(), event.related.getSQLType()], ['scru64', 'scru64[]'], 'the types of the table');
await db.execute(sql`CREATE TABLE comment (event scru64 REFERENCES event, comment text PRIMARY KEY)`);

// Works with the type alone
const [{ id: first }] = await db.insert(event).values({ what: 'first' }).returning({ id: event.id });
isEqual([first], psql("SELECT id FROM event WHERE what = 'first'"), 'DEFAULT gives an ID, a string');
const more = await db.insert(event).values([{ what: 'second' }, { what: 'third' }]).returning();
isEqual(more.map((row) => row.id), psql("SELECT id FROM event WHERE what <> 'first' ORDER BY id"), 'and two');
isEqual(await db.select({ id: event.id }).from(event).where(eq(event.what, 'first')), [{ id: first }],
  'an ID is read back');
isEqual(await db.select({ what: event.what }).from(event).where(eq(event.id, first)), [{ what: 'first' }],
  'parameter in a comparison');
isEqual(await db.select({ what: event.what }).from(event).where(gt(event.id, first)).orderBy(asc(event.id)),
  [{ what: 'second' }, { what: 'third' }], 'parameter in a range');
isEqual(await db.select({ what: event.what }).from(event).where(inArray(event.id, [first, ID])),
  [{ what: 'first' }], 'inArray');
await db.insert(event).values({ id: ID, what: 'given', related: [first, ID] });
isEqual(psql("SELECT id, related FROM event WHERE what = 'given'"), [`${ID}|{${first},${ID}}`],
  'parameter in an INSERT, and an array');
isEqual((await db.select().from(event).where(eq(event.id, ID)))[0].related, [first, ID], 'an array out');
isEqual((await db.select().from(event).where(arrayContains(event.related, [first])))[0].id, ID, 'arrayContains');
const ids = [first, ID];
const found = await db.select().from(event).where(sql`${event.id} = ANY(${sql.param(ids)})`);
isEqual(found.map((row) => row.what).sort(), ['first', 'given'], '= ANY(parameter)');

await db.insert(comment).values({ event: first, comment: 'so it is' });
isEqual(await db.query.event.findFirst({ where: eq(event.id, first), with: { comments: true } }),
  { id: first, what: 'first', related: null, comments: [{ event: first, comment: 'so it is' }] },
  'a relational query, which goes by JSON');
isEqual(await db.select({ ids: sql`json_agg(${event.id} ORDER BY ${event.id})` }).from(event),
  [{ ids: psql('SELECT id FROM event ORDER BY id') }], 'json_agg');
isEqual(await db.select({ id: sql`to_json(${event.id})` }).from(event).where(eq(event.id, first)), [{ id: first }],
  'to_json');

// Needs a hint
const since = new Date(Date.now() - 3600000);
isEqual(await failure(db.select().from(event).where(sql`${event.id} >= ${since}`)), '22P02', 'a Date needs a cast');
const recent = await db.select().from(event).where(gte(event.id, sql`${since}::timestamptz`));
isEqual(recent.map((row) => row.what).sort(), ['first', 'second', 'third'], 'and has one');

// Order
await db.insert(event).values([...ORDERED].reverse().filter((id) => id !== ID).map((id) => ({ id, what: 'ordered' })));
const all = (await db.select({ id: event.id }).from(event).orderBy(event.id)).map((row) => row.id);
isEqual((await db.select().from(event).where(ne(event.what, 'ordered'))).length, 4, 'and nothing else');

await pool.end();
done(all);
