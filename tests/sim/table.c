/* SPDX-License-Identifier: MIT */
#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "table_tx.h"

/* --- memory --- */

void *table_alloc(size_t size) {
  unsigned before = memory_belongs_to(0);
  void *at = calloc(1, size ? size : 1);
  (void)memory_belongs_to(before);
  if (!at)
    world_fail("the database is out of memory");
  return at;
}

void table_free(void *at) { free(at); }

void *table_grow(void *at, size_t count, size_t *cap, size_t size) {
  if (count < *cap)
    return at;
  size_t wanted = *cap ? 2 * *cap : 16;
  void *larger = table_alloc(wanted * size);
  if (count)
    memcpy(larger, at, count * size);
  table_free(at);
  *cap = wanted;
  return larger;
}

/* --- texts --- */

static void drop(struct blob *blob) {
  if (blob && --blob->refs == 0)
    table_free(blob);
}

void blob_set(struct blob **at, const char *data, size_t len) {
  struct blob *blob = NULL;
  if (data) {
    blob = table_alloc(sizeof *blob + len + 1);
    blob->refs = 1;
    blob->len = len;
    if (len)
      memcpy(blob->data, data, len);
  }
  drop(*at);
  *at = blob;
}

void blob_put(struct blob **at, const char *text) { blob_set(at, text, text ? strlen(text) : 0); }

void blob_share(struct blob **at, struct blob *other) {
  if (other)
    other->refs++;
  drop(*at);
  *at = other;
}

bool blob_is(const struct blob *blob, const char *data, size_t len) {
  return blob && blob->len == len && (len == 0 || memcmp(blob->data, data, len) == 0);
}

bool blob_same(const struct blob *a, const struct blob *b) { return a == b || (a && b && blob_is(a, b->data, b->len)); }

int blob_order(const struct blob *a, const struct blob *b) {
  if (!a || !b)
    return (a != NULL) - (b != NULL);
  size_t len = a->len < b->len ? a->len : b->len;
  int order = len ? memcmp(a->data, b->data, len) : 0;
  return order ? order : (a->len > b->len) - (a->len < b->len);
}

/* --- records --- */

struct list list_of(size_t size, unsigned texts) {
  return (struct list){.size = size, .texts = texts};
}

void *record_new(const struct list *list) { return table_alloc(list->size); }

void *record_copy(const struct list *list, const void *record) {
  void *copy = record_new(list);
  memcpy(copy, record, list->size);
  for (unsigned i = 0; i < list->texts; i++)
    if (((struct blob **)copy)[i])
      ((struct blob **)copy)[i]->refs++;
  return copy;
}

void record_free(const struct list *list, void *record) {
  for (unsigned i = 0; i < list->texts && record; i++)
    drop(((struct blob **)record)[i]);
  table_free(record);
}

void list_add(struct list *list, size_t at, void *record) {
  list->at = table_grow(list->at, list->count, &list->cap, sizeof *list->at);
  memmove(list->at + at + 1, list->at + at, (list->count - at) * sizeof *list->at);
  list->at[at] = record;
  list->count++;
}

void list_remove(struct list *list, size_t at) {
  record_free(list, list->at[at]);
  list->count--;
  memmove(list->at + at, list->at + at + 1, (list->count - at) * sizeof *list->at);
}

void list_clear(struct list *list) {
  for (size_t i = 0; i < list->count; i++)
    record_free(list, list->at[i]);
  table_free(list->at);
  *list = list_of(list->size, list->texts);
}

void list_copy(struct list *to, const struct list *from) {
  *to = list_of(from->size, from->texts);
  for (size_t i = 0; i < from->count; i++)
    list_add(to, i, record_copy(from, from->at[i]));
}

/* --- the database --- */

void table_begin(struct table *db, unsigned shards, struct chance chance) {
  *db = (struct table){.chance = chance,
                       .clock_ahead_us = TABLE_EPOCH_US,
                       .latency_low_us = 50,
                       .latency_high_us = 500,
                       .commit_low_us = 10,
                       .commit_high_us = 200,
                       .lock_wait_us = 1000 * 1000,
                       .silent_us = 2 * 1000 * 1000,
                       .read_timeout_us = 30 * 1000 * 1000,
                       .connect_timeout_us = 5 * 1000 * 1000,
                       .max_packet = UINT64_C(1) << 30,
                       .may_kill = true,
                       .shard_count = shards,
                       .server = 1,
                       .next_tx = 1,
                       .next_thread = 1};
  struct data *data = &db->data;
  data->rows = list_of(sizeof(struct row), ROW_TEXTS);
  data->history = list_of(sizeof(struct row), ROW_TEXTS);
  data->attempts = list_of(sizeof(struct line), LINE_TEXTS);
  data->heads = list_of(sizeof(struct head_row), HEAD_TEXTS);
  data->quarantine = list_of(sizeof(struct quarantined), QUARANTINE_TEXTS);
  data->audit = list_of(sizeof(struct audit_line), AUDIT_TEXTS);
  data->instances = list_of(sizeof(struct instance_entry), INSTANCE_TEXTS);
  data->routes = list_of(sizeof(struct route_entry), 0);
  data->next_id = data->next_quarantine = 1;
  for (unsigned i = 0; i < shards; i++)
    data->shards[i] = (struct shard_entry){.present = true, .lease_until_us = TIME_NULL};
  data->shards[SHARD_BOUND] = (struct shard_entry){.present = true, .epoch = 1, .lease_until_us = TIME_NULL};
}

static struct list *const *lists_of(struct data *data, struct list *out[8]) {
  struct list *const all[] = {&data->rows,       &data->history, &data->attempts,  &data->heads,
                              &data->quarantine, &data->audit,   &data->instances, &data->routes};
  memcpy(out, all, sizeof all);
  return out;
}

void data_clear(struct data *data) {
  struct list *lists[8];
  for (int i = 0; i < 8; i++)
    list_clear(lists_of(data, lists)[i]);
}

void data_copy(struct data *to, const struct data *from) {
  struct list *old[8], *new[8];
  struct data source = *from;
  *to = *from;
  (void)lists_of(&source, old);
  (void)lists_of(to, new);
  for (int i = 0; i < 8; i++)
    list_copy(new[i], old[i]);
}

void table_end(struct table *db) {
  table_kill_sessions(db);
  for (int i = 0; i < db->open_end; i++)
    if (db->open[i])
      tx_rollback(&(struct tx *){db->open[i]});
  for (int i = 0; i < CONNECTIONS_MAX; i++)
    if (db->connections[i])
      connection_close(db, &(struct connection *){db->connections[i]});
  data_clear(&db->data);
  table_free(db->locks);
  table_free(db->journal);
  *db = (struct table){0};
}

int64_t table_clock(const struct table *db) { return world_now_us() + db->clock_ahead_us; }

/* --- rows --- */

size_t row_place(const struct data *data, uint64_t id) {
  size_t low = 0, high = data->rows.count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (((const struct row *)data->rows.at[middle])->id < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

struct row *table_row(struct table *db, uint64_t id) {
  size_t at = row_place(&db->data, id);
  struct row *row = at < db->data.rows.count ? db->data.rows.at[at] : NULL;
  return row && row->id == id ? row : NULL;
}

struct row *table_find(struct table *db, const char *message_id, size_t len) {
  for (size_t i = 0; i < db->data.rows.count; i++) {
    struct row *row = db->data.rows.at[i];
    if (blob_is(row->text[ROW_MESSAGE_ID], message_id, len))
      return row;
  }
  return NULL;
}

int64_t row_due_us(const struct row *row) {
  return row->due_us != TIME_NULL ? row->due_us : row->created_us + row->delay_ms * 1000;
}

int64_t row_first_due_us(const struct row *row) {
  return row->first_due_us != TIME_NULL ? row->first_due_us : row_due_us(row);
}

/* Since when it may have been handed over: it was put off since where it was due at first before. */
int64_t row_ripe_us(const struct row *row) {
  int64_t first_us = row_first_due_us(row), due_us = row_due_us(row);
  return first_us < due_us ? first_us : due_us;
}

bool row_moves(const struct row *row) { return row->move_to_shard >= 0 || row->text[ROW_MOVE_TO_HOST]; }

int64_t row_next_us(const struct row *row) {
  if (row->state == TASK_CLAIMED || row->state == TASK_AWAITING)
    return row->lease_until_us;
  if (row->state == TASK_SCHEDULED && row->text[ROW_ORDER_KEY]->len == 0 && row_moves(row))
    return STORE_MOVES_US;
  return row_due_us(row);
}

static uint64_t digest(uint64_t hash, const void *data, size_t len) {
  const unsigned char *bytes = data;
  hash = (hash ^ len) * UINT64_C(0x100000001b3);
  for (size_t i = 0; i < len; i++)
    hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
  return hash;
}

uint64_t row_content(const struct row *row) {
  static const enum row_text sent[] = {ROW_PAYLOAD, ROW_ROUTE, ROW_TASK_KEY, ROW_ORDER_KEY, ROW_HEADERS};
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < sizeof sent / sizeof sent[0]; i++)
    hash = digest(hash, row->text[sent[i]]->data, row->text[sent[i]]->len);
  return hash;
}

uint64_t table_key(const char *text) { return digest(UINT64_C(0xcbf29ce484222325), text, strlen(text)); }

bool row_untouched(const struct row *row) { return (row->changed_us - row->created_us) % INT64_C(900000000) == 0; }

/* Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms". */
void table_time_text(int64_t us, char out[TABLE_TIME_LEN + 1]) {
  int64_t seconds = us / 1000000, part = us % 1000000;
  int64_t days = seconds / 86400 + 719468, of_day = seconds % 86400;
  int64_t era = days / 146097;
  unsigned day_of_era = (unsigned)(days - era * 146097);
  unsigned year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  unsigned day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  unsigned month = (5 * day_of_year + 2) / 153;
  unsigned day = day_of_year - (153 * month + 2) / 5 + 1;
  unsigned year = (unsigned)(era * 400) + year_of_era + (month >= 10);
  char text[96];
  (void)snprintf(text, sizeof text, "%04u-%02u-%02u %02u:%02u:%02u.%06u", year, month < 10 ? month + 3 : month - 9, day,
                 (unsigned)(of_day / 3600), (unsigned)(of_day / 60 % 60), (unsigned)(of_day % 60), (unsigned)part);
  memcpy(out, text, TABLE_TIME_LEN);
  out[TABLE_TIME_LEN] = '\0';
}

bool head_lives(const struct table *db, const struct head_row *head, const struct row **task) {
  size_t at = row_place(&db->data, head->id);
  const struct row *row = at < db->data.rows.count ? db->data.rows.at[at] : NULL;
  *task = row && row->id == head->id ? row : NULL;
  return *task &&
         (head->message_id->len == 0 ||
          (blob_same(head->message_id, row->text[ROW_MESSAGE_ID]) && head->failures == row->failures)) &&
         blob_same(row->text[ROW_ROUTE], head->route) && blob_same(row->text[ROW_ORDER_KEY], head->order_key) &&
         row->state != TASK_AWAITING &&
         (row->failures > 0 || row_first_due_us(row) <= table_clock(db) + INT64_C(60000000));
}

bool instance_lives(const struct table *db, const struct instance_entry *instance) {
  int64_t now_us = table_clock(db);
  return instance->alive_until_us > now_us && instance->seen_us < now_us + INT64_C(60000000);
}

bool host_lives(const struct table *db, const struct blob *host) {
  for (size_t i = 0; i < db->data.instances.count; i++) {
    const struct instance_entry *it = db->data.instances.at[i];
    if (blob_same(it->host, host) && instance_lives(db, it))
      return true;
  }
  return false;
}

bool lease_runs(const struct table *db, const struct shard_entry *shard) {
  int64_t now_us = table_clock(db);
  return shard->lease_until_us != TIME_NULL && shard->lease_until_us > now_us &&
         shard->lease_until_us <= now_us + INT64_C(660000000);
}

int64_t abandoned_until(const struct table *db, const struct shard_entry *shard) {
  int64_t until_us = table_clock(db);
  if (shard->lease_until_us != TIME_NULL && shard->lease_until_us > until_us)
    until_us = shard->lease_until_us;
  return shard->abandoned_us > until_us ? shard->abandoned_us : until_us;
}

const struct instance_entry *claimer(const struct table *db, const struct row *row) {
  for (size_t i = 0; i < db->data.instances.count; i++) {
    const struct instance_entry *it = db->data.instances.at[i];
    if (blob_same(it->id, row->text[ROW_CLAIMED_BY]))
      return it;
  }
  return NULL;
}

bool claimer_gone(const struct table *db, const struct row *row) {
  const struct instance_entry *who = row->text[ROW_CLAIMED_BY] ? claimer(db, row) : NULL;
  return !row->text[ROW_CLAIMED_BY] || (who && !instance_lives(db, who));
}

bool claim_lost(const struct table *db, const struct row *row) {
  const struct shard_entry *shard = &db->data.shards[row->shard];
  if (row->state != TASK_CLAIMED)
    return false;
  if (row->shard == SHARD_BOUND)
    return claimer_gone(db, row);
  return shard->present && ((row->has_epoch ? row->claim_epoch : 0) < shard->epoch || !lease_runs(db, shard));
}

bool maybe_sent(const struct table *db, const struct row *row) {
  const struct shard_entry *shard = &db->data.shards[row->shard];
  bool owned = shard->owned && shard->owner[0];
  bool alone = owned ? !lease_runs(db, shard) : shard->unclean;
  int64_t until_us = !shard->present ? table_clock(db) : alone ? abandoned_until(db, shard) : shard->abandoned_us;
  return row->attempt > 0 || row->recoveries > 0 || row->state == TASK_CLAIMED || row->state == TASK_AWAITING ||
         row_ripe_us(row) <= until_us;
}

/* --- the journal --- */

struct journal_entry *journal_add(struct table *db, enum journal_kind kind, unsigned machine, const struct row *row) {
  db->journal = table_grow(db->journal, db->journal_count, &db->journal_cap, sizeof *db->journal);
  struct journal_entry *entry = &db->journal[db->journal_count++];
  *entry = (struct journal_entry){.at_us = world_now_us(),
                                  .clock_us = table_clock(db),
                                  .kind = kind,
                                  .machine = machine,
                                  .event = TASK_EVENTS,
                                  .from = TASK_STATES,
                                  .to = TASK_STATES};
  if (!row)
    return entry;
  entry->id = row->id;
  (void)snprintf(entry->message_id, sizeof entry->message_id, "%s", row->text[ROW_MESSAGE_ID]->data);
  (void)snprintf(entry->route, sizeof entry->route, "%s", row->text[ROW_ROUTE]->data);
  (void)snprintf(entry->host, sizeof entry->host, "%s", row->text[ROW_TARGET_HOST]->data);
  entry->content = row_content(row);
  entry->from = entry->to = row->state;
  entry->attempt = row->attempt;
  entry->failures = row->failures;
  entry->recoveries = row->recoveries;
  entry->revision = row->revision;
  entry->max_attempts = row->max_attempts;
  entry->shard = row->shard;
  entry->priority = row->priority;
  entry->next_us = row_next_us(row);
  entry->due_us = row_due_us(row);
  entry->first_due_us = row_first_due_us(row);
  entry->expires_us = row->expires_us;
  return entry;
}
