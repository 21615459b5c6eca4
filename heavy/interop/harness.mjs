// Shared by the Node.js programs here: tests, and values fetched by another client.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';

const { PGHOST: host, PGPORT, PGUSER: user, PGDATABASE: database } = process.env;

export const connection = { host, port: Number(PGPORT), user, database };

export const ID = '0u2r85hm2pt3';

export const NUMBER = 109964681944955175n;

// IDs in the order of the server, which must be the order of strings
export const ORDERED =
  '000000000000 0000000000zz 00000000a000 0u2r85hm2pt3 9zzzzzzzzzzz a00000000000 zzzzzzzzzzzz'.split(' ');

export function versionOf(name) {
  return JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url), 'utf8')).version;
}

// Stands in for the class of the library scru64, as drivers see it
export class Scru64Id {
  constructor(text) {
    this.text = text;
  }

  toString() {
    return this.text;
  }

  toJSON() {
    return this.text;
  }
}

export function isEqual(got, expected, name) {
  if (isDeepStrictEqual(got, expected)) {
    console.log(`ok - ${name}`);
  } else {
    console.log(`not ok - ${name}`);
    console.log(`#        got: ${JSON.stringify(got)}`);
    console.log(`#   expected: ${JSON.stringify(expected)}`);
  }
}

// The SQLSTATE of a failing query
export async function failure(query) {
  try {
    await query;
    return 'none';
  } catch (error) {
    return error.code ?? error.cause?.code ?? error.original?.code ?? error.nativeError?.code ??
      error.message;
  }
}

// Make arrays of IDs arrays, and objects IDs, wherever node-postgres is used.
export function register(types) {
  const [oid] = psql("SELECT typarray FROM pg_type WHERE typname = 'scru64'");
  types.setTypeParser(Number(oid), types.getTypeParser(1009));
  Scru64Id.prototype.toPostgres = Scru64Id.prototype.toString;
}

// psql's output, a string for each line
export function psql(sql) {
  const printed = execFileSync(process.env.PSQL, ['-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-c', sql],
    { encoding: 'utf8' });
  return printed === '' ? [] : printed.replace(/\n$/, '').split('\n');
}

const whatOf = (rows) => rows.map((row) => row.what);

// What every client is asked, of the rows "first", "second", "third" and, with the fixed ID, "given"; returns the ID of
// the first.  A client consists of:
//   insert(rows)            insert rows, and return them with their IDs
//   find(op, id, cast)      the rows whose ID compares so with the one given, in order of their IDs
//   any(ids)                the same with = ANY
//   end()                   close the connection
// and, if it needs one:
//   register()              make arrays of IDs arrays, and objects IDs
//   failure(query)          the error of a failing query
//   arrays, objects         false if it has tests of its own of these
//   bad, number, time       the error of bad text, of a number and of a time without a cast
//   nullInArray             what NULL in an array comes as
export async function ask({ insert, find, any, register, failure: errorOf = failure, arrays = true, objects = true,
  bad = '22P02', number = bad, time = bad, nullInArray = null }) {
  const [{ id: first }] = await insert([{ what: 'first' }]);
  isEqual([first], psql('SELECT id FROM event'), 'DEFAULT gives an ID, a string');
  const more = await insert([{ what: 'second' }, { what: 'third' }]);
  isEqual(more.map((row) => row.id), psql("SELECT id FROM event WHERE what <> 'first' ORDER BY id"), 'and two');
  isEqual(whatOf(await find('=', first)), ['first'], 'parameter in a comparison');
  await insert([{ id: ID.toUpperCase(), what: 'given', ...(arrays && { related: [first, null] }) }]);
  isEqual(psql("SELECT id FROM event WHERE what = 'given'"), [ID], 'parameter in an INSERT');
  isEqual(whatOf(await any([first, ID])), ['given', 'first'], '= ANY');
  isEqual((await find('=', null, '::scru64')).length, 0, 'NULL');
  isEqual(await errorOf(find('=', 'no ID')), bad, 'bad text');
  isEqual(await errorOf(insert([{ id: 'no ID', what: 'bad' }])), bad, 'and in an INSERT');
  isEqual(await errorOf(find('=', NUMBER)), number, 'a bigint needs a cast');
  isEqual(whatOf(await find('=', NUMBER, '::bigint::scru64')), ['given'], 'and has one');
  const since = new Date(Date.now() - 3600000);
  isEqual(await errorOf(find('>=', since)), time, 'a Date without a cast');
  isEqual(whatOf(await find('>=', since, '::timestamptz')), ['first', 'second', 'third'], 'and with one');

  const object = new Scru64Id(ID);
  if (register) {
    isEqual((await find('=', ID))[0].related, `{${first},NULL}`, 'unregistered, an array comes as text');
    if (objects) {
      isEqual(await errorOf(find('=', object)), '22P02', 'and an object goes in as JSON');
    }
    await register();
  }
  if (arrays) {
    isEqual(psql(`SELECT related FROM event WHERE id = '${ID}'`), [`{${first},NULL}`], 'an array in');
    isEqual((await find('=', ID))[0].related, [first, nullInArray], 'an array out');
    isEqual((await find('=', first))[0].related, null, 'and NULL');
  }
  if (objects) {
    isEqual(whatOf(await find('=', object)), ['given'], 'an object');
    isEqual(whatOf(await any([object])), ['given'], 'an array of objects');
  }
  return first;
}

// The end, which scripts/heavy interop waits for: IDs go in and come out, in the server's order.
export async function done({ insert, find, end }) {
  await insert([...ORDERED].reverse().filter((id) => id !== ID).map((id) => ({ id, what: 'ordered' })));
  const ids = (await find('>=', ORDERED[0])).map((row) => row.id);
  await end();
  isEqual(ids, psql('SELECT id FROM event ORDER BY id'), "the server's order");
  isEqual([...ids].sort(), ids, 'it is the order of the strings');
  isEqual(ids.filter((id) => ORDERED.includes(id)), ORDERED, 'and the one expected');
  console.log('done');
}
