// So configured, Prisma's tools use what npm has of it: they download no engine.

import { PrismaPg } from '@prisma/adapter-pg';

const { PGHOST: host, PGPORT: port, PGUSER: user, PGDATABASE: database } = process.env;

export default {
  experimental: { adapter: true },
  engine: 'js',
  schema: 'event.prisma',
  adapter: async () => new PrismaPg({ host, port, user, database }),
};
