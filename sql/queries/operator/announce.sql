-- A command that is about to ask daemons says that it runs: whoever has this row works on the same outbox.
INSERT INTO `{table}_instances` (id, kind, host, pid, alive_until)
VALUES ({id}, 'application', {host}, {pid}, UTC_TIMESTAMP(6) + INTERVAL 1 HOUR)
