-- The partner is down for an hour: everything for it that is due in that hour comes after it, before all else and with
-- more attempts. A due_at of NULL means delay_ms after created_at. first_due_at keeps when it was asked for; it comes
-- first because assignments go from left to right.
-- Large tables in steps: repeat the UPDATE until it changes no row. `duebox task reschedule` does that with a count
-- first, a reason, and an audit line with the values from before.
SET @again_at = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR;
UPDATE outbox
SET first_due_at = COALESCE(first_due_at, due_at, created_at + INTERVAL LEAST(GREATEST(delay_ms, 0), 315360000000) * 1000 MICROSECOND),
  due_at = @again_at, priority = 8, max_attempts = 20
WHERE state = 'scheduled' AND route = 'crm.push'
  AND COALESCE(due_at, created_at + INTERVAL LEAST(GREATEST(delay_ms, 0), 315360000000) * 1000 MICROSECOND) < @again_at
ORDER BY id LIMIT 10000;
