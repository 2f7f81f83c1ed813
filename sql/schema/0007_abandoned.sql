-- Until when a shard was last in the hands of a daemon that vanished with claims in its memory: what was due by then and is
-- still here may have been sent. Written by whoever takes the shard over; it stays when that one has gone too.
ALTER TABLE `{table}_shards` ADD COLUMN abandoned_at DATETIME(6) NULL;

-- Versions before did not record it: whatever was due by now may have been in such hands.
UPDATE `{table}_shards` SET abandoned_at = UTC_TIMESTAMP(6) WHERE epoch > 0 AND shard <> 63 AND abandoned_at IS NULL;
