/* SPDX-License-Identifier: MIT
 *
 * Transactions, locks and sessions of the simulated database.
 */
#include "table_tx.h"

#include <stdio.h>
#include <string.h>

/* --- locks --- */

bool table_lock(struct table *db, struct tx *tx, enum lock_kind kind, uint64_t key, bool shared) {
  struct lock *own = NULL;
  uint64_t number = tx ? tx->number : 0;
  for (size_t i = 0; i < db->lock_count; i++) {
    struct lock *lock = &db->locks[i];
    if (lock->kind != kind || lock->key != key)
      continue;
    if (lock->tx == number)
      own = lock;
    else if (!lock->shared || !shared)
      return false;
  }
  if (!tx)
    return true;
  if (own) {
    own->shared = own->shared && shared;
    return true;
  }
  db->locks = table_grow(db->locks, db->lock_count, &db->lock_cap, sizeof *db->locks);
  db->locks[db->lock_count++] = (struct lock){.tx = number, .kind = kind, .key = key, .shared = shared};
  return true;
}

static void unlock_all(struct table *db, uint64_t tx) {
  size_t kept = 0;
  for (size_t i = 0; i < db->lock_count; i++)
    if (db->locks[i].tx != tx)
      db->locks[kept++] = db->locks[i];
  db->lock_count = kept;
}

/* --- transactions --- */

struct tx *tx_begin(struct table *db, struct connection *conn) {
  int slot = 0;
  while (slot < TRANSACTIONS_MAX && db->open[slot])
    slot++;
  if (slot == TRANSACTIONS_MAX)
    world_fail("more than %d open transactions", TRANSACTIONS_MAX);
  struct tx *tx = table_alloc(sizeof *tx);
  *tx = (struct tx){.db = db,
                    .number = db->next_tx++,
                    .machine = conn && conn->machine ? conn->machine->number : 0,
                    .conn = conn,
                    .touched_us = world_now_us(),
                    .commit_at_us = INT64_MAX};
  db->open[slot] = tx;
  db->open_end = slot < db->open_end ? db->open_end : slot + 1;
  if (conn)
    conn->tx = tx;
  return tx;
}

static void free_tx(struct tx *tx) {
  struct table *db = tx->db;
  unlock_all(db, tx->number);
  for (size_t i = 0; i < tx->count; i++) {
    struct change *change = &tx->changes[i];
    if (change->row)
      record_free(&db->data.rows, change->row);
    if (change->record)
      record_free(change->list, change->record);
  }
  tx->count = 0;
  for (int i = 0; i < db->open_end; i++)
    if (db->open[i] == tx)
      db->open[i] = NULL;
  while (db->open_end > 0 && !db->open[db->open_end - 1])
    db->open_end--;
  if (tx->conn && tx->conn->tx == tx)
    tx->conn->tx = NULL;
  table_free(tx->changes);
  table_free(tx);
}

void tx_rollback(struct tx **tx) {
  if (*tx)
    free_tx(*tx);
  *tx = NULL;
}

static uint32_t crc32(const struct blob *blob) {
  uint32_t crc = UINT32_MAX;
  for (size_t i = 0; i < blob->len; i++) {
    crc ^= (unsigned char)blob->data[i];
    for (int bit = 0; bit < 8; bit++)
      crc = (crc >> 1) ^ (crc & 1 ? UINT32_C(0xedb88320) : 0);
  }
  return ~crc;
}

uint8_t table_shard_of(const struct table *db, const struct row *row) {
  const struct blob *key = row->text[ROW_ORDER_KEY]->len ? row->text[ROW_ORDER_KEY] : row->text[ROW_MESSAGE_ID];
  return (uint8_t)(crc32(key) % db->shard_count);
}

static void give_shard(struct table *db, struct row *image) {
  if (image->shard == SHARD_DEFAULT)
    image->shard = image->text[ROW_TARGET_HOST]->len ? SHARD_BOUND : table_shard_of(db, image);
}

static struct ghost entry_of(const struct row *row) {
  return (struct ghost){.state = row->state,
                        .shard = row->shard,
                        .priority = row->priority,
                        .route = table_key(row->text[ROW_ROUTE]->data),
                        .next_us = row_next_us(row),
                        .id = row->id};
}

static bool same_entry(const struct ghost *a, const struct ghost *b) {
  return a->state == b->state && a->shard == b->shard && a->priority == b->priority && a->route == b->route &&
         a->next_us == b->next_us;
}

/* The entry that a row had. after NULL: the row is gone. */
static void leave_ghost(struct table *db, const struct row *before, const struct row *after) {
  const struct ghost entry = entry_of(before), other = after ? entry_of(after) : entry;
  if (world_now_us() >= db->unpurged_until_us || db->ghost_count == GHOSTS_MAX || (after && same_entry(&entry, &other)))
    return;
  db->ghosts[db->ghost_count++] = entry;
}

static void put_row(struct table *db, struct tx *tx, struct change *change) {
  struct row *image = change->row;
  struct row *row = table_row(db, image->id);
  if (!row && !change->fresh) /* whoever changes a row has it locked */
    world_fail("the database changes row %llu, which is not there", (unsigned long long)image->id);
  give_shard(db, image);
  if (row)
    leave_ghost(db, row, image);
  struct journal_entry *entry = journal_add(db, row ? JOURNAL_CHANGED : JOURNAL_INSERTED, tx->machine, image);
  entry->event = change->event;
  if (row)
    entry->from = row->state;
  else
    list_add(&db->data.rows, row_place(&db->data, image->id), image);
  if (row) {
    struct row old = *row;
    *row = *image;
    *image = old;
  } else {
    change->row = NULL;
  }
  if (image->id >= db->data.next_id)
    db->data.next_id = image->id + 1;
}

static void end_row(struct table *db, struct tx *tx, struct change *change) {
  size_t at = row_place(&db->data, change->id);
  const struct row *row = at < db->data.rows.count ? db->data.rows.at[at] : NULL;
  if (!row || row->id != change->id)
    return;
  leave_ghost(db, row, NULL);
  const struct row *over = change->row ? change->row : row;
  struct journal_entry *entry =
      journal_add(db, change->event == TASK_EVENTS ? JOURNAL_DELETED : JOURNAL_ENDED, tx->machine, over);
  entry->event = change->event;
  entry->from = row->state;
  entry->to = change->to;
  list_remove(&db->data.rows, at);
  if (change->row)
    list_add(&db->data.history, db->data.history.count, change->row);
  change->row = NULL;
}

static void add_head(struct list *heads, struct head_row *head) {
  for (size_t i = 0; i < heads->count; i++)
    if (((struct head_row *)heads->at[i])->id == head->id) {
      list_remove(heads, i);
      break;
    }
  list_add(heads, heads->count, head);
}

static void add_route(struct list *routes, struct route_entry *route) {
  size_t at = 0;
  while (at < routes->count && strcmp(((struct route_entry *)routes->at[at])->setting.route, route->setting.route) < 0)
    at++;
  if (at < routes->count && strcmp(((struct route_entry *)routes->at[at])->setting.route, route->setting.route) == 0)
    list_remove(routes, at);
  list_add(routes, at, route);
}

/* The same record again only counts up; of one place so many are enough. */
static void add_quarantined(struct table *db, struct quarantined *record) {
  enum { PLACE_MAX = 200 };
  struct list *list = &db->data.quarantine;
  size_t of_place = 0;
  for (size_t i = 0; i < list->count; i++) {
    struct quarantined *it = list->at[i];
    if (!blob_same(it->source, record->source) || !blob_same(it->origin, record->origin))
      continue;
    of_place++;
    if (blob_same(it->body, record->body) && of_place <= PLACE_MAX) {
      it->seen++;
      record_free(list, record);
      return;
    }
  }
  if (of_place >= PLACE_MAX) {
    record_free(list, record);
    return;
  }
  record->id = db->data.next_quarantine++;
  list_add(list, list->count, record);
}

static void add_record(struct table *db, struct change *change) {
  if (change->list == &db->data.heads)
    add_head(change->list, change->record);
  else if (change->list == &db->data.routes)
    add_route(change->list, change->record);
  else if (change->list == &db->data.quarantine)
    add_quarantined(db, change->record);
  else
    list_add(change->list, change->list->count, change->record);
  change->record = NULL;
}

/* --- the log --- */

static void tell(struct feed *feed, const struct store_hint *hint) {
  size_t i = 0;
  while (i < feed->count && (feed->hints[i].shard != hint->shard || feed->hints[i].priority != hint->priority ||
                             strcmp(feed->hints[i].route, hint->route) != 0))
    i++;
  if (i == feed->count && feed->count == STORE_HINTS_MAX) {
    feed->hints[0] = (struct store_hint){.due_us = INT64_MIN};
    feed->count = 1;
    return;
  }
  if (i < feed->count && feed->hints[i].due_us <= hint->due_us)
    return;
  feed->hints[i] = *hint;
  feed->count += i == feed->count;
}

static bool has_moved(const struct row *before, const struct row *after) {
  return !before || before->state != after->state || row_next_us(after) < row_next_us(before) ||
         before->shard != after->shard || before->priority != after->priority ||
         !blob_same(before->text[ROW_ROUTE], after->text[ROW_ROUTE]) ||
         !blob_same(before->text[ROW_TARGET_HOST], after->text[ROW_TARGET_HOST]);
}

static void tell_of(struct table *db, struct row *image) {
  give_shard(db, image);
  if (image->state != TASK_SCHEDULED || !has_moved(table_row(db, image->id), image))
    return;
  const struct blob *host = image->text[ROW_TARGET_HOST], *route = image->text[ROW_ROUTE];
  struct store_hint hint = {.due_us = row_next_us(image)};
  if (route->len > 0 && route->len <= STORE_ROUTE_MAX && image->priority <= 9) {
    memcpy(hint.route, route->data, route->len);
    hint.shard = image->shard;
    hint.priority = image->priority;
    hint.id = image->id;
  }
  for (int i = 0; i < CONNECTIONS_MAX; i++) {
    struct feed *feed = db->connections[i] ? db->connections[i]->feed : NULL;
    if (feed && (host->len == 0 || blob_is(host, feed->host, strlen(feed->host))))
      tell(feed, &hint);
  }
}

void tx_tell(struct tx *tx) {
  for (size_t i = 0; i < tx->count; i++)
    if (tx->changes[i].kind == CHANGE_PUT)
      tell_of(tx->db, tx->changes[i].row);
}

static void trace_entry(const struct journal_entry *entry) {
  static const char *const kinds[] = {"inserted", "changed", "ended", "deleted", "lost", "back", "server"};
  world_trace("row %s %s by %u: %s, priority %u, attempt %u, due in %.6f", entry->message_id, kinds[entry->kind],
              entry->machine, task_state_text(entry->to), entry->priority, entry->attempt,
              (double)(entry->due_us - entry->clock_us) / 1e6);
}

static void commit(struct tx *tx, int64_t at_us) {
  struct table *db = tx->db;
  size_t said = db->journal_count;
  for (size_t i = 0; i < tx->count; i++) {
    struct change *change = &tx->changes[i];
    if (change->kind == CHANGE_PUT)
      put_row(db, tx, change);
    else if (change->kind == CHANGE_END)
      end_row(db, tx, change);
    else
      add_record(db, change);
  }
  for (; said < db->journal_count; said++) {
    db->journal[said].clock_us -= db->journal[said].at_us - at_us;
    db->journal[said].at_us = at_us;
    trace_entry(&db->journal[said]);
  }
  free_tx(tx);
}

void tx_commit(struct tx **tx) {
  commit(*tx, world_now_us());
  *tx = NULL;
}

void tx_commit_at(struct tx **tx, int64_t at_us) {
  tx_tell(*tx);
  (*tx)->commit_at_us = at_us;
  *tx = NULL;
}

static struct change *add_change(struct tx *tx, enum change_kind kind) {
  tx->changes = table_grow(tx->changes, tx->count, &tx->cap, sizeof *tx->changes);
  struct change *change = &tx->changes[tx->count++];
  *change = (struct change){.kind = kind, .event = TASK_EVENTS};
  return change;
}

void tx_put_row(struct tx *tx, struct row *image, int event) {
  struct change *change = add_change(tx, CHANGE_PUT);
  change->row = image;
  change->event = event;
  change->fresh = !image->id;
  if (change->fresh)
    image->id = tx->db->data.next_id++;
}

void tx_end_row(struct tx *tx, const struct row *row, struct row *history, int event, enum task_state to) {
  struct change *change = add_change(tx, CHANGE_END);
  change->id = row->id;
  change->row = history;
  change->event = event;
  change->to = to;
}

void tx_add(struct tx *tx, struct list *list, void *record) {
  struct change *change = add_change(tx, CHANGE_ADD);
  change->list = list;
  change->record = record;
}

struct row *tx_image(struct tx *tx, uint64_t id) {
  for (size_t i = 0; i < tx->count; i++)
    if (tx->changes[i].kind == CHANGE_PUT && tx->changes[i].row->id == id)
      return tx->changes[i].row;
  return NULL;
}

bool table_executes(const struct table *db, uint64_t tx) {
  for (int i = 0; i < db->open_end; i++)
    if (db->open[i] && db->open[i]->number == tx)
      return db->open[i]->commit_at_us != INT64_MAX;
  return false;
}

static struct tx *next_commit(struct table *db) {
  struct tx *next = NULL;
  for (int i = 0; i < db->open_end; i++) {
    struct tx *tx = db->open[i];
    if (tx && tx->commit_at_us <= world_now_us() &&
        (!next || tx->commit_at_us < next->commit_at_us ||
         (tx->commit_at_us == next->commit_at_us && tx->number < next->number)))
      next = tx;
  }
  return next;
}

static bool is_between(const struct ghost *entry, const struct ghost *group, int64_t from_us, int64_t until_us) {
  return entry->state == group->state && entry->shard == group->shard && entry->priority == group->priority &&
         entry->route == group->route && entry->next_us >= from_us && entry->next_us < until_us;
}

size_t table_ghosts(const struct table *db, const struct ghost *group, int64_t from_us, int64_t until_us) {
  size_t count = 0;
  for (size_t i = 0; i < db->ghost_count; i++)
    count += is_between(&db->ghosts[i], group, from_us, until_us);
  for (int i = 0; i < db->open_end; i++) {
    const struct tx *tx = db->open[i]; /* what is not committed is in the index too */
    for (size_t k = 0; tx && !tx->conn && k < tx->count; k++) {
      if (tx->changes[k].kind != CHANGE_PUT)
        continue;
      struct ghost entry = entry_of(tx->changes[k].row);
      if (entry.shard == SHARD_DEFAULT)
        entry.shard = table_shard_of(db, tx->changes[k].row);
      count += is_between(&entry, group, from_us, until_us);
    }
  }
  return count;
}

/* Commits that are due; and sessions that are silent inside a transaction are ended. */
void table_pump(struct table *db) {
  struct tx *due;
  while ((due = next_commit(db)))
    commit(due, due->commit_at_us);
  if (world_now_us() >= db->unpurged_until_us)
    db->ghost_count = 0;
  for (int i = 0; i < db->open_end; i++) {
    struct tx *tx = db->open[i];
    if (tx && tx->conn && tx->commit_at_us == INT64_MAX && world_now_us() - tx->touched_us > db->silent_us)
      connection_kill(db, tx->conn);
  }
}

/* --- sessions --- */

struct connection *connection_open(struct table *db, const struct machine *machine, const char *instance) {
  for (int i = 0; i < CONNECTIONS_MAX; i++)
    if (!db->connections[i]) {
      struct connection *conn = table_alloc(sizeof *conn);
      conn->thread = db->next_thread++;
      conn->machine = machine;
      conn->alive = true;
      (void)snprintf(conn->instance, sizeof conn->instance, "%s", instance);
      db->connections[i] = conn;
      return conn;
    }
  world_fail("more than %d connections", CONNECTIONS_MAX);
}

void connection_kill(struct table *db, struct connection *conn) {
  (void)db;
  conn->alive = false;
  tx_rollback(&conn->tx);
}

/* What it has sent to be committed is done all the same. */
void connection_close(struct table *db, struct connection **conn) {
  if (!*conn)
    return;
  struct tx *tx = (*conn)->tx;
  if (tx && tx->commit_at_us != INT64_MAX) {
    tx->conn = NULL;
    (*conn)->tx = NULL;
  }
  tx_rollback(&(*conn)->tx);
  for (int i = 0; i < CONNECTIONS_MAX; i++)
    if (db->connections[i] == *conn)
      db->connections[i] = NULL;
  table_free((*conn)->feed);
  table_free(*conn);
  *conn = NULL;
}

void table_drop_users(struct table *db) {
  for (int i = 0; i < db->open_end; i++)
    if (db->open[i]) {
      db->open[i]->dead = true;
      unlock_all(db, db->open[i]->number);
    }
}

void table_drop_all(struct table *db) {
  for (int i = 0; i < CONNECTIONS_MAX; i++)
    if (db->connections[i])
      connection_kill(db, db->connections[i]);
  for (int i = 0; i < db->open_end; i++)
    if (db->open[i] && db->open[i]->commit_at_us != INT64_MAX)
      tx_rollback(&(struct tx *){db->open[i]});
}
