// Sequelize, with node-postgres

import { ID, NUMBER, ORDERED, Scru64Id, done, failure, isEqual, psql, registerArrays, versionOf } from './harness.mjs';

import pg from 'pg';
import { DataTypes, Op, Sequelize } from 'sequelize';

console.log(`# sequelize ${versionOf('sequelize')}`);
Scru64Id.prototype.toPostgres = Scru64Id.prototype.toString;

const { PGHOST, PGPORT, PGUSER, PGDATABASE } = process.env;
const sequelize = new Sequelize({ dialect: 'postgres', host: PGHOST, port: PGPORT, username: PGUSER,
  database: PGDATABASE, pool: { max: 1 }, logging: false });

const Event = sequelize.define('event', {
  // [recipe: Sequelize, columns]
  id: { type: 'scru64', primaryKey: true, defaultValue: sequelize.literal('scru64_generate()') },
  related: 'scru64[]',
  // [end]
  what: { type: DataTypes.TEXT, allowNull: false },
}, { timestamps: false, freezeTableName: true });
await Event.sync();
const whats = async (where) => (await Event.findAll({ where, order: ['id'] })).map((event) => event.what);

const { id: first } = await Event.create({ what: 'first' });
isEqual([first], psql('SELECT id FROM event'), 'DEFAULT gives an ID, a string');
isEqual(psql("INSERT INTO event (what) VALUES ('second') RETURNING true"), ['t'], 'to other programs too');
isEqual((await Event.findByPk(first)).what, 'first', 'findByPk');
isEqual(await whats({ id: first }), ['first'], 'parameter in a comparison');
isEqual(await whats({ id: { [Op.gt]: first } }), ['second'], 'parameter in a range');
await Event.create({ id: ID, what: 'given', related: [first, null] });
isEqual(psql("SELECT id, related FROM event WHERE what = 'given'"), [`${ID}|{${first},NULL}`],
  'parameter in an INSERT, and an array');
isEqual((await Event.findByPk(ID)).related, `{${first},NULL}`, 'an array comes as text');
registerArrays(pg.types);
isEqual((await Event.findByPk(ID)).related, [first, null], 'registered, an array comes as an array');
isEqual(await whats({ id: [first, ID] }), ['given', 'first'], 'IN');
const ids = [first, ID];
isEqual(await failure(whats({ id: { [Op.any]: ids } })), '42883', 'Op.any fails');
const [found] = await sequelize.query('SELECT * FROM event WHERE id = ANY($1)', { bind: [ids] });
isEqual(found.map((row) => row.what).sort(), ['first', 'given'], '= ANY');
const id = Scru64Id.fromString(ID);
isEqual((await failure(whats({ id }))).split(' ', 2), ['Invalid', 'value'], 'an object in where fails');
isEqual(await whats({ id: `${id}` }), ['given'], 'its text does not');
await Event.update({ related: [id] }, { where: { what: 'first' } });
isEqual(psql("SELECT related FROM event WHERE what = 'first'"), [`{${ID}}`], 'objects are stored');
isEqual(await whats({ related: null }), ['second'], 'NULL');
isEqual(await failure(whats({ id: 'no ID' })), '22P02', 'bad text');
isEqual(await failure(whats({ id: NUMBER })), '42883', 'a bigint needs a cast');
const number = sequelize.cast(sequelize.cast(`${NUMBER}`, 'bigint'), 'scru64');
isEqual(await whats({ id: { [Op.eq]: number } }), ['given'], 'and has one');
const since = new Date(Date.now() - 3600000);
isEqual(await failure(whats({ id: { [Op.gte]: since } })), '22P02', 'a Date needs a cast');
const recent = await Event.findAll({ where: { id: { [Op.gte]: sequelize.cast(since, 'timestamptz') } } });
isEqual(recent.map((event) => event.what).sort(), ['first', 'second'], 'and has one');

// Order
await Event.bulkCreate([...ORDERED].reverse().map((id) => ({ id, what: 'ordered' })), { ignoreDuplicates: true });
const all = (await Event.findAll({ order: ['id'] })).map((event) => event.id);

await sequelize.close();
done(all);
