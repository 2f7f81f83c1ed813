-- Run it on one host only. The daemon that has the task moves it when no copy of it is out.
UPDATE outbox SET move_to_host = 'worker-3' WHERE task_key = 'report-9' AND state = 'scheduled';
