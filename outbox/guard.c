/* SPDX-License-Identifier: MIT */
#include "outbox/guard.h"

#include "query.h"

void guard_rows(struct store_session *ss, uint64_t rows) {
  session_add(ss, query_guard_rows, ARGS(UNSIGNED("rows", rows)));
}

static void add_leases(struct store_session *ss, const char *statement, const struct shard_lease *leases,
                       size_t count) {
  struct text ours = {0};
  text_leases(&ours, leases, count);
  session_add(ss, statement, ARGS(RAW("leases", ours), UNSIGNED("count", count)));
  text_free(&ours);
}

void guard_leases(struct store_session *ss, const struct shard_lease *leases, size_t count) {
  add_leases(ss, query_guard_leases, leases, count);
}

void guard_ask_shards(struct store_session *ss, const struct shard_lease *leases, size_t count) {
  add_leases(ss, query_guard_shards, leases, count);
}

bool guard_commit(struct store_session *ss, const char *what, size_t n, struct db_result *results, struct err *err) {
  session_add_commit(ss);
  return session_send_commit(ss, what, results, n, n - 1, err);
}
