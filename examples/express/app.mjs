// psql -f migration.sql, npm ci, node app.mjs

import express from 'express';
import pg from 'pg';

const PAGE = 10;
const db = new pg.Pool(); // the server of PGHOST, PGPORT, PGUSER and so on
const app = express();
app.use(express.urlencoded());

const escape = (text) => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

app.get('/events', async (request, response) => {
  const { before, since, until } = request.query;
  // PostgreSQL compares a time with the IDs themselves, so the primary key serves it too.
  const { rows } = await db.query(
    `SELECT id, what FROM event
     WHERE ($1::scru64 IS NULL OR id < $1) AND ($2::timestamptz IS NULL OR id >= $2)
       AND ($3::timestamptz IS NULL OR id < $3)
     ORDER BY id DESC LIMIT $4`, [before, since, until, PAGE]);
  const older = new URLSearchParams(request.query);
  if (rows.length === PAGE) older.set('before', rows.at(-1).id);
  response.send(`
    <form method="post"><input name="what"><button>Add</button></form>
    <ul>${rows.map(({ id, what }) => `<li><a href="/events/${id}">${escape(what)}</a></li>`).join('\n')}</ul>
    ${rows.length === PAGE ? `<a rel="next" href="?${escape(older.toString())}">Older</a>` : ''}`);
});

app.post('/events', async (request, response) => {
  // Nothing reads a body that is no form: the table refuses the null.
  const { rows } = await db.query('INSERT INTO event (what) VALUES ($1) RETURNING id', [request.body?.what]);
  response.redirect(303, `/events/${rows[0].id}`);
});

app.get('/events/:id', async (request, response, next) => {
  // All of these are IDs. Whatever else is in the URL is a 404.
  if (!/^[0-9A-Za-z]{12}$/.test(request.params.id)) return next();
  const { rows } = await db.query('SELECT id, what FROM event WHERE id = $1', [request.params.id]);
  if (rows.length === 0) return next();
  response.send(`<h1>${rows[0].id}</h1><p>${escape(rows[0].what)}</p><a href="/events">All</a>`);
});

// Text that is no ID or no time, or is refused by the table: SQLSTATE 22... and 23...
app.use((error, request, response, next) => {
  if (/^2[23]...$/.test(error.code)) error.status = 400;
  next(error);
});

app.listen(process.env.PORT ?? 3000, '127.0.0.1');
