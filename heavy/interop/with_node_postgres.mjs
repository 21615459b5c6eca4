// node-postgres

import { ID, ORDERED, Scru64Id, ask, done, failure, isEqual, psql, versionOf } from './harness.mjs';

import { setTimeout } from 'node:timers/promises';
import pg from 'pg';

import { nextBatch } from './next_batch.mjs';

console.log(`# pg ${versionOf('pg')}, Node.js ${process.versions.node}`);

const client = new pg.Client();
await client.connect();

const rowsOf = async (text, params) => (await client.query(text, params)).rows;
const find = (op, id, cast = '') => rowsOf(`SELECT * FROM event WHERE id ${op} ($1${cast}) ORDER BY id`, [id]);
const asked = {
  insert: (rows) => {
    const columns = Object.keys(rows[0]);
    const params = rows.map((_, i) => `(${columns.map((_, j) => `$${i * columns.length + j + 1}`)})`);
    return rowsOf(`INSERT INTO event (${columns}) VALUES ${params} RETURNING id`, rows.flatMap(Object.values));
  },
  find,
  any: (ids) => find('= ANY', ids),
  register: async () => {
    // [recipe: node-postgres, arrays]
    const { rows } = await client.query("SELECT typarray FROM pg_type WHERE typname = 'scru64'");
    const parseTextArray = pg.types.getTypeParser(1009); // text[]
    for (const { typarray } of rows) pg.types.setTypeParser(typarray, parseTextArray);
    // [end]
    // [recipe: node-postgres, objects]
    Scru64Id.prototype.toPostgres = function () {
      return this.toString();
    };
    // [end]
  },
  end: () => client.end(),
};

const first = await ask(asked);
isEqual((await client.query({ name: 'by id', text: 'SELECT what FROM event WHERE id = $1', values: [first] })).rows,
  [{ what: 'first' }], 'parameter of a named statement');
isEqual(await find('= ANY', []), [], '= ANY(empty parameter)');

// The library's class
const id = new Scru64Id(ID);
await client.query('UPDATE event SET related = $1 WHERE id = $2', [[id, null], id]);
isEqual(psql(`SELECT related FROM event WHERE id = '${ID}'`), [`{${ID},NULL}`], 'an array of objects is stored');

// The time of an ID
// [recipe: JavaScript, the time of an ID]
function timeOf(id) {
  const number = [...id].reduce((n, digit) => n * 36n + BigInt(parseInt(digit, 36)), 0n);
  return new Date(Number(number >> 24n) * 256);
}
// [end]
for (const id of [first, ...ORDERED]) {
  isEqual([{ time: timeOf(id) }], await rowsOf('SELECT $1::scru64::timestamptz AS time', [id]), `the time of ${id}`);
}

// New rows
await client.query("CREATE TABLE consumer (name text PRIMARY KEY, seen scru64 NOT NULL DEFAULT '000000000000')");
await client.query("INSERT INTO consumer (name) VALUES ('mail')");
const mail = [];
const handle = (rows) => mail.push(...rows.map((row) => row.what));
const isMailed = async (expected, name) => {
  for (let i = 0; mail.length < expected.length && i < 1200; i++) {
    await nextBatch(client, 'mail', handle);
    await setTimeout(50);
  }
  isEqual((await nextBatch(client, 'mail', handle)).length, 0, `${name}: and no more`);
  isEqual(mail, expected, name);
};
await isMailed(['given', 'first', 'second', 'third'], 'all rows so far');
const other = new pg.Client();
await other.connect();
await other.query("BEGIN; INSERT INTO event (what) VALUES ('committed last')");
await client.query("INSERT INTO event (what) VALUES ('committed first')");
isEqual(await nextBatch(client, 'mail', handle), [], 'a row waits for an open transaction with a lower ID');
await other.query('COMMIT');
await other.end();
isEqual(await failure(nextBatch(client, 'mail', () => client.query('SELECT 1/0'))), '22012', 'an error in the handler');
await isMailed(['given', 'first', 'second', 'third', 'committed last', 'committed first'], 'in order, and once');
await done(asked);
