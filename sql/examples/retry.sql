-- Dead tasks of a route come back: due now, with a fresh budget. The message id stays and attempts go on counting, so no
-- consumer sees a number twice. A `done` of an attempt before counts only for those that died because no result came, until
-- they are sent again: this changed_at says so. Leave it out, with its value, where you change what comes back. An expires_at that is still to come stays; one that is over is left
-- out, or nothing would be sent. Only what was copied is deleted from the history, whatever dies
-- meanwhile: it has this due_at. A thousand at a time, to be run again until none is copied: on MariaDB the INSERTs of
-- applications wait for the INSERT .. SELECT (12 s for 40,000). A task stays dead while another lives that has its
-- dedup_key, message_id or id; of several dead ones with the same one comes back at a time, the first. One with an id from
-- 2^61 on stays dead too: the id might end the INSERTs of everybody (README.md, Users). `duebox dead retry` gives a task
-- another id where its own is no use, and takes what outbox_attempts has of it along. The LIMIT of the DELETE is for sessions with
-- sql_safe_updates. That command does all of
-- this by itself.
SET @back_at = UTC_TIMESTAMP(6);
START TRANSACTION;
INSERT IGNORE INTO outbox (id, message_id, route, payload, headers, task_key, due_at, priority, order_key, dedup_key, max_attempts,
  timeout_ms, expires_at, target_host, shard, created_at, changed_at, attempt, revision, error_class, last_error, progress,
  checkpoint)
SELECT id, message_id, route, payload, headers, task_key, @back_at, priority, order_key, dedup_key, max_attempts,
  timeout_ms, IF(expires_at > @back_at, expires_at, NULL), target_host, shard, created_at,
  IF(error_class = 'result.timeout', created_at - INTERVAL 1 MICROSECOND, @back_at), attempt, revision, error_class, last_error, progress, checkpoint
FROM outbox_history AS h WHERE state = 'dead' AND route = 'crm.push' AND id < 2305843009213693952
  AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.id = h.id)
  AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.message_id = h.message_id)
  AND NOT EXISTS (SELECT 1 FROM outbox o
    WHERE o.dedup_key = h.dedup_key /*M! COLLATE utf8mb4_nopad_bin */ /*!80017 COLLATE utf8mb4_0900_bin */)
ORDER BY id LIMIT 1000 FOR UPDATE;
DELETE FROM outbox_history WHERE state = 'dead' AND route = 'crm.push' AND EXISTS (
  SELECT 1 FROM outbox o
  WHERE o.id = outbox_history.id AND o.message_id = outbox_history.message_id AND o.due_at = @back_at)
LIMIT 1000000000;
COMMIT;
