/* SPDX-License-Identifier: MIT */
#include "outbox/row_sizes.h"

#include "query.h"

enum {
  LARGE_FIRST = 4, /* sizes that are asked for at first: nobody knows whether they are megabytes */
  LARGE_MAX = 32,
  SMALL_MAX = 2048, /* bytes of a row that count as so many without being asked for */
};

/* The rows so far. Small ones are not told one by one: an equal part of `most` is the largest of them, and each counts
 * as that. */
struct sum {
  const uint64_t *ids;
  size_t count, at; /* the next one */
  uint64_t most, small, bytes;
};

static bool add(struct sum *sum, uint64_t bytes) {
  if (sum->at == sum->count || (sum->at > 0 && sum->bytes + bytes > sum->most))
    return false;
  sum->bytes += bytes;
  sum->at++;
  return true;
}

/* Adds the small rows before this one, and itself. */
static bool add_large(struct sum *sum, uint64_t id, uint64_t bytes) {
  while (sum->at < sum->count && sum->ids[sum->at] < id)
    if (!add(sum, sum->small))
      return false;
  return add(sum, bytes);
}

/* Asks about the rows that are left. *full: no more of them fit. *few: there were less than limit large ones. */
static bool add_some(struct store_session *ss, const char *what, struct sum *sum, size_t limit, bool *full, bool *few,
                     struct err *err) {
  struct text ids = {0};
  struct db_result result;
  struct db_row row;
  uint64_t id = 0, bytes = 0;
  bool ok = true;
  for (size_t i = sum->at; i < sum->count; i++) {
    text_puts(&ids, ids.len ? "," : "");
    text_u64(&ids, sum->ids[i]);
  }
  session_begin(ss);
  session_add(ss, query_row_sizes, ARGS(RAW("ids", ids), UNSIGNED("more_than", sum->small), UNSIGNED("limit", limit)));
  text_free(&ids);
  if (!session_send(ss, what, &result, 1, err))
    return false;
  *few = result.count < limit;
  for (*full = false; ok && !*full && db_next(&result, &row, 2); *full = ok && !add_large(sum, id, bytes))
    ok = (db_u64(&row, 0, UINT64_MAX, &id) && db_u64(&row, 1, UINT64_MAX, &bytes)) || db_unexpected(err, what);
  db_results_free(&result, 1);
  return ok;
}

bool row_sizes_fit(struct store_session *ss, const char *what, const uint64_t *ids, size_t count, size_t most,
                   size_t *fit, struct err *err) {
  struct sum sum = {.ids = ids, .count = count, .most = most, .small = SMALL_MAX};
  if (count && most / count < sum.small)
    sum.small = most / count;
  bool full = false, few = count == 1;
  for (size_t limit = LARGE_FIRST; !few && !full && sum.at < count; limit = limit < LARGE_MAX ? limit * 2 : limit)
    if (!add_some(ss, what, &sum, limit, &full, &few, err))
      return false;
  while (!full && add(&sum, sum.small))
    ;
  *fit = sum.at;
  return true;
}
