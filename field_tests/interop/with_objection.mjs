// Objection, on Knex

import { ID, NUMBER, ORDERED, Scru64Id, done, failure, isEqual, psql, registerArrays, versionOf } from './harness.mjs';

import Knex from 'knex';
import objection from 'objection';
import pg from 'pg';

console.log(`# objection ${versionOf('objection')}`);
Scru64Id.prototype.toPostgres = Scru64Id.prototype.toString;

const { Model, raw } = objection;
const knex = Knex({ client: 'pg', connection: {}, pool: { min: 0, max: 1 } });

class Event extends Model {
  static tableName = 'event';

  static relationMappings = () => ({
    comments: { relation: Model.HasManyRelation, modelClass: Comment, join: { from: 'event.id', to: 'comment.event' } },
  });
}

class Comment extends Model {
  static tableName = 'comment';

  static idColumn = 'comment';
}

Model.knex(knex);
await knex.schema.createTable('comment', (table) => {
  table.specificType('event', 'scru64').references('event.id');
  table.text('comment').primary();
});
const event = () => Event.query().orderBy('id');
const whats = async (query) => (await query).map((row) => row.what);

const { id: first } = await Event.query().insert({ what: 'first' });
isEqual([first], psql('SELECT id FROM event'), 'DEFAULT gives an ID, a string');
const more = await Event.query().insertGraph([
  { what: 'second', comments: [{ comment: 'so it is' }] },
  { what: 'third' },
]);
isEqual(more.map((row) => row.id), psql("SELECT id FROM event WHERE what <> 'first' ORDER BY id"), 'and two');
isEqual(psql('SELECT event FROM comment'), [more[0].id], 'one of which is referred to');
const { comments } = await Event.query().findById(more[0].id).withGraphFetched('comments');
isEqual(comments.map((row) => row.comment), ['so it is'], 'what refers to it is found');
isEqual((await Event.query().findById(first)).what, 'first', 'findById');
isEqual((await Event.query().insertAndFetch({ what: 'fetched' })).related, null, 'insertAndFetch');
isEqual(await Event.query().delete().where({ what: 'fetched' }), 1, 'delete');
isEqual(await whats(event().where('id', '>', first)), ['second', 'third'], 'parameter in a range');
isEqual((await Event.query().insert({ id: ID, what: 'given', related: [first, null] })).id, ID,
  'parameter in an INSERT');
isEqual(psql("SELECT id, related FROM event WHERE what = 'given'"), [`${ID}|{${first},NULL}`], 'and an array');
isEqual((await Event.query().findById(ID)).related, `{${first},NULL}`, 'an array comes as text');
registerArrays(pg.types);
isEqual((await Event.query().findById(ID)).related, [first, null], 'registered, an array comes as an array');
isEqual(await whats(Event.query().findByIds([first, ID]).orderBy('id')), ['given', 'first'], 'findByIds');
isEqual(await whats(event().whereRaw('id = ANY(?)', [[first, ID]])), ['given', 'first'], '= ANY');
isEqual(await whats(event().where('id', Scru64Id.fromString(ID))), ['given'], 'an object');
isEqual(await Event.query().findById(first).patch({ related: [ID] }), 1, 'patch');
isEqual(await failure(Event.query().findById('no ID')), '22P02', 'bad text');
isEqual(await failure(Event.query().insert({ id: 'no ID', what: 'bad' })), '22P02', 'and in an INSERT');
isEqual(await failure(event().where({ id: NUMBER })), '22P02', 'a bigint needs a cast');
isEqual(await whats(event().where('id', raw('?::bigint::scru64', [NUMBER]))), ['given'], 'and has one');
const since = new Date(Date.now() - 3600000);
isEqual(await failure(event().where('id', '>=', since)), '22P02', 'a Date needs a cast');
isEqual(await whats(event().where('id', '>=', raw('?::timestamptz', [since]))), ['first', 'second', 'third'],
  'and has one');

// Order
await Event.query().insert([...ORDERED].reverse().filter((id) => id !== ID).map((id) => ({ id, what: 'ordered' })));
const all = (await event()).map((row) => row.id);

await knex.destroy();
done(all);
