/* SPDX-License-Identifier: MIT
 *
 * Settings of routes, housekeeping, heads whose host is silent, row ids, and where a task is: outbox/routes.c,
 * housekeep.c, stranded.c, row_ids.c, and locate of intervene.c. Partitions are days.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "store_double_ops.h"
#include "store_double_rows.h"

#define DAY_US (INT64_C(86400) * 1000000)

struct locate_unit {
  const char *const *names;
  size_t count;
  struct task_place *places;
};

static bool is_number(const char *text, uint64_t *number) {
  *number = 0;
  for (const char *at = text; *at; at++)
    if (*at < '0' || *at > '9' || __builtin_mul_overflow(*number, 10, number) ||
        __builtin_add_overflow(*number, (uint64_t)(*at - '0'), number))
      return false;
  return *text;
}

static const struct row *find_task(struct table *db, const char *name, bool *ambiguous) {
  bool by_row = strncmp(name, "id:", 3) == 0, by_message = strncmp(name, "message_id:", 11) == 0;
  uint64_t id;
  bool number = !by_message && is_number(by_row ? name + 3 : name, &id);
  const char *message_id = by_message ? name + 11 : name;
  const struct row *called = table_find(db, message_id, strlen(message_id));
  const struct row *row = number ? table_row(db, id) : called;
  *ambiguous = number && called && called != row && (row || by_row);
  return row ? row : called;
}

static bool locate_unit(struct store_session *ss, void *arg, struct err *err) {
  struct locate_unit *u = arg;
  if (!double_begin(ss, SCRIPT_READS, 1, err))
    return false;
  for (size_t i = 0; i < u->count; i++) {
    bool ambiguous;
    const struct row *row = find_task(ss->db, u->names[i], &ambiguous);
    struct task_place *place = &u->places[i];
    *place = (struct task_place){.found = row != NULL, .ambiguous = ambiguous};
    if (!row)
      continue;
    place->id = row->id;
    place->shard = row->shard;
    place->state = row->state;
    place->maybe_sent = maybe_sent(ss->db, row);
    place->expires_us = row->expires_us == TIME_NULL ? 0 : row->expires_us;
    (void)snprintf(place->route, sizeof place->route, "%s", row->text[ROW_ROUTE]->data);
  }
  return double_end(ss, err);
}

enum store_status double_locate(struct store_session *ss, const char *const *names, size_t count,
                                struct task_place *places, struct err *err) {
  return double_run(ss, "finding a task", locate_unit, &(struct locate_unit){names, count, places}, err);
}

/* --- routes --- */

static bool settings_unit(struct store_session *ss, void *arg, struct err *err) {
  size_t *count = arg;
  const struct list *routes = &ss->db->data.routes;
  if (!double_begin(ss, SCRIPT_READS, 1, err))
    return false;
  free(ss->settings);
  ss->settings = calloc(routes->count + 1, sizeof *ss->settings);
  if (!ss->settings)
    world_fail("no memory for settings");
  for (*count = 0; *count < routes->count; ++*count)
    ss->settings[*count] = ((const struct route_entry *)routes->at[*count])->setting;
  return double_end(ss, err);
}

enum store_status double_route_settings(struct store_session *ss, const struct route_setting **settings, size_t *count,
                                        struct err *err) {
  *count = 0;
  enum store_status status = double_run(ss, "reading route settings", settings_unit, count, err);
  *settings = ss->settings;
  return status;
}

struct set_route_unit {
  const struct route_setting *setting;
  const char *actor;
};

static bool was_set_since(const struct table *db, const struct route_setting *setting) {
  for (size_t i = 0; i < db->data.routes.count; i++) {
    const struct route_setting *it = &((const struct route_entry *)db->data.routes.at[i])->setting;
    if (strcmp(it->route, setting->route) == 0)
      return setting->changed_us && it->changed_us > setting->changed_us;
  }
  return false;
}

static bool set_route_unit(struct store_session *ss, void *arg, struct err *err) {
  const struct set_route_unit *u = arg;
  if (!double_begin(ss, SCRIPT_READS, 2, err))
    return false;
  (void)double_tx(ss);
  if (!double_lock(ss, LOCK_ROUTE, table_key(u->setting->route), false, true, err))
    return false;
  bool since = was_set_since(ss->db, u->setting);
  if (!double_end(ss, err))
    return false;
  if (since)
    return double_rollback(ss, err);
  if (!double_begin(ss, SCRIPT_COMMITS, 3, err))
    return false;
  struct route_entry *route = record_new(&ss->db->data.routes);
  route->setting = *u->setting;
  route->setting.changed_us = table_clock(ss->db);
  tx_add(double_tx(ss), &ss->db->data.routes, route);
  struct audit_line *line = record_new(&ss->db->data.audit);
  blob_put(&line->actor, u->actor ? u->actor : "");
  blob_put(&line->reason, u->setting->reason);
  blob_put(&line->filter, u->setting->route);
  line->verb = u->setting->paused ? "route pause" : "route resume";
  line->changed = 1;
  line->at_us = table_clock(ss->db);
  tx_add(double_tx(ss), &ss->db->data.audit, line);
  return double_commit(ss, err);
}

enum store_status double_set_route(struct store_session *ss, const struct route_setting *setting, const char *actor,
                                   struct err *err) {
  return double_run(ss, "setting a route", set_route_unit, &(struct set_route_unit){setting, actor}, err);
}

/* --- housekeeping --- */

struct housekeep_unit {
  int64_t attempts_keep_ms, now_us;
};

/* Records that are older than that go. */
static void forget(struct list *list, int64_t before_us, int64_t (*time_of)(const void *record)) {
  for (size_t i = list->count; i-- > 0;)
    if (time_of(list->at[i]) < before_us)
      list_remove(list, i);
}

static int64_t keep_until_of(const void *record) { return ((const struct row *)record)->keep_until_us; }
static int64_t finished_of(const void *record) { return ((const struct line *)record)->finished_us; }
static int64_t received_of(const void *record) { return ((const struct quarantined *)record)->received_us; }
static int64_t audited_of(const void *record) { return ((const struct audit_line *)record)->at_us; }

/* DDL that waits for nobody. */
static bool drop_partitions(struct store_session *ss, enum lock_kind table, struct list *list, int64_t until_us,
                            int64_t (*time_of)(const void *record), struct err *err) {
  if (!double_begin(ss, SCRIPT_COMMITS, 3, err) || !double_lock(ss, table, 0, false, false, err))
    return false;
  forget(list, until_us - until_us % DAY_US, time_of);
  return double_end(ss, err);
}

static bool keep_history(struct store_session *ss, void *arg, struct err *err) {
  const struct housekeep_unit *u = arg;
  return drop_partitions(ss, LOCK_HISTORY, &ss->db->data.history, u->now_us, keep_until_of, err);
}

static bool keep_attempts(struct store_session *ss, void *arg, struct err *err) {
  const struct housekeep_unit *u = arg;
  return drop_partitions(ss, LOCK_ATTEMPTS, &ss->db->data.attempts, u->now_us - u->attempts_keep_ms * 1000, finished_of,
                         err);
}

static bool delete_quarantine(struct store_session *ss, void *arg, struct err *err) {
  const struct housekeep_unit *u = arg;
  if (!double_begin(ss, SCRIPT_COMMITS, 1, err))
    return false;
  forget(&ss->db->data.quarantine, table_clock(ss->db) - u->attempts_keep_ms * 1000, received_of);
  return double_end(ss, err);
}

static bool delete_audit(struct store_session *ss, void *arg, struct err *err) {
  const struct housekeep_unit *u = arg;
  if (!double_begin(ss, SCRIPT_COMMITS, 1, err))
    return false;
  forget(&ss->db->data.audit, table_clock(ss->db) - u->attempts_keep_ms * 1000, audited_of);
  return double_end(ss, err);
}

static bool forget_instances(struct store_session *ss, void *arg, struct err *err) {
  struct list *list = &ss->db->data.instances;
  (void)arg;
  if (!double_begin(ss, SCRIPT_COMMITS, 4, err))
    return false;
  for (size_t i = list->count; i-- > 0;) {
    const struct instance_entry *it = list->at[i];
    if (it->alive_until_us < table_clock(ss->db) - DAY_US &&
        !double_locked(ss, LOCK_INSTANCE, table_key(it->id->data), false))
      list_remove(list, i);
  }
  return double_end(ss, err);
}

static bool is_over(struct table *db, const struct head_row *head) {
  const struct row *task = table_row(db, head->id);
  return !task || !blob_same(task->text[ROW_ROUTE], head->route) ||
         !blob_same(task->text[ROW_ORDER_KEY], head->order_key) ||
         (head->message_id->len &&
          (!blob_same(task->text[ROW_MESSAGE_ID], head->message_id) || task->failures != head->failures));
}

static bool forget_heads(struct store_session *ss, void *arg, struct err *err) {
  struct list *list = &ss->db->data.heads;
  (void)arg;
  if (!double_begin(ss, SCRIPT_COMMITS, 1, err) || !double_lock(ss, LOCK_HEADS, 0, true, true, err))
    return false;
  for (size_t i = list->count; i-- > 0;)
    if (is_over(ss->db, list->at[i]))
      list_remove(list, i);
  return double_end(ss, err);
}

enum store_status double_housekeep(struct store_session *ss, int64_t longest_keep_ms, int64_t attempts_keep_ms,
                                   struct err *err) {
  static const struct {
    enum store_status (*run)(struct store_session *, const char *, unit_fn *, void *, struct err *);
    unit_fn *unit;
  } steps[] = {{double_try, keep_history}, {double_try, keep_attempts},    {double_run, delete_quarantine},
               {double_run, delete_audit}, {double_run, forget_instances}, {double_run, forget_heads}};
  struct housekeep_unit unit = {.attempts_keep_ms = attempts_keep_ms};
  (void)longest_keep_ms;
  enum store_status first = double_now(ss, &unit.now_us, err);
  int64_t apart_us = unit.now_us - clock_wall_us();
  if (first == STORE_OK && (apart_us >= DAY_US || apart_us <= -DAY_US)) {
    err_set(err, 0, "housekeeping: the database's clock and ours differ by %lld hours",
            (long long)(apart_us / (DAY_US / 24)));
    return STORE_REFUSED;
  }
  for (size_t i = 0; first != STORE_DOWN && i < sizeof steps / sizeof steps[0]; i++) {
    struct err step = {0};
    enum store_status status = steps[i].run(ss, "housekeeping", steps[i].unit, &unit, &step);
    if (first == STORE_OK && status != STORE_OK) {
      first = status;
      if (err)
        *err = step;
    }
  }
  return first;
}

/* --- heads whose host is silent --- */

struct stranded_unit {
  uint64_t *after, *ids;
  size_t limit, *count;
};

static bool is_paused(const struct table *db, const struct blob *route) {
  for (size_t i = 0; i < db->data.routes.count; i++) {
    const struct route_setting *setting = &((const struct route_entry *)db->data.routes.at[i])->setting;
    if (setting->paused && blob_is(route, setting->route, strlen(setting->route)))
      return true;
  }
  return false;
}

static bool is_stranded(const struct table *db, const struct head_row *head) {
  const struct row *task;
  return head_lives(db, head, &task) && row_is_in(task, TASK_SCHEDULED, SHARD_BOUND) &&
         !host_lives(db, task->text[ROW_TARGET_HOST]) && !is_paused(db, task->text[ROW_ROUTE]);
}

static const struct head_row *next_head(const struct table *db, uint64_t after) {
  const struct head_row *next = NULL;
  for (size_t i = 0; i < db->data.heads.count; i++) {
    const struct head_row *head = db->data.heads.at[i];
    if (head->id > after && (!next || head->id < next->id))
      next = head;
  }
  return next;
}

static bool stranded_unit(struct store_session *ss, void *arg, struct err *err) {
  struct stranded_unit *u = arg;
  const struct head_row *head;
  uint64_t at = *u->after;
  size_t passed = 0, found = 0;
  if (!double_begin(ss, SCRIPT_READS, 1, err) || !double_lock(ss, LOCK_HEADS, 0, true, false, err))
    return false;
  for (; passed < u->limit && (head = next_head(ss->db, at)); passed++) {
    at = head->id;
    if (is_stranded(ss->db, head))
      u->ids[found++] = at;
  }
  double_cost(ss, passed, passed);
  if (!double_end(ss, err))
    return false;
  *u->count = found;
  *u->after = passed < u->limit ? 0 : at;
  return true;
}

enum store_status double_stranded(struct store_session *ss, uint64_t *after, uint64_t *ids, size_t *count,
                                  struct err *err) {
  return double_try(ss, "looking for heads whose host is silent", stranded_unit,
                    &(struct stranded_unit){after, ids, *count, count}, err);
}

/* --- row ids --- */

static const uint64_t end = UINT64_C(1) << 63;

struct row_ids_unit {
  int64_t waited_us;
  bool reset;
  uint64_t far;
};

/* Where the head of that id is; the number of heads = nowhere. */
static size_t head_at(const struct table *db, uint64_t id) {
  size_t i = 0;
  while (i < db->data.heads.count && ((const struct head_row *)db->data.heads.at[i])->id != id)
    i++;
  return i;
}

static bool is_head(const struct table *db, uint64_t id) { return head_at(db, id) < db->data.heads.count; }

static bool rests(const struct table *db, const struct row *row) {
  if (row->state == TASK_SCHEDULED)
    return row_next_us(row) > table_clock(db) + 10 * INT64_C(1000000) ||
           (row->shard == SHARD_BOUND && row->text[ROW_ORDER_KEY]->len == 0);
  return row->state != TASK_CLAIMED;
}

static bool may_move(const struct table *db, const struct row *row, int64_t waited_us) {
  bool due_may = waited_us >= 15 * INT64_C(1000000), all_may = waited_us >= 45 * INT64_C(1000000);
  return row->id >= STORE_ID_FAR &&
         (all_may || (due_may && row->state != TASK_CLAIMED) || (rests(db, row) && !is_head(db, row->id)));
}

static void move_head(struct table *db, uint64_t from, uint64_t to) {
  struct list *heads = &db->data.heads;
  if (is_head(db, to))
    list_remove(heads, head_at(db, to));
  if (!is_head(db, from))
    return;
  size_t at = head_at(db, from);
  struct head_row *moved = record_copy(heads, heads->at[at]);
  moved->id = to;
  list_remove(heads, at);
  list_add(heads, heads->count, moved);
}

static void move_lines(struct table *db, const struct row *row, uint64_t to) {
  struct list *lines = &db->data.attempts;
  for (size_t i = 0; i < lines->count; i++) {
    const struct line *line = lines->at[i];
    if (line->task_id != row->id || !blob_same(line->message_id, row->text[ROW_MESSAGE_ID]))
      continue;
    struct line *moved = record_copy(lines, line);
    moved->task_id = to;
    list_remove(lines, i);
    list_add(lines, i, moved);
  }
}

static void move_row(struct store_session *ss, size_t at, uint64_t to) {
  struct table *db = ss->db;
  struct list *rows = &db->data.rows;
  struct row *moved = record_copy(rows, rows->at[at]);
  move_head(db, moved->id, to);
  move_lines(db, moved, to);
  if (moved->state == TASK_SCHEDULED && moved->shard != SHARD_BOUND && row_next_us(moved) <= table_clock(db) &&
      moved->recoveries == 0)
    moved->recoveries = 1;
  if (moved->state == TASK_CLAIMED) {
    moved->state = TASK_SCHEDULED;
    moved->lease_until_us = TIME_NULL;
    blob_set(&moved->text[ROW_CLAIMED_BY], NULL, 0);
  }
  moved->id = to;
  list_remove(rows, at);
  for (at = 0; at < rows->count && ((const struct row *)rows->at[at])->id < to;)
    at++;
  list_add(rows, at, moved);
  journal_add(db, JOURNAL_CHANGED, ss->store->machine ? ss->store->machine->number : 0, moved);
}

static uint64_t largest_ordinary(const struct table *db) {
  uint64_t largest = 0;
  for (size_t i = 0; i < db->data.rows.count; i++) {
    const struct row *row = db->data.rows.at[i];
    if (row->id < STORE_ID_FAR && row->id > largest)
      largest = row->id;
  }
  return largest;
}

/* Gives rows with far ids the ids after the largest ordinary one, in their order, which stays. */
static bool put_right(struct store_session *ss, void *arg, struct err *err) {
  struct row_ids_unit *u = arg;
  struct table *db = ss->db;
  struct list *rows = &db->data.rows;
  u->reset = false;
  u->far = 0;
  if (!double_begin(ss, SCRIPT_READS, 1, err))
    return false;
  if (db->data.next_id < end)
    return double_end(ss, err);
  uint64_t next = largest_ordinary(db) + 1;
  for (size_t i = 0; i < rows->count; i++) {
    const struct row *row = rows->at[i];
    if (may_move(db, row, u->waited_us) && !double_locked(ss, LOCK_ROW, row->id, false))
      move_row(ss, i, next++);
  }
  for (size_t i = 0; i < rows->count; i++) {
    uint64_t id = ((const struct row *)rows->at[i])->id;
    u->far = id >= STORE_ID_FAR ? id : u->far;
  }
  u->reset = !u->far;
  if (u->reset) /* otherwise of tasks that may be on their way */
    db->data.next_id = next;
  return double_end(ss, err);
}

enum store_status double_row_ids(struct store_session *ss, int64_t waited_us, bool *reset, uint64_t *far,
                                 struct err *err) {
  struct row_ids_unit unit = {.waited_us = waited_us};
  enum store_status status = double_try(ss, "row ids", put_right, &unit, err);
  *reset = unit.reset && status == STORE_OK;
  *far = unit.far;
  return status;
}
