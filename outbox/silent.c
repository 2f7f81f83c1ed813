/* SPDX-License-Identifier: MIT
 *
 * outbox/silent.c - ends what a daemon that stands still has left open on the server: its transactions, and their
 * locks.
 *
 * Every session has a name that the server keeps for it as long as it lives, made from the instance and a number. So
 * the sessions of an instance are found without any right to see them, on the server that was asked and on no other,
 * and a number that the server has given to somebody else since is none of them: names end with their session. Server
 * time limits end such sessions too, some seconds later (db_conn.c); whatever fails here is left to them.
 */
#include "outbox/db_error.h"
#include "outbox/ops.h"
#include "query.h"

#define WHAT "ending the sessions of an instance that is silent"

struct silent_unit {
  const char *instance;
  struct store_silent *out;
};

static bool read_silent(struct db_result results[2], struct store_silent *out, uint64_t *ids, size_t *count) {
  struct db_row row;
  uint64_t silent;
  *count = 0;
  if (!db_next(&results[0], &row, 1) || !db_u64(&row, 0, 1, &silent))
    return false;
  out->silent = silent;
  while (silent && *count < SESSION_NAMES && db_next(&results[1], &row, 1)) {
    if (!row.fields[0])
      continue;
    if (!db_u64(&row, 0, UINT64_MAX, &ids[(*count)++]))
      return false;
  }
  return true;
}

/* The same session, or none: within the life of this connection no number is given twice. */
static bool end_session(struct store_session *ss, uint64_t id, struct store_silent *out, struct err *err) {
  enum { UNKNOWN_SESSION = 1094 };
  struct db_result result;
  session_begin(ss);
  session_add(ss, query_end_session, ARGS(UNSIGNED("id", id)));
  if (session_send(ss, WHAT, &result, 1, err)) {
    db_results_free(&result, 1);
    out->ended++;
    return true;
  }
  if (err->code == UNKNOWN_SESSION)
    return true;
  out->refused++;
  return db_error_class(err->code) == DB_REFUSED;
}

static bool silent_unit(struct store_session *ss, void *arg, struct err *err) {
  struct silent_unit *u = arg;
  struct db_result results[2];
  uint64_t ids[SESSION_NAMES];
  size_t count;
  const struct sql_arg instance = STRING("instance", u->instance);
  *u->out = (struct store_silent){0};
  session_begin(ss);
  session_add(ss, query_silent, ARGS(instance));
  session_add(ss, query_silent_sessions, ARGS(instance, UNSIGNED("names", SESSION_NAMES)));
  if (!session_send(ss, WHAT, results, 2, err))
    return false;
  bool ok = read_silent(results, u->out, ids, &count) || db_unexpected(err, WHAT);
  db_results_free(results, 2);
  for (size_t i = 0; ok && i < count; i++)
    ok = end_session(ss, ids[i], u->out, err);
  return ok;
}

enum store_status ops_end_silent(struct store_session *ss, const char *instance, struct store_silent *out,
                                 struct err *err) {
  return session_try(ss, WHAT, silent_unit, &(struct silent_unit){instance, out}, err);
}
