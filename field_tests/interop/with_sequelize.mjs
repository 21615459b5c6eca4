// Sequelize, with node-postgres

import { ID, Scru64Id, ask, connection, done, failure, isEqual, psql, register, versionOf } from './harness.mjs';

import pg from 'pg';
import { DataTypes, Op, Sequelize } from 'sequelize';

console.log(`# sequelize ${versionOf('sequelize')}`);

const { user: username, ...others } = connection;
const sequelize = new Sequelize({ dialect: 'postgres', username, ...others, pool: { max: 1 }, logging: false });

const Event = sequelize.define('event', {
  // [recipe: Sequelize, columns]
  id: { type: 'scru64', primaryKey: true, defaultValue: sequelize.literal('scru64_generate()') },
  related: 'scru64[]',
  // [end]
  what: { type: DataTypes.TEXT, allowNull: false },
}, { timestamps: false, freezeTableName: true });
await Event.sync();

const operators = { '=': Op.eq, '>': Op.gt, '>=': Op.gte };
const where = (condition) => Event.findAll({ where: condition, order: ['id'] });
const client = {
  insert: (rows) => Event.bulkCreate(rows, { returning: true }),
  find: (op, id, cast = '') => {
    const types = cast.split('::').slice(1);
    return where({ id: { [operators[op]]: types.reduce((value, type) => sequelize.cast(value, type), id) } });
  },
  any: async (ids) => (await sequelize.query('SELECT * FROM event WHERE id = ANY($1) ORDER BY id', { bind: [ids] }))[0],
  register: () => register(pg.types),
  end: () => sequelize.close(),
  objects: false,
  number: '42883',
};

const first = await ask(client);
await Event.create({ what: 'created' });
isEqual(psql("INSERT INTO event (what) VALUES ('other') RETURNING true"), ['t'], 'DEFAULT for other programs, too');
isEqual((await Event.findByPk(first)).what, 'first', 'findByPk');
isEqual((await where({ id: [first, ID] })).map((event) => event.what), ['given', 'first'], 'IN');
isEqual(await failure(where({ id: { [Op.any]: [first] } })), '42883', 'Op.any fails');
const id = Scru64Id.fromString(ID);
isEqual((await failure(where({ id }))).split(' ', 2), ['Invalid', 'value'], 'an object in where fails');
isEqual((await client.find('=', `${id}`))[0].what, 'given', 'its text does not');
await Event.update({ related: [id] }, { where: { what: 'first' } });
isEqual(psql("SELECT related FROM event WHERE what = 'first'"), [`{${ID}}`], 'objects are stored');
await done(client);
