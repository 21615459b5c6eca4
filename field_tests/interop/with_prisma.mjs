// Prisma, with its adapter for node-postgres

import { ID, NUMBER, ORDERED, Scru64Id, done, isEqual, psql, registerArrays, versionOf } from './harness.mjs';

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
const { PGHOST: host, PGPORT: port, PGUSER: user, PGDATABASE: database } = process.env;
const options = '-c TimeZone=Asia/Tokyo';
const prisma = new PrismaClient({ adapter: new PrismaPg({ host, port, user, database, options, max: 1 }) });
const whats = async (where) =>
  (await prisma.event.findMany({ where, orderBy: { id: 'asc' }, select: { what: true } })).map((event) => event.what);

// Works with the model alone
const { id: first } = await prisma.event.create({ data: { what: 'first' } });
isEqual([first], psql('SELECT id FROM event'), 'DEFAULT gives an ID, a string');
const [second] = await prisma.event.createManyAndReturn({ data: [{ what: 'second' }] });
isEqual([second.id], psql("SELECT id FROM event WHERE what = 'second'"), 'in createManyAndReturn too');
isEqual(await prisma.event.findUnique({ where: { id: first } }), { id: first, what: 'first', related: [] },
  'findUnique, and NULL for an array');
isEqual(await whats({ id: { gt: first } }), ['second'], 'parameter in a range');
isEqual(await prisma.$transaction((tx) => tx.event.findMany({ cursor: { id: first }, skip: 1, take: 1 })), [second],
  'a cursor, in a transaction');
isEqual(await prisma.event.aggregate({ _min: { id: true }, _max: { id: true } }),
  { _min: { id: first }, _max: { id: second.id } }, 'aggregate');
const given = { id: ID, what: 'given' };
isEqual((await prisma.event.upsert({ where: { id: ID.toUpperCase() }, create: given, update: {} })).id, ID, 'upsert');
isEqual(await whats({ id: { in: [first, ID] } }), ['given', 'first'], 'IN');
isEqual(await whats({ id: Scru64Id.fromString(ID) }), ['given'], 'an object');
isEqual(await failure(whats({ id: 'no ID' })), '22P02', 'bad text');
isEqual(await failure(prisma.event.create({ data: { id: 'no ID', what: 'bad' } })), '22P02', 'and in an INSERT');

// Arrays
const related = [first, ID];
isEqual((await failure(prisma.event.update({ where: { id: ID }, data: { related } }))).includes('is not a function'),
  true, 'a filled array cannot be read');
isEqual(psql(`SELECT related FROM event WHERE id = '${ID}'`), [`{${related}}`], 'but it is stored');
isEqual((await failure(prisma.event.findMany())).includes('is not a function'), true, 'and breaks other queries');
registerArrays(pg.types);
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

// Needs a hint
isEqual(await failure(prisma.$queryRaw`SELECT FROM event WHERE id = ${NUMBER}`), '22P02', 'a bigint needs a cast');
isEqual(await prisma.$queryRaw`SELECT what FROM event WHERE id = ${NUMBER}::bigint::scru64`, [{ what: 'given' }],
  'and has one');
const since = new Date(Date.now() + 3600000);
isEqual(await failure(prisma.$queryRaw`SELECT FROM event WHERE id >= ${since}`), '22P02', 'a Date needs a cast');
isEqual((await prisma.$queryRaw`SELECT what FROM event WHERE id >= ${since}::timestamptz`).length, 2,
  'and is of UTC, which the server is not told');
since.setTime(Date.now() - 3600000);
const recent = await prisma.$queryRaw`SELECT id FROM event WHERE id >= ${since.toISOString()}::timestamptz`;
isEqual(recent.map((row) => row.id).sort(), [first, second.id], 'an ISO string says so');
since.setTime(Date.now() + 3600000);
isEqual(await prisma.$queryRaw`SELECT id FROM event WHERE id >= ${since.toISOString()}::timestamptz`, [],
  'wherever the server is');

// Order
await prisma.event.createMany({ data: [...ORDERED].reverse().map((id) => ({ id, what: 'ordered' })),
  skipDuplicates: true });
const all = (await prisma.event.findMany({ orderBy: { id: 'asc' } })).map((event) => event.id);

isEqual(tool('migrate', 'diff', '--from-empty', '--to-schema-datamodel', 'event.prisma', '--script')
  .match(/"(id|related)" \S+/g), ['"id" TEXT', '"related" TEXT[],'], 'Prisma Migrate takes the columns for text');

await prisma.$disconnect();
done(all);
