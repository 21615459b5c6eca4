// Shared by the Node.js programs here: tests, and values fetched by another client.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';

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
  constructor(bytes) {
    this.bytes = bytes;
  }

  static fromString(text) {
    const bytes = new Uint8Array(8);
    const number = [...text].reduce((n, digit) => n * 36n + BigInt(parseInt(digit, 36)), 0n);
    new DataView(bytes.buffer).setBigUint64(0, number);
    return new Scru64Id(bytes);
  }

  toBigInt() {
    return new DataView(this.bytes.buffer).getBigUint64(0);
  }

  toString() {
    return this.toBigInt().toString(36).padStart(12, '0');
  }

  toJSON() {
    return this.toString();
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

// Make arrays of IDs arrays, wherever node-postgres is used.
export function registerArrays(types) {
  const [oid] = psql("SELECT typarray FROM pg_type WHERE typname = 'scru64'");
  types.setTypeParser(Number(oid), types.getTypeParser(1009));
}

// psql's output, a string for each line
export function psql(sql) {
  const printed = execFileSync(process.env.PSQL, ['-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-c', sql],
    { encoding: 'utf8' });
  return printed === '' ? [] : printed.replace(/\n$/, '').split('\n');
}

// The end, which scripts/interop waits for.  ids: all of the table event, in the server's order,
// as the client has them
export function done(ids) {
  isEqual(ids, psql('SELECT id FROM event ORDER BY id'), "the server's order");
  isEqual([...ids].sort(), ids, 'it is the order of the strings');
  isEqual(ids.filter((id) => ORDERED.includes(id)), ORDERED, 'and the one expected');
  console.log('done');
}
