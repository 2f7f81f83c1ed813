-- Run it on one host only. The shard goes with it: tasks that are bound to a host have one of their own.
UPDATE outbox SET target_host = 'worker-3', shard = DEFAULT WHERE task_key = 'report-9' AND state = 'scheduled';
