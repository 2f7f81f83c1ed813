-- Rows that are claimed in our name, under the leases that we have now: those of earlier ones are lost (lost_claims.sql).
SELECT {columns} FROM `{table}` FORCE INDEX (ix_next)
WHERE state = 'claimed' AND shard IN ({shards}) AND claimed_by = {instance} AND id > {after}
  AND COALESCE(claim_epoch, 0) >= CASE shard {epochs} END
ORDER BY id LIMIT {limit}
