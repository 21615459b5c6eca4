// Prisma, with its adapter for node-postgres

import { ID, Scru64Id, ask, connection, done, isEqual, psql, register, versionOf } from './harness.mjs';

import { execFileSync } from 'node:child_process';

import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';

console.log(`# prisma ${versionOf('prisma')}`);
// Node.js would show the throwing line, and Prisma has lines of 50,000 characters.
process.on('uncaughtException', ({ message }) => {
  console.log(`# ${message}`);
  process.exit(1);
});

// The output of Prisma's program
function tool(...args) {
  return execFileSync('node_modules/.bin/prisma', args,
    { encoding: 'utf8', stdio: 'pipe', env: { ...process.env, CHECKPOINT_DISABLE: '1' } });
}

// The SQLSTATE of a failing query
async function failure(query) {
  try {
    await query;
    return 'none';
  } catch (error) {
    return (error.meta?.driverAdapterError ?? error).cause?.originalCode ?? error.message;
  }
}

tool('generate');
const { default: { PrismaClient } } = await import('./prisma/index.js');
const options = '-c TimeZone=Asia/Tokyo';
const prisma = new PrismaClient({ adapter: new PrismaPg({ ...connection, options, max: 1 }) });
const whats = async (where) =>
  (await prisma.event.findMany({ where, orderBy: { id: 'asc' }, select: { what: true } })).map((event) => event.what);
const find = (op, id, cast = '') =>
  prisma.$queryRawUnsafe(`SELECT id, what FROM event WHERE id ${op} ($1${cast}) ORDER BY id`, id);
const client = {
  insert: (rows) => prisma.event.createManyAndReturn({ data: rows }),
  find,
  any: (ids) => find('= ANY', ids),
  end: () => prisma.$disconnect(),
  failure,
  arrays: false,
  objects: false,
};

// The model
const first = await ask(client);
const created = await prisma.event.create({ data: { what: 'created' } });
isEqual([created.id], psql("SELECT id FROM event WHERE what = 'created'"), 'create');
isEqual(await prisma.event.findUnique({ where: { id: first } }), { id: first, what: 'first', related: [] },
  'findUnique, and NULL for an array');
isEqual(await whats({ id: { gt: first } }), ['second', 'third', 'created'], 'parameter in a range');
const page = await prisma.$transaction((tx) => tx.event.findMany({ cursor: { id: first }, skip: 1, take: 1 }));
isEqual(page.map((event) => event.what), ['second'], 'a cursor, in a transaction');
isEqual(await prisma.event.aggregate({ _min: { id: true }, _max: { id: true } }),
  { _min: { id: ID }, _max: { id: created.id } }, 'aggregate');
const more = { id: '0u2r85hm2pt4', what: 'upserted' };
isEqual((await prisma.event.upsert({ where: { id: more.id.toUpperCase() }, create: more, update: {} })).id, more.id,
  'upsert');
isEqual(await whats({ id: { in: [first, ID] } }), ['given', 'first'], 'IN');
isEqual(await whats({ id: new Scru64Id(ID) }), ['given'], 'an object');
isEqual(await failure(whats({ id: 'no ID' })), '22P02', 'bad text');

// Arrays
const related = [first, ID];
isEqual((await failure(prisma.event.update({ where: { id: ID }, data: { related } }))).includes('is not a function'),
  true, 'a filled array cannot be read');
isEqual(psql(`SELECT related FROM event WHERE id = '${ID}'`), [`{${related}}`], 'but it is stored');
isEqual((await failure(prisma.event.findMany())).includes('is not a function'), true, 'and breaks other queries');
register(pg.types);
isEqual((await prisma.event.findUnique({ where: { id: ID } })).related, related, 'registered, it is an array');
isEqual(await whats({ related: { has: first } }), ['given'], 'has');
isEqual((await prisma.event.update({ where: { id: ID }, data: { related: { push: ID } } })).related, [...related, ID],
  'push');
const ids = [first, ID];
isEqual(await prisma.$queryRaw`SELECT array_agg(id ORDER BY id) FROM event WHERE id = ANY(${ids})`,
  [{ array_agg: [ID, first] }], '= ANY');
psql(`UPDATE event SET related = '{NULL}' WHERE id = '${ID}'`);
isEqual((await failure(prisma.event.findMany())).includes("Expected a string in column 'related[0]'"), true,
  'NULL in one is an error');
psql(`UPDATE event SET related = NULL`);

// Times are of UTC, which the server is not told, but by an ISO string.
for (const [hours, taken, right] of [[1, 4, 0], [-1, 4, 4]]) {
  const since = new Date(Date.now() + hours * 3600000);
  isEqual((await find('>=', since, '::timestamptz')).length, taken, `a Date, ${hours} hours from now`);
  isEqual((await find('>=', since.toISOString(), '::timestamptz')).length, right, 'and as an ISO string');
}

isEqual(tool('migrate', 'diff', '--from-empty', '--to-schema-datamodel', 'event.prisma', '--script')
  .match(/"(id|related)" \S+/g), ['"id" TEXT', '"related" TEXT[],'], 'Prisma Migrate takes the columns for text');
await done(client);
