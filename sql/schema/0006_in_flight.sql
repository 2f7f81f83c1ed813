-- Tasks that were in flight when 0005 added changed_at. It gave all rows the time of its ALTER, by which each of these
-- counted as changed since it was sent, and was sent again when its result did not come. Recorded as what they are as
-- far as anybody knows: unchanged; and with an epoch, as those that were published without a recorded claim, so that a
-- change from now on counts.
UPDATE `{table}` FORCE INDEX (ix_next) SET changed_at = created_at, claim_epoch = 0
WHERE state IN ('claimed', 'awaiting') AND claim_epoch IS NULL;
