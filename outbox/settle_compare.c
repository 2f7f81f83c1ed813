/* SPDX-License-Identifier: MIT */
#include "outbox/settle_compare.h"

#include "outbox/row.h"
#include "outbox/settle_judge.h"
#include "query.h"

#define WHAT "settling"

/* Names those from *at on whose contents are to be compared, as many as may come in one answer, and moves *at behind
 * them. What has more bytes than any of them had when it was sent is another content, and need not come. */
static int64_t name_changed(struct text *ids, struct decision *const *list, size_t count, size_t *at) {
  int64_t most = 0, rows = 0;
  text_clear(ids);
  for (; *at < count; (*at)++) {
    const struct task *sent = list[*at]->sent;
    if (!sent || !list[*at]->changed)
      continue;
    int64_t bytes = (int64_t)(sent->payload.len + sent->headers.len), larger = bytes > most ? bytes : most;
    if (rows++ > 0 && rows * larger > STORE_ANSWER_BYTES)
      break;
    most = larger;
    text_puts(ids, ids->len ? "," : "");
    text_u64(ids, list[*at]->id);
  }
  return most;
}

/* Of the locked rows from *from on that were changed since they were read, finds those that are another task now than
 * what was sent; as many as name_changed() says. */
bool settle_compare_changed(struct store_session *ss, struct decision *const *list, size_t count, size_t *from,
                            struct err *err) {
  struct text columns = {0};
  struct db_result result;
  struct db_row row;
  size_t at = *from;
  int64_t most = name_changed(&ss->part, list, count, from);
  if (ss->part.len == 0)
    return true;
  row_columns(&columns, (struct store_limit){.payload = most, .bytes = most, .content = true});
  session_begin(ss);
  session_add(ss, query_settle_read, ARGS(RAW("columns", columns), RAW("ids", ss->part)));
  text_free(&columns);
  if (!session_send(ss, WHAT, &result, 1, err))
    return false;
  while (db_next(&result, &row, ROW_FIELD_COUNT)) {
    struct task now;
    struct err unreadable = {0}; /* such a row is another than the one that was sent */
    bool ok = row_decode(&row, &now, &unreadable);
    while (at < count && list[at]->id < now.id)
      at++;
    if (at < count && list[at]->id == now.id && list[at]->sent)
      settle_compare(list[at], ok ? &now : NULL, ok && row_same_content(&now, list[at]->sent));
  }
  db_results_free(&result, 1);
  return true;
}

/* Nobody remembers what was sent of it: the row has a digest. */
bool settle_is_awaited(const struct decision *d) { return d->from == TASK_AWAITING && !d->sent; }

/* Of the locked rows whose result did not come, finds those that were changed while it was awaited: they are due again
 * as they are now, whatever was decided. */
bool settle_compare_awaited(struct store_session *ss, struct decision *const *list, size_t count, struct err *err) {
  struct db_result result;
  struct db_row row;
  uint64_t id;
  size_t at = 0;
  text_clear(&ss->part);
  for (size_t i = 0; i < count; i++) {
    if (!settle_is_awaited(list[i]))
      continue;
    text_puts(&ss->part, ss->part.len ? "," : "");
    text_u64(&ss->part, list[i]->id);
  }
  if (ss->part.len == 0)
    return true;
  session_begin(ss);
  session_add(ss, query_settle_awaited, ARGS(RAW("ids", ss->part), WORD("content", ROW_CONTENT)));
  if (!session_send(ss, WHAT, &result, 1, err))
    return false;
  bool ok = true;
  while (ok && db_next(&result, &row, 1)) {
    ok = db_u64(&row, 0, UINT64_MAX, &id) || db_unexpected(err, WHAT);
    while (ok && at < count && list[at]->id < id)
      at++;
    if (ok && at < count && list[at]->id == id)
      list[at]->changed = true;
  }
  db_results_free(&result, 1);
  return ok;
}
