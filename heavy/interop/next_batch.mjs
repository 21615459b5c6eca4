// New rows of the table event, each once and in order, with the table consumer of doc/feeds.md
// and a client of node-postgres: call this every second, and again at once if it has returned
// rows.  handle() gets the rows; what it writes with the same client is in the same transaction.

export async function nextBatch(client, name, handle) {
  await client.query('BEGIN');
  try {
    const consumer = await client.query('SELECT seen FROM consumer WHERE name = $1 FOR UPDATE', [name]);
    const { rows } = await client.query(`
      SELECT id, what FROM event
      WHERE id > $1 AND id < scru64_watermark()
      ORDER BY id LIMIT 1000`, [consumer.rows[0].seen]);
    if (rows.length > 0) {
      await handle(rows);
      await client.query('UPDATE consumer SET seen = $1 WHERE name = $2', [rows.at(-1).id, name]);
    }
    await client.query('COMMIT');
    return rows;
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  }
}
