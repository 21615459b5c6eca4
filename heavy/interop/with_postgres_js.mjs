// postgres.js

import { ID, ask, connection, done, isEqual, versionOf } from './harness.mjs';

import postgres from 'postgres';

console.log(`# postgres ${versionOf('postgres')}`);

const { host, port, user, database } = connection;
const sql = postgres({ path: `${host}/.s.PGSQL.${port}`, user, database, max: 1 });
const client = {
  insert: (rows) => sql`INSERT INTO event ${sql(rows)} RETURNING id`,
  find: (op, id, cast = '') =>
    sql`SELECT * FROM event WHERE id ${sql.unsafe(op)} ${id}${sql.unsafe(cast)} ORDER BY id`,
  any: (ids) => sql`SELECT * FROM event WHERE id = ANY(${ids}) ORDER BY id`,
  end: () => sql.end(),
  number: '42883',
  time: 'none',
  nullInArray: 'NULL',
};

const first = await ask(client);
isEqual((await sql`SELECT id FROM event WHERE id IN ${sql([first, ID])}`).length, 2, 'IN');
const [[other]] = await sql`SELECT array['x', NULL]`.values();
isEqual(other, ['x', 'NULL'], 'NULL in an array of another type');
await done(client);
