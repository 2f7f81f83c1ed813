/* SPDX-License-Identifier: MIT
 *
 * outbox/routes.c - what operators have set for routes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "outbox/db_error.h"
#include "outbox/ops.h"
#include "query.h"

#define WHAT "reading route settings"

static bool reserve_settings(struct store_session *ss, size_t count, struct err *err) {
  if (count <= ss->setting_cap)
    return true;
  struct route_setting *settings = realloc(ss->settings, count * sizeof *settings);
  if (!settings)
    return err_set(err, DB_E_NO_MEMORY, "no memory for %zu routes; %s", count, db_error_cure(DB_E_NO_MEMORY));
  ss->settings = settings;
  ss->setting_cap = count;
  return true;
}

static bool read_setting(const struct db_row *row, struct route_setting *out) {
  uint64_t paused;
  if (!db_copy(row, 0, out->route, sizeof out->route) || !db_u64(row, 1, 1, &paused) ||
      !db_time(row, 3, &out->changed_us))
    return false;
  /* The column is 255 characters, which may be more bytes; people read it, so it is cut. */
  size_t len = row->fields[2] ? row->lengths[2] : 0;
  snprintf(out->reason, sizeof out->reason, "%.*s", (int)(len < sizeof out->reason ? len : sizeof out->reason - 1),
           row->fields[2] ? row->fields[2] : "");
  out->paused = paused;
  return true;
}

static bool settings_unit(struct store_session *ss, void *arg, struct err *err) {
  size_t *count = arg;
  struct db_result result;
  struct db_row row;
  session_begin(ss);
  session_add(ss, query_route_settings, NO_ARGS);
  if (!session_send(ss, WHAT, &result, 1, err))
    return false;
  bool ok = reserve_settings(ss, result.count, err);
  *count = 0;
  while (ok && *count < result.count && db_next(&result, &row, 4))
    ok = read_setting(&row, &ss->settings[(*count)++]) || db_unexpected(err, WHAT);
  db_results_free(&result, 1);
  return ok;
}

enum store_status ops_route_settings(struct store_session *ss, const struct route_setting **settings, size_t *count,
                                     struct err *err) {
  *count = 0;
  enum store_status status = session_try(ss, WHAT, settings_unit, count, err);
  *settings = ss->settings;
  return status;
}

struct set_route_unit {
  const struct route_setting *setting;
  const char *actor;
};

/* The old setting as JSON, NULL text when there was none. Locks the row until the commit. */
static bool read_before(struct store_session *ss, const char *route, struct text *before, struct err *err) {
  struct db_result results[2];
  struct db_row row;
  session_begin_transaction(ss);
  session_add_no_wait(ss, query_route_before, ARGS(STRING("route", route)));
  if (!session_send(ss, "setting a route", results, 2, err))
    return false;
  uint64_t paused;
  bool ok = true;
  if (db_next(&results[1], &row, 2)) {
    ok = db_u64(&row, 0, 1, &paused) || db_unexpected(err, "setting a route");
    text_puts(before, ok && paused ? "[{\"paused\": 1" : "[{\"paused\": 0");
    text_puts(before, ", \"reason\": ");
    text_json(before, row.fields[1], row.lengths[1], SIZE_MAX);
    text_puts(before, "}]");
  }
  db_results_free(results, 2);
  return ok;
}

/* What was read before is locked. */
static bool set_since(struct store_session *ss, const struct route_setting *setting, bool *since, struct err *err) {
  struct db_result result;
  struct db_row row;
  uint64_t count = 0;
  *since = false;
  if (!setting->changed_us)
    return true;
  session_begin(ss);
  session_add(ss, query_route_since, ARGS(STRING("route", setting->route), TIME("since", setting->changed_us)));
  if (!session_send(ss, "setting a route", &result, 1, err))
    return false;
  bool ok = (db_next(&result, &row, 1) && db_u64(&row, 0, UINT64_MAX, &count)) || db_unexpected(err, "setting a route");
  db_results_free(&result, 1);
  *since = count > 0;
  return ok;
}

static bool set_route_unit(struct store_session *ss, void *arg, struct err *err) {
  struct set_route_unit *u = arg;
  struct db_result results[2];
  struct text before = {0};
  bool since = false;
  bool ok = read_before(ss, u->setting->route, &before, err) && set_since(ss, u->setting, &since, err);
  if (!ok || since) {
    text_free(&before);
    return ok && session_rollback(ss, "setting a route", err);
  }
  session_begin(ss);
  session_add_no_wait(ss, query_set_route,
                      ARGS(STRING("route", u->setting->route), UNSIGNED("paused", u->setting->paused),
                           CLEAN("reason", u->setting->reason, 255), CLEAN("actor", u->actor ? u->actor : "", 64)));
  session_audit(ss, u->actor, u->setting->paused ? "route pause" : "route resume", u->setting->reason,
                u->setting->route, 1, &before);
  text_free(&before);
  if (!session_send(ss, "setting a route", results, 2, err))
    return false;
  db_results_free(results, 2);
  return session_commit(ss, "setting a route", err);
}

/* Waits for nothing: the keeper has to say that it lives, and comes again in a second. */
enum store_status ops_set_route(struct store_session *ss, const struct route_setting *setting, const char *actor,
                                struct err *err) {
  return session_try(ss, "setting a route", set_route_unit, &(struct set_route_unit){setting, actor}, err);
}
