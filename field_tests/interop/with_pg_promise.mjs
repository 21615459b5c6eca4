// pg-promise, with node-postgres

import { ID, ask, connection, done, failure, isEqual, register, versionOf } from './harness.mjs';

import pgPromise from 'pg-promise';

console.log(`# pg-promise ${versionOf('pg-promise')}`);

const pgp = pgPromise();
const db = pgp({ ...connection, max: 1 });
const find = (op, id, cast = '') => db.any(`SELECT * FROM event WHERE id ${op} ($1${cast}) ORDER BY id`, [id]);
const client = {
  insert: (rows) => db.many(`${pgp.helpers.insert(rows, Object.keys(rows[0]), 'event')} RETURNING id`),
  find,
  any: (ids) => find('= ANY', ids, '::scru64[]'),
  register: () => register(pgp.pg.types),
  end: () => db.$pool.end(),
  number: '42883',
};

const first = await ask(client);
isEqual(await db.map('SELECT what FROM event WHERE id > $<id>', { id: ID }, (row) => row.what),
  ['first', 'second', 'third'], 'a named value');
const byId = new pgp.PreparedStatement({ name: 'by id', text: 'SELECT what FROM event WHERE id = $1' });
byId.values = [first];
isEqual(await db.one(byId), { what: 'first' }, 'parameter of a prepared statement');
isEqual((await find('IN', [first, ID], ':csv')).map((row) => row.what), ['given', 'first'], 'IN');
isEqual(await failure(find('= ANY', [first, ID])), '42883', '= ANY needs a cast');
const byIds = new pgp.ParameterizedQuery({ text: 'SELECT what FROM event WHERE id = ANY($1)', values: [[ID]] });
isEqual(await db.any(byIds), [{ what: 'given' }], 'a ParameterizedQuery needs none');
await done(client);
