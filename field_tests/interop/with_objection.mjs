// Objection, on Knex

import { ID, ask, done, isEqual, psql, register, versionOf } from './harness.mjs';

import Knex from 'knex';
import objection from 'objection';
import pg from 'pg';

console.log(`# objection ${versionOf('objection')}`);

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
const client = {
  insert: (rows) => Event.query().insertGraph(rows),
  find: (op, id, cast) => event().where('id', op, cast ? raw(`?${cast}`, [id]) : id),
  any: (ids) => event().whereRaw('id = ANY(?)', [ids]),
  register: () => register(pg.types),
  end: () => knex.destroy(),
};

const first = await ask(client);
const [commented] = await client.insert([{ what: 'commented', comments: [{ comment: 'so it is' }] }]);
isEqual(psql('SELECT event FROM comment'), [commented.id], 'a reference');
const { comments } = await Event.query().findById(commented.id).withGraphFetched('comments');
isEqual(comments.map((row) => row.comment), ['so it is'], 'what refers to it is found');
isEqual((await Event.query().findById(first)).what, 'first', 'findById');
isEqual((await Event.query().insertAndFetch({ what: 'fetched' })).related, null, 'insertAndFetch');
isEqual(await Event.query().delete().where({ what: 'fetched' }), 1, 'delete');
const found = await Event.query().findByIds([first, ID]).orderBy('id');
isEqual(found.map((row) => row.what), ['given', 'first'], 'findByIds');
isEqual(await Event.query().findById(first).patch({ related: [ID] }), 1, 'patch');
await done(client);
