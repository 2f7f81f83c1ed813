/* SPDX-License-Identifier: MIT */
#include "outbox/quarantine.h"

#include "query.h"

#define WHAT "storing results in quarantine"

bool quarantine_flush(struct quarantine *quarantine, struct err *err) {
  struct db_result results[DB_RESULTS_MAX];
  size_t n = quarantine->count;
  quarantine->count = 0;
  if (n == 0)
    return true;
  if (!session_send(quarantine->ss, WHAT, results, n, err))
    return false;
  db_results_free(results, n);
  session_begin(quarantine->ss);
  return true;
}

/* A few at a time: one body may take half of what a packet allows. */
bool quarantine_add(struct quarantine *quarantine, const struct store_result *result, const char *reason,
                    struct err *err) {
  enum { SOURCE_MAX = 64, ORIGIN_MAX = 255, REASON_MAX = 512 };
  struct store_session *ss = quarantine->ss;
  size_t most = ss->conn->max_packet / 4;
  const struct sql_arg body = {.name = "body",
                               .kind = SQL_STRING,
                               .string = result->body.data,
                               .len = result->body.len < most ? result->body.len : most};
  void (*add)(struct store_session *, const char *, const struct sql_arg *) =
      quarantine->no_wait ? session_add_no_wait : session_add;
  add(ss, query_quarantine,
      ARGS(CLEAN("source", result->source ? result->source : "", SOURCE_MAX),
           CLEAN("origin", result->origin ? result->origin : "", ORIGIN_MAX), CLEAN("reason", reason, REASON_MAX),
           body));
  quarantine->count++;
  bool full = quarantine->count == DB_RESULTS_MAX || ss->script.len >= most;
  return !full || quarantine_flush(quarantine, err);
}
