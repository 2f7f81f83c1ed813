-- Heads under ids that no task has and that are given out next.
DELETE FROM `{table}_heads` WHERE head_id > {last} AND head_id <= {last} + {count}
