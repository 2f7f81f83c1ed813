/* SPDX-License-Identifier: MIT
 *
 * The store beside a raw loop: cursor SELECT on one connection and batched DELETE on another, pipelined, both ways
 * over the same rows in the same run; then what single units cost. Run by hand on an idle machine:
 *   DUEBOX_TEST_MYSQL=<unix socket of a test server> build/release/tests/store_bench [rows]
 */
#include <mysql.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "outbox/outbox.h"
#include "outbox/schema.h"

enum { BATCH = 1000, SHARDS = 8, DEPTH = 4, ROUNDS = 3, UNITS = 200 };

static _Noreturn void die(const char *what, const char *why) {
  fprintf(stderr, "%s: %s\n", what, why);
  exit(1);
}

struct bench {
  struct database_config config;
  struct store store;
  struct shard_lease leases[SHARDS];
  size_t rows;
  char database[64];
};

static MYSQL *connect_raw(const struct bench *b) {
  MYSQL *mysql = mysql_init(NULL);
  if (!mysql || !mysql_real_connect(mysql, NULL, "root", "", b->database, 0, b->config.socket, 0))
    die("connecting", mysql ? mysql_error(mysql) : "out of memory");
  return mysql;
}

static void run(MYSQL *mysql, const char *statement) {
  if (mysql_real_query(mysql, statement, strlen(statement)))
    die(statement, mysql_error(mysql));
  mysql_free_result(mysql_store_result(mysql));
}

static void fill(struct bench *b, size_t rows) {
  MYSQL *mysql = connect_raw(b);
  char statement[512];
  run(mysql, "TRUNCATE TABLE outbox");
  for (size_t at = 0; at < rows; at += 10000) {
    snprintf(statement, sizeof statement,
             "INSERT INTO outbox (route, payload, task_key, due_at) SELECT 'orders.cancel', REPEAT('x', 200), "
             "CONCAT('order-', seq), UTC_TIMESTAMP(6) - INTERVAL 1 SECOND FROM seq_%zu_to_%zu",
             at + 1, at + 10000 < rows ? at + 10000 : rows);
    run(mysql, statement);
  }
  run(mysql, "ANALYZE TABLE outbox");
  mysql_close(mysql);
}

/* --- a bounded queue between the reading and the deleting thread --- */

struct queue {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  void *items[DEPTH];
  size_t put, taken;
  bool ended;
};

static void queue_put(struct queue *q, void *item) {
  pthread_mutex_lock(&q->lock);
  while (q->put - q->taken == DEPTH)
    pthread_cond_wait(&q->changed, &q->lock);
  q->items[q->put++ % DEPTH] = item;
  pthread_cond_signal(&q->changed);
  pthread_mutex_unlock(&q->lock);
}

static void *queue_take(struct queue *q) {
  pthread_mutex_lock(&q->lock);
  while (q->put == q->taken && !q->ended)
    pthread_cond_wait(&q->changed, &q->lock);
  void *item = q->put == q->taken ? NULL : q->items[q->taken++ % DEPTH];
  pthread_cond_signal(&q->changed);
  pthread_mutex_unlock(&q->lock);
  return item;
}

static void queue_end(struct queue *q) {
  pthread_mutex_lock(&q->lock);
  q->ended = true;
  pthread_cond_signal(&q->changed);
  pthread_mutex_unlock(&q->lock);
}

struct side {
  struct bench *b;
  struct queue queue;
};

static void check(enum store_status status, const struct err *err) {
  if (status != STORE_OK)
    die("store", err->text);
}

/* --- the raw loop --- */

static void *raw_delete(void *arg) {
  struct side *side = arg;
  MYSQL *mysql = connect_raw(side->b);
  char *statement = malloc(BATCH * 21 + 100);
  MYSQL_RES *rows;
  while ((rows = queue_take(&side->queue))) {
    char *end = stpcpy(statement, "DELETE FROM outbox WHERE id IN (");
    MYSQL_ROW row;
    while ((row = mysql_fetch_row(rows))) {
      end = stpcpy(end, row[0]);
      *end++ = ',';
    }
    strcpy(end - 1, ")");
    run(mysql, statement);
    mysql_free_result(rows);
  }
  free(statement);
  mysql_close(mysql);
  return NULL;
}

static MYSQL_RES *raw_read(MYSQL *mysql, unsigned shard, const char *after_at, const char *after_id) {
  char statement[1024];
  snprintf(
      statement, sizeof statement,
      "SELECT id, next_at, message_id, task_key, headers, payload FROM outbox FORCE INDEX (ix_next) WHERE state = "
      "'scheduled' AND shard = %u AND route = 'orders.cancel' AND priority = 5 AND next_at <= UTC_TIMESTAMP(6) AND "
      "next_at >= '%s' AND (next_at > '%s' OR id > %s) ORDER BY next_at, id LIMIT %d",
      shard, after_at, after_at, after_id, BATCH);
  if (mysql_real_query(mysql, statement, strlen(statement)))
    die("reading", mysql_error(mysql));
  return mysql_store_result(mysql);
}

static void raw_loop(struct side *side) {
  MYSQL *mysql = connect_raw(side->b);
  for (unsigned shard = 0; shard < SHARDS; shard++) {
    char at[32] = "1970-01-01", id[24] = "0";
    for (;;) {
      MYSQL_RES *rows = raw_read(mysql, shard, at, id);
      if (mysql_num_rows(rows) == 0) {
        mysql_free_result(rows);
        break;
      }
      mysql_data_seek(rows, mysql_num_rows(rows) - 1);
      MYSQL_ROW last = mysql_fetch_row(rows);
      snprintf(at, sizeof at, "%s", last[1]);
      snprintf(id, sizeof id, "%s", last[0]);
      mysql_data_seek(rows, 0);
      queue_put(&side->queue, rows);
    }
  }
  mysql_close(mysql);
}

/* --- the same through the store --- */

static void settle_batch(struct bench *b, struct store_session *ss, struct task_batch *batch) {
  struct decision decisions[BATCH];
  struct err err;
  bool lost[SHARDS];
  size_t count = batch->count;
  for (size_t i = 0; i < count; i++)
    decisions[i] = (struct decision){.id = batch->tasks[i].id,
                                     .message_id = batch->tasks[i].message_id,
                                     .changed_at = batch->tasks[i].changed_at,
                                     .shard = batch->tasks[i].shard,
                                     .event = EVENT_DONE,
                                     .attempt = 1};
  check(b->store.ops->settle(ss, b->leases, SHARDS, decisions, count, lost, &err), &err);
  for (size_t i = 0; i < count; i++) {
    if (!decisions[i].applied)
      die("settling", "a row was not there");
    task_release(&batch->tasks[i]);
  }
}

static struct store_session *open_session(struct bench *b) {
  struct store_session *ss;
  struct err err;
  check(b->store.ops->open(b->store.self, "bench", 0, &ss, &err), &err);
  return ss;
}

static void *store_settle(void *arg) {
  struct side *side = arg;
  struct store_session *ss = open_session(side->b);
  struct task_batch *batch;
  while ((batch = queue_take(&side->queue)))
    settle_batch(side->b, ss, batch);
  side->b->store.ops->close(&ss);
  return NULL;
}

static struct task_batch *store_read(struct bench *b, struct store_session *ss, struct store_range *range) {
  struct task_batch *batch;
  struct err err;
  int64_t now;
  check(b->store.ops->read(ss, range, 1, 0, (struct store_limit){.payload = 1 << 20, .bytes = INT64_MAX}, &batch,
                           (int64_t[1]){0}, &now, &err),
        &err);
  if (batch) {
    const struct task *last = &batch->tasks[batch->count - 1];
    range->after = (struct store_cursor){.next_us = last->due_us, .id = last->id};
  }
  return batch;
}

static void store_loop(struct side *side) {
  struct store_session *ss = open_session(side->b);
  for (uint8_t shard = 0; shard < SHARDS; shard++) {
    struct store_range range = {.shard = shard, .priority = 5, .route = "orders.cancel", .limit = BATCH};
    struct task_batch *batch;
    while ((batch = store_read(side->b, ss, &range)))
      queue_put(&side->queue, batch);
  }
  side->b->store.ops->close(&ss);
}

/* Drains the table one way; returns rows per second. */
static double drain(struct bench *b, void (*reader)(struct side *), void *(*deleter)(void *)) {
  struct side side = {.b = b};
  pthread_t thread;
  fill(b, b->rows);
  pthread_mutex_init(&side.queue.lock, NULL);
  pthread_cond_init(&side.queue.changed, NULL);
  int64_t start = clock_mono_us();
  if (pthread_create(&thread, NULL, deleter, &side))
    die("starting a thread", "no resources");
  reader(&side);
  queue_end(&side.queue);
  pthread_join(thread, NULL);
  return (double)b->rows * 1e6 / (double)(clock_mono_us() - start);
}

/* --- single units --- */

static int by_value(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return x < y ? -1 : x > y;
}

static void unit_settle_one(struct bench *b) {
  int64_t took[UNITS];
  struct store_session *ss = open_session(b);
  fill(b, UNITS * SHARDS * 4);
  struct store_range range = {.priority = 5, .route = "orders.cancel", .limit = 1};
  for (int i = 0; i < UNITS; i++) {
    struct task_batch *batch = store_read(b, ss, &range);
    if (!batch)
      die("reading", "no rows");
    int64_t start = clock_mono_us();
    settle_batch(b, ss, batch);
    took[i] = clock_mono_us() - start;
  }
  qsort(took, UNITS, sizeof *took, by_value);
  printf("settle of 1 done row            p50 %6.2f ms  p99 %6.2f ms\n", (double)took[UNITS / 2] / 1000,
         (double)took[UNITS * 99 / 100] / 1000);
  b->store.ops->close(&ss);
}

static void unit_settle_many(struct bench *b, const char *name, struct decision like) {
  enum { TIMES = 9 };
  int64_t took[TIMES];
  struct store_session *ss = open_session(b);
  struct err err;
  bool lost[SHARDS];
  fill(b, (size_t)BATCH * SHARDS * (TIMES + 3));
  struct store_range range = {.priority = 5, .route = "orders.cancel", .limit = BATCH};
  for (int i = 0; i < TIMES; i++) {
    struct task_batch *batch = store_read(b, ss, &range);
    struct decision decisions[BATCH];
    if (!batch || batch->count != BATCH)
      die("reading", "not enough rows");
    for (size_t k = 0; k < BATCH; k++) {
      decisions[k] = like;
      decisions[k].id = batch->tasks[k].id;
      decisions[k].message_id = batch->tasks[k].message_id;
      decisions[k].changed_at = batch->tasks[k].changed_at;
      decisions[k].shard = batch->tasks[k].shard;
      decisions[k].attempt = 1;
    }
    int64_t start = clock_mono_us();
    check(b->store.ops->settle(ss, b->leases, SHARDS, decisions, BATCH, lost, &err), &err);
    took[i] = clock_mono_us() - start;
    for (size_t k = 0; k < BATCH; k++)
      task_release(&batch->tasks[k]);
  }
  qsort(took, TIMES, sizeof *took, by_value);
  printf("settle of 1000, %-15s p50 %6.2f ms\n", name, (double)took[TIMES / 2] / 1000);
  b->store.ops->close(&ss);
}

static void set_up(struct bench *b) {
  struct err err = {0};
  struct db_conn *conn;
  FILE *null = fopen("/dev/null", "w");
  struct shard_row rows[STORE_SHARDS_MAX];
  size_t count;
  if (!outbox_create(&b->config, &b->store, &err) || !db_open(&b->config, DB_MIGRATE, "bench", &conn, &err) ||
      !schema_migrate(conn, &(struct migrate_options){.shards = SHARDS}, null, &err))
    die("setting up", err.text);
  db_close(&conn);
  fclose(null);
  struct store_session *ss = open_session(b);
  check(b->store.ops->shards(ss, rows, &count, &(uint64_t){0}, &err), &err);
  for (size_t i = 0; i < count; i++) {
    b->leases[i].shard = rows[i].shard;
    b->leases[i].owner = "bench";
    check(b->store.ops->acquire(ss, "bench", &rows[i], 3600000, &b->leases[i].epoch, &err), &err);
  }
  b->store.ops->close(&ss);
}

int main(int argc, char **argv) {
  const char *socket = getenv("DUEBOX_TEST_MYSQL");
  if (!socket)
    die("DUEBOX_TEST_MYSQL", "set it to the unix socket of a test server (root without a password)");
  struct bench b = {.rows = argc > 1 ? strtoul(argv[1], NULL, 10) : 200000,
                    .config = {.socket = socket,
                               .user = "root",
                               .password = "",
                               .table = "outbox",
                               .connect_timeout_ms = 5000,
                               .read_timeout_ms = 60000}};
  snprintf(b.database, sizeof b.database, "duebox_bench_%d", (int)getpid());
  b.config.name = b.database;
  char statement[128] = "CREATE DATABASE ";
  strcat(statement, b.database);
  char *name = strdup(b.database);
  b.database[0] = '\0';
  MYSQL *root = connect_raw(&b);
  strcpy(b.database, name);
  run(root, statement);
  set_up(&b);
  double raw_sum = 0, store_sum = 0;
  for (int i = 0; i < ROUNDS; i++) {
    double raw = drain(&b, raw_loop, raw_delete), through = drain(&b, store_loop, store_settle);
    printf("round %d: raw %.0f rows/s, store %.0f rows/s, ratio %.3f\n", i + 1, raw, through, through / raw);
    raw_sum += raw;
    store_sum += through;
  }
  printf("all rounds: ratio %.3f\n", store_sum / raw_sum);
  unit_settle_one(&b);
  unit_settle_many(&b, "done", (struct decision){.event = EVENT_DONE});
  unit_settle_many(&b, "done, kept", (struct decision){.event = EVENT_DONE, .keep_us = INT64_C(86400000000)});
  unit_settle_many(&b, "retried", (struct decision){.event = EVENT_RETRY, .delay_us = INT64_C(3600000000)});
  unit_settle_many(
      &b, "retried, logged",
      (struct decision){.event = EVENT_RETRY, .delay_us = INT64_C(3600000000), .log_attempt = true, .error = "no"});
  unit_settle_many(&b, "published", (struct decision){.event = EVENT_PUBLISHED, .delay_us = INT64_C(3600000000)});
  snprintf(statement, sizeof statement, "DROP DATABASE %s", b.database);
  run(root, statement);
  mysql_close(root);
  free(name);
  outbox_destroy(&b.store);
  return 0;
}
