/* SPDX-License-Identifier: MIT
 *
 * What applications and operators do to the tables by plain SQL; and what happens to the server.
 */
#include <stdio.h>
#include <string.h>

#include "table_tx.h"

/* --- users --- */

enum { USER_WAIT_US = 50 * 1000 * 1000 };

struct tx *user_begin(struct table *db) {
  table_pump(db);
  struct tx *tx = tx_begin(db, NULL);
  tx->dead = world_now_us() < db->down_until_us;
  return tx;
}

struct wanted {
  struct tx *tx;
  enum lock_kind kind;
  uint64_t key;
  bool shared;
};

/* As a metadata lock says: nobody else has an open transaction with rows of the table. */
static bool is_unused(struct table *db, const struct tx *by) {
  table_pump(db);
  for (size_t i = 0; i < db->lock_count; i++)
    if ((db->locks[i].kind == LOCK_ROW || db->locks[i].kind == LOCK_ENTRY) && (!by || db->locks[i].tx != by->number))
      return false;
  for (int i = 0; i < db->open_end; i++)
    if (db->open[i] && db->open[i] != by && db->open[i]->count > 0)
      return false;
  return true;
}

static bool is_free(void *arg) {
  const struct wanted *wanted = arg;
  struct table *db = wanted->tx->db;
  table_pump(db);
  if (wanted->kind == LOCK_ROWS && !wanted->tx->dead && !is_unused(db, wanted->tx))
    return false;
  return wanted->tx->dead || table_lock(db, wanted->tx, wanted->kind, wanted->key, wanted->shared);
}

bool user_lock(struct tx *tx, enum lock_kind kind, uint64_t key, bool shared) {
  struct wanted wanted = {tx, kind, key, shared};
  world_point(POINT_USER, key);
  return is_free(&wanted) || world_wait(is_free, &wanted, world_now_us() + USER_WAIT_US);
}

struct row *user_insert(struct tx *tx, const char *route, const char *payload, size_t len) {
  struct table *db = tx->db;
  struct row *row = record_new(&db->data.rows);
  char message_id[STORE_ID_MAX];
  *row = (struct row){.shard = SHARD_DEFAULT,
                      .priority = STORE_PRIORITY,
                      .created_us = table_clock(db),
                      .changed_us = table_clock(db),
                      .due_us = table_clock(db),
                      .expires_us = TIME_NULL,
                      .lease_until_us = TIME_NULL,
                      .first_due_us = TIME_NULL,
                      .published_us = TIME_NULL,
                      .progress = -1,
                      .move_to_shard = -1};
  (void)snprintf(message_id, sizeof message_id, "%016llx", (unsigned long long)chance_u64(&db->chance));
  blob_put(&row->text[ROW_MESSAGE_ID], message_id);
  blob_put(&row->text[ROW_ROUTE], route);
  blob_set(&row->text[ROW_PAYLOAD], payload, len);
  blob_put(&row->text[ROW_HEADERS], "{}");
  blob_put(&row->text[ROW_TASK_KEY], "");
  blob_put(&row->text[ROW_ORDER_KEY], "");
  blob_put(&row->text[ROW_TARGET_HOST], "");
  tx_put_row(tx, row, TASK_EVENTS);
  return row;
}

struct row *user_update(struct tx *tx, uint64_t id) {
  struct table *db = tx->db;
  struct row *image = tx_image(tx, id);
  if (image)
    return image;
  if (!user_lock(tx, LOCK_ROW, id, false) || !user_lock(tx, LOCK_ENTRY, id, false))
    return NULL;
  const struct row *row = table_row(db, id);
  if (!row)
    return NULL;
  image = record_copy(&db->data.rows, row);
  image->changed_us = table_clock(db);
  tx_put_row(tx, image, TASK_EVENTS);
  return image;
}

bool user_delete(struct tx *tx, uint64_t id) {
  if (!user_lock(tx, LOCK_ROW, id, false) || !user_lock(tx, LOCK_ENTRY, id, false))
    return false;
  const struct row *row = table_row(tx->db, id);
  if (row)
    tx_end_row(tx, row, NULL, TASK_EVENTS, TASK_STATES);
  return row;
}

bool user_commit(struct tx **tx) {
  struct table *db = (*tx)->db;
  world_point(POINT_USER, 0);
  table_pump(db);
  bool done = !(*tx)->dead && world_now_us() >= db->down_until_us && !db->read_only;
  if (done) {
    tx_tell(*tx);
    world_sleep(chance_between(&db->chance, db->commit_low_us, db->commit_high_us));
    table_pump(db);
    done = !(*tx)->dead;
  }
  if (done)
    tx_commit(tx);
  else
    tx_rollback(tx);
  return done;
}

void user_rollback(struct tx **tx) { tx_rollback(tx); }

uint64_t user_put(struct table *db, const char *route, const char *payload, const char *message_id) {
  struct tx *tx = user_begin(db);
  struct row *row = user_insert(tx, route, payload, strlen(payload));
  uint64_t id = row->id;
  if (message_id)
    blob_put(&row->text[ROW_MESSAGE_ID], message_id);
  return user_commit(&tx) ? id : 0;
}

/* --- faults --- */

void table_kill_sessions(struct table *db) { table_drop_all(db); }

void table_down(struct table *db, int64_t until_us) {
  table_pump(db);
  db->down_until_us = until_us;
  table_drop_all(db);
  table_drop_users(db);
}

void table_machine_gone(struct table *db, const struct machine *machine) {
  table_pump(db);
  for (int i = 0; i < CONNECTIONS_MAX; i++)
    if (db->connections[i] && db->connections[i]->machine == machine)
      connection_close(db, &(struct connection *){db->connections[i]});
}

struct data *table_backup(struct table *db) {
  table_pump(db);
  struct data *backup = table_alloc(sizeof *backup);
  data_copy(backup, &db->data);
  return backup;
}

void table_backup_free(struct data **backup) {
  if (*backup)
    data_clear(*backup);
  table_free(*backup);
  *backup = NULL;
}

static const struct row *row_of(const struct data *data, uint64_t id) {
  size_t at = row_place(data, id);
  const struct row *row = at < data->rows.count ? data->rows.at[at] : NULL;
  return row && row->id == id ? row : NULL;
}

/* What those have of rows that these have not, or have in another version. */
static void tell_changes(struct table *db, const struct data *before, const struct data *after) {
  journal_add(db, JOURNAL_SERVER, 0, NULL);
  for (size_t i = 0; i < before->rows.count; i++) {
    const struct row *old = before->rows.at[i], *new = row_of(after, old->id);
    if (!new || !blob_same(new->text[ROW_MESSAGE_ID], old->text[ROW_MESSAGE_ID]))
      journal_add(db, JOURNAL_LOST, 0, old);
  }
  for (size_t i = 0; i < after->rows.count; i++) {
    const struct row *new = after->rows.at[i], *old = row_of(before, new->id);
    if (!old || !blob_same(new->text[ROW_MESSAGE_ID], old->text[ROW_MESSAGE_ID]) || old->state != new->state ||
        old->attempt != new->attempt || old->changed_us != new->changed_us)
      journal_add(db, JOURNAL_BACK, 0, new);
  }
}

void table_fail_over(struct table *db, const struct data *backup, bool other_server) {
  int64_t down_until_us = db->down_until_us;
  table_down(db, down_until_us);
  tell_changes(db, &db->data, backup);
  data_clear(&db->data);
  data_copy(&db->data, backup);
  db->server += other_server;
}

void table_altered(struct table *db) {
  for (int i = 0; i < CONNECTIONS_MAX; i++)
    if (db->connections[i] && db->connections[i]->feed)
      db->connections[i]->feed->altered = true;
}

static bool may_truncate(void *db) { return is_unused(db, NULL); }

/* Once it has waited it asks again: another strand, which had waited for the same row, may have run before it and hold
 * that now. */
bool table_truncate(struct table *db) {
  int64_t until_us = world_now_us() + USER_WAIT_US;
  while (!may_truncate(db))
    if (!world_wait(may_truncate, db, until_us))
      return false;
  world_trace("the table is truncated");
  for (size_t i = 0; i < db->data.rows.count; i++)
    journal_add(db, JOURNAL_DELETED, 0, db->data.rows.at[i]);
  list_clear(&db->data.rows);
  db->data.next_id = 1;
  table_altered(db);
  return true;
}
