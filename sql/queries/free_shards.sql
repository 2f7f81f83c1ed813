-- Which of the shards' rows nobody else holds at the moment, by itself: its own lock ends with it.
SELECT shard FROM `{table}_shards` WHERE shard IN ({shards})
  /*M! LOCK IN SHARE MODE */ /*!80000 FOR SHARE */ SKIP LOCKED
