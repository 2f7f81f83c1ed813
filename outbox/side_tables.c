/* SPDX-License-Identifier: MIT */
#include "outbox/side_tables.h"

#include "core/base/clock.h"
#include "outbox/db_error.h"
#include "outbox/server.h"
#include "query.h"

enum { AGAIN_US = 5 * 1000 * 1000 }; /* where asking costs a second */

static bool find_one(struct store_session *ss, unsigned bit, const char *suffix, struct err *err) {
  struct db_result result;
  session_begin(ss);
  session_add_no_wait(ss, query_table_free, ARGS(WORD("suffix", suffix)));
  if (session_send(ss, "looking for tables that are locked", &result, 1, err)) {
    db_results_free(&result, 1);
    ss->locked_tables &= ~bit;
    return true;
  }
  ss->locked_tables |= err->code == DB_LOCK_WAIT ? bit : 0;
  return err->code == DB_LOCK_WAIT;
}

bool side_tables_find(struct store_session *ss, unsigned tables, struct err *err) {
  static const struct {
    unsigned bit;
    const char *suffix;
  } all[] = {{SIDE_TASKS, ""},       {SIDE_HISTORY, "_history"},     {SIDE_ATTEMPTS, "_attempts"},
             {SIDE_HEADS, "_heads"}, {SIDE_INSTANCES, "_instances"}, {SIDE_QUARANTINE, "_quarantine"}};
  for (size_t i = 0; i < ARRAY_LEN(all); i++) {
    if (tables & all[i].bit && !find_one(ss, all[i].bit, all[i].suffix, err))
      return false;
    if (tables & ss->locked_tables & SIDE_TASKS) /* the first */
      break;
  }
  ss->tables_asked_us = clock_mono_us();
  return true;
}

bool side_tables_again(struct store_session *ss, struct err *err) {
  if (!ss->locked_tables || (server_is_mysql(ss->conn) && clock_mono_us() - ss->tables_asked_us < AGAIN_US))
    return true;
  return side_tables_find(ss, ss->locked_tables, err);
}

bool side_tables_usable(struct store_session *ss, unsigned tables) {
  ss->reads_beside |= tables;
  return !(ss->locked_tables & tables);
}
