/* SPDX-License-Identifier: MIT
 *
 * outbox/stranded.c - heads of order keys that wait for a host which is not there. Takes no lock and opens no
 * transaction. They are looked for a page at a time, by id: the heads are not sorted by where their tasks are.
 */
#include "outbox/ops.h"
#include "query.h"

#define WHAT "looking for heads whose host is silent"

struct stranded_unit {
  uint64_t *after, *ids;
  size_t limit, *count;
};

static bool take_heads(struct stranded_unit *u, struct db_result *result, struct err *err) {
  struct db_row row;
  uint64_t id = 0, stranded;
  *u->count = 0;
  for (uint64_t i = 0; i < result->count; i++) {
    if (!db_next(result, &row, 2) || !db_u64(&row, 0, UINT64_MAX, &id) || !db_u64(&row, 1, 1, &stranded))
      return db_unexpected(err, WHAT);
    if (stranded)
      u->ids[(*u->count)++] = id;
  }
  *u->after = result->count < u->limit ? 0 : id;
  return true;
}

static bool stranded_unit(struct store_session *ss, void *arg, struct err *err) {
  struct stranded_unit *u = arg;
  struct db_result result;
  session_begin(ss);
  session_add_no_wait(ss, query_stranded, ARGS(UNSIGNED("after", *u->after), UNSIGNED("limit", u->limit)));
  if (!session_send(ss, WHAT, &result, 1, err))
    return false;
  bool ok = take_heads(u, &result, err);
  db_results_free(&result, 1);
  return ok;
}

enum store_status ops_stranded(struct store_session *ss, uint64_t *after, uint64_t *ids, size_t *count,
                               struct err *err) {
  return session_try(ss, WHAT, stranded_unit, &(struct stranded_unit){after, ids, *count, count}, err);
}
