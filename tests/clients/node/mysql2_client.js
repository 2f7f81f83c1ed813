// mysql2; see tests/clients/test_clients.py.
const mysql = require('mysql2/promise');
const env = process.env;

async function main(verb, key) {
  const where = {host: env.DUEBOX_CLIENT_HOST, port: +env.DUEBOX_CLIENT_PORT, user: env.DUEBOX_CLIENT_USER,
                 password: env.DUEBOX_CLIENT_PASSWORD, database: env.DUEBOX_CLIENT_DATABASE};
  // [due_at]
  const connection = await mysql.createConnection({...where, timezone: 'Z'}); // Dates are written as UTC
  // [end]
  if (verb === 'insert') {
    const ids = [];
    // [delay]
    let [done] = await connection.execute(
        'INSERT INTO outbox (route, task_key, payload, delay_ms) VALUES (?, ?, ?, ?)',
        ['clients.delay', key, '{"order": 17}', 30 * 60 * 1000]);
    // [end]
    ids.push(done.insertId);
    // [use due_at]
    const dueAt = new Date(Date.now() + 30 * 60 * 1000);
    [done] = await connection.execute('INSERT INTO outbox (route, task_key, payload, due_at) VALUES (?, ?, ?, ?)',
                                      ['clients.at', key, '{"order": 17}', dueAt]);
    // [end]
    ids.push(done.insertId);
    [done] = await connection.query('INSERT INTO outbox SET ?',
                                    {route: 'clients.null', task_key: key, payload: '{}', due_at: null, delay_ms: 1800000});
    ids.push(done.insertId);
    ids.forEach((id) => console.log(id));
  } else {
    let [done] = await connection.execute(
        "DELETE FROM outbox WHERE task_key = ? AND route = 'clients.delay' AND state = 'scheduled'", [key]);
    console.log(done.affectedRows);
    [done] = await connection.query(
        "UPDATE outbox SET due_at = ?, first_due_at = NULL WHERE task_key = ? AND route = 'clients.at' AND state = 'scheduled'",
        [new Date(Date.now() + 40 * 60 * 1000), key]);
    console.log(done.affectedRows);
  }
  await connection.end();
}

main(...process.argv.slice(2)).catch((error) => {
  console.error(error);
  process.exit(1);
});
