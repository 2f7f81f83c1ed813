# mysql2; see tests/clients/test_clients.py.
require 'mysql2'

verb, key = ARGV
client = Mysql2::Client.new(host: ENV['DUEBOX_CLIENT_HOST'], port: ENV['DUEBOX_CLIENT_PORT'].to_i,
                            username: ENV['DUEBOX_CLIENT_USER'], password: ENV['DUEBOX_CLIENT_PASSWORD'],
                            database: ENV['DUEBOX_CLIENT_DATABASE'])
if verb == 'insert'
  # [delay]
  insert = client.prepare('INSERT INTO outbox (route, task_key, payload, delay_ms) VALUES (?, ?, ?, ?)')
  insert.execute('clients.delay', key, '{"order": 17}', 30 * 60 * 1000)
  # [end]
  puts client.last_id
  # [due_at]
  due_at = (Time.now + 30 * 60).utc
  insert = client.prepare('INSERT INTO outbox (route, task_key, payload, due_at) VALUES (?, ?, ?, ?)')
  insert.execute('clients.at', key, '{"order": 17}', due_at)
  # [end]
  puts client.last_id
  insert = client.prepare('INSERT INTO outbox (route, task_key, payload, due_at, delay_ms) VALUES (?, ?, ?, ?, ?)')
  insert.execute('clients.null', key, '{}', nil, 1_800_000)
  puts client.last_id
else
  delete = client.prepare("DELETE FROM outbox WHERE task_key = ? AND route = 'clients.delay' AND state = 'scheduled'")
  delete.execute(key)
  puts delete.affected_rows
  update = client.prepare('UPDATE outbox SET due_at = ?, first_due_at = NULL ' \
                          "WHERE task_key = ? AND route = 'clients.at' AND state = 'scheduled'")
  update.execute((Time.now + 40 * 60).utc, key)
  puts update.affected_rows
end
