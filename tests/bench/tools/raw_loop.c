/* SPDX-License-Identifier: MIT
 *
 * tests/bench/tools/raw_loop.c - the least that can be done to drain due rows into a destination: the yardstick of
 * tests/bench/run.
 *
 *   raw_loop --sink kafka|amqp|http|null --socket PATH --database NAME --rows N [--to WHERE] [--topic NAME]
 *            [--table outbox] [--route bench] [--shards 8] [--batch 1000] [--window 10000]
 *
 * It reads the outbox with a cursor over ix_next, one statement per batch, the shards in turn; sends what the plugin
 * of that name would send; deletes what was confirmed, in batches. No leases, no fences, no routes, no retries, no
 * credit in bytes, no metrics: a fault ends it.
 *
 * Threads: the reader reads ahead, at most DEPTH batches; main sends and takes confirms; the deleter deletes. They meet
 * in two bounded queues under one lock.
 */
#include "raw_loop.h"

#include <getopt.h>
#include <mysql.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum {
  SHARDS_MAX = 64,
  BATCH_MAX = 10000,
  WINDOW_MAX = 100000,
  DEPTH = 4,           /* batches that are read and not sent */
  ID_TEXT = 21,        /* a 64-bit number and a comma */
  GATHER_MS = 2,       /* how long a DELETE waits for company, as engine.settle_delay */
  STATEMENT = 1024,    /* bytes of a SELECT */
  REPORT_LIMIT_S = 60, /* without any confirm */
  REAP_MS = 10,
};

struct loop {
  struct raw_settings settings;
  const struct raw_sink *sink;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  /* Under lock. */
  MYSQL_RES *batches[DEPTH];
  size_t batch_count;
  uint64_t *done; /* ids to delete: sending does not wait for their DELETE until there are done_max of them */
  size_t done_count, done_max;
  bool read_all, confirmed_all;
  /* The reader's. */
  size_t read, selects;
  /* Main's. */
  uint64_t *reaped; /* room for a window of ids */
  size_t in_flight;
  int64_t began_us;
  /* The deleter's. */
  size_t deleted, deletes, first_deleted;
  int64_t first_us, ended_us;
};

/* Where the reading of a shard stands. */
struct cursor {
  char due[RAW_DUE_TEXT];
  char id[ID_TEXT];
  bool end;
};

_Noreturn void raw_fail(const char *what, const char *why) {
  fprintf(stderr, "raw_loop: %s: %s\n", what, why);
  exit(1);
}

void raw_due_header(const char *due, char out[RAW_DUE_TEXT]) {
  snprintf(out, RAW_DUE_TEXT, "%sZ", due);
  out[10] = 'T';
}

static int64_t wall_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void execute(MYSQL *mysql, const char *statement, size_t len) {
  if (mysql_real_query(mysql, statement, len) != 0)
    raw_fail("statement", mysql_error(mysql));
}

/* The session of outbox/db_conn.c, as far as it changes how fast statements are. */
static MYSQL *connect_to(const struct raw_settings *s) {
  static const char setup[] = "SET SESSION time_zone = '+00:00', tx_isolation = 'READ-COMMITTED', "
                              "in_predicate_conversion_threshold = 0";
  MYSQL *mysql = mysql_init(NULL);
  if (!mysql)
    raw_fail("connect", "out of memory");
  if (!mysql_real_connect(mysql, NULL, "root", NULL, s->database, 0, s->socket, 0))
    raw_fail("connect", mysql_error(mysql));
  execute(mysql, setup, sizeof setup - 1);
  return mysql;
}

/* --- the reader --- */

static MYSQL_RES *select_rows(struct loop *loop, MYSQL *mysql, size_t shard, const struct cursor *cursor) {
  const struct raw_settings *s = &loop->settings;
  char statement[STATEMENT];
  int len = snprintf(statement, sizeof statement,
                     "SELECT id, next_at, message_id, task_key, payload FROM `%s` FORCE INDEX (ix_next) "
                     "WHERE state = 'scheduled' AND shard = %zu AND route = '%s' AND priority = 5 "
                     "AND next_at <= UTC_TIMESTAMP(6) AND next_at >= '%s' AND (next_at > '%s' OR id > %s) "
                     "ORDER BY next_at, id LIMIT %zu",
                     s->table, shard, s->route, cursor->due, cursor->due, cursor->id, s->batch);
  execute(mysql, statement, (size_t)len);
  MYSQL_RES *result = mysql_store_result(mysql);
  if (!result)
    raw_fail("select", mysql_error(mysql));
  loop->selects++;
  return result;
}

static void put_batch(struct loop *loop, MYSQL_RES *batch) {
  pthread_mutex_lock(&loop->lock);
  while (loop->batch_count == DEPTH)
    pthread_cond_wait(&loop->changed, &loop->lock);
  loop->batches[loop->batch_count++] = batch;
  pthread_cond_broadcast(&loop->changed);
  pthread_mutex_unlock(&loop->lock);
}

static void read_some(struct loop *loop, MYSQL *mysql, size_t shard, struct cursor *cursor) {
  MYSQL_RES *result = select_rows(loop, mysql, shard, cursor);
  size_t count = (size_t)mysql_num_rows(result);
  cursor->end = count < loop->settings.batch;
  if (count == 0) {
    mysql_free_result(result);
    return;
  }
  mysql_data_seek(result, count - 1);
  MYSQL_ROW last = mysql_fetch_row(result);
  snprintf(cursor->due, sizeof cursor->due, "%s", last[1]);
  snprintf(cursor->id, sizeof cursor->id, "%s", last[0]);
  mysql_data_seek(result, 0);
  loop->read += count;
  put_batch(loop, result);
}

static void *read_rows(void *arg) {
  struct loop *loop = arg;
  struct cursor cursors[SHARDS_MAX];
  MYSQL *mysql = connect_to(&loop->settings);
  for (size_t i = 0; i < loop->settings.shards; i++)
    cursors[i] = (struct cursor){.due = "2000-01-01 00:00:00.000000", .id = "0"};
  for (size_t open = loop->settings.shards; open > 0;) {
    open = 0;
    for (size_t i = 0; i < loop->settings.shards; i++) {
      if (!cursors[i].end)
        read_some(loop, mysql, i, &cursors[i]);
      open += !cursors[i].end;
    }
  }
  mysql_close(mysql);
  if (loop->read != loop->settings.rows)
    raw_fail("select", "the number of due rows is not what --rows says");
  pthread_mutex_lock(&loop->lock);
  loop->read_all = true;
  pthread_cond_broadcast(&loop->changed);
  pthread_mutex_unlock(&loop->lock);
  return NULL;
}

/* --- main: sending and confirming --- */

/* Takes what is confirmed to the deleter; waits for the first confirm for at most wait_ms. */
static size_t reap(struct loop *loop, void *sink, int wait_ms) {
  size_t count = loop->sink->reap(sink, loop->reaped, loop->settings.window, wait_ms);
  if (count == 0)
    return 0;
  loop->in_flight -= count;
  pthread_mutex_lock(&loop->lock);
  while (loop->done_count + count > loop->done_max)
    pthread_cond_wait(&loop->changed, &loop->lock);
  memcpy(loop->done + loop->done_count, loop->reaped, count * sizeof *loop->done);
  loop->done_count += count;
  pthread_cond_broadcast(&loop->changed);
  pthread_mutex_unlock(&loop->lock);
  return count;
}

static void reap_until(struct loop *loop, void *sink, size_t in_flight) {
  int64_t heard_us = wall_us();
  while (loop->in_flight > in_flight) {
    if (reap(loop, sink, REAP_MS) > 0)
      heard_us = wall_us();
    else if (wall_us() - heard_us > (int64_t)REPORT_LIMIT_S * 1000000)
      raw_fail("delivery", "no confirm for a minute");
  }
}

static MYSQL_RES *take_batch(struct loop *loop, bool wait) {
  MYSQL_RES *batch = NULL;
  pthread_mutex_lock(&loop->lock);
  while (wait && loop->batch_count == 0 && !loop->read_all)
    pthread_cond_wait(&loop->changed, &loop->lock);
  if (loop->batch_count > 0) {
    batch = loop->batches[0];
    loop->batch_count--;
    memmove(loop->batches, loop->batches + 1, loop->batch_count * sizeof(MYSQL_RES *));
    pthread_cond_broadcast(&loop->changed);
  }
  pthread_mutex_unlock(&loop->lock);
  return batch;
}

static void send_batch(struct loop *loop, void *sink, MYSQL_RES *batch) {
  MYSQL_ROW text;
  if (loop->began_us == 0)
    loop->began_us = wall_us();
  while ((text = mysql_fetch_row(batch))) {
    const unsigned long *lengths = mysql_fetch_lengths(batch);
    const struct raw_row row = {.id = strtoull(text[0], NULL, 10),
                                .due = text[1],
                                .message_id = text[2],
                                .message_id_len = lengths[2],
                                .key = text[3],
                                .key_len = lengths[3],
                                .payload = text[4],
                                .payload_len = lengths[4]};
    reap_until(loop, sink, loop->settings.window - 1);
    loop->sink->send(sink, &row);
    loop->in_flight++;
  }
  mysql_free_result(batch);
}

static void send_all(struct loop *loop, void *sink) {
  for (;;) {
    MYSQL_RES *batch = take_batch(loop, loop->in_flight == 0);
    if (batch)
      send_batch(loop, sink, batch);
    else if (loop->in_flight == 0)
      break;
    reap(loop, sink, batch ? 0 : 1);
  }
  pthread_mutex_lock(&loop->lock);
  loop->confirmed_all = true;
  pthread_cond_broadcast(&loop->changed);
  pthread_mutex_unlock(&loop->lock);
}

/* --- the deleter --- */

static int by_number(const void *a, const void *b) {
  const uint64_t *x = a, *y = b;
  return (*x > *y) - (*x < *y);
}

static void delete_rows(struct loop *loop, MYSQL *mysql, uint64_t *ids, size_t count) {
  size_t cap = 128 + count * ID_TEXT, used;
  char *statement = malloc(cap);
  if (!statement)
    raw_fail("delete", "out of memory");
  qsort(ids, count, sizeof *ids, by_number);
  used = (size_t)snprintf(statement, cap, "DELETE FROM `%s` WHERE id IN (", loop->settings.table);
  for (size_t i = 0; i < count; i++)
    used += (size_t)snprintf(statement + used, cap - used, "%s%llu", i ? "," : "", (unsigned long long)ids[i]);
  statement[used++] = ')';
  execute(mysql, statement, used);
  free(statement);
  if (mysql_affected_rows(mysql) != count)
    raw_fail("delete", "rows were gone that nobody else should touch");
  loop->deleted += count;
  if (loop->deletes++ == 0) {
    loop->first_us = wall_us();
    loop->first_deleted = count;
  }
}

/* A full batch, or what there is after GATHER_MS; 0 at the end. */
static size_t take_done(struct loop *loop, uint64_t *ids) {
  struct timespec limit;
  pthread_mutex_lock(&loop->lock);
  while (loop->done_count == 0 && !loop->confirmed_all)
    pthread_cond_wait(&loop->changed, &loop->lock);
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_nsec += GATHER_MS * 1000000L;
  limit.tv_sec += limit.tv_nsec / 1000000000L;
  limit.tv_nsec %= 1000000000L;
  while (loop->done_count < loop->settings.batch && !loop->confirmed_all &&
         pthread_cond_timedwait(&loop->changed, &loop->lock, &limit) == 0)
    ;
  size_t count = loop->done_count < loop->settings.batch ? loop->done_count : loop->settings.batch;
  memcpy(ids, loop->done, count * sizeof *ids);
  loop->done_count -= count;
  memmove(loop->done, loop->done + count, loop->done_count * sizeof *ids);
  pthread_cond_broadcast(&loop->changed);
  pthread_mutex_unlock(&loop->lock);
  return count;
}

static void *delete_confirmed(void *arg) {
  struct loop *loop = arg;
  MYSQL *mysql = connect_to(&loop->settings);
  uint64_t ids[BATCH_MAX];
  for (size_t count; (count = take_done(loop, ids)) > 0;)
    delete_rows(loop, mysql, ids, count);
  loop->ended_us = wall_us();
  mysql_close(mysql);
  return NULL;
}

/* --- start and end --- */

static const struct raw_sink *sink_named(const char *name) {
  static const struct raw_sink *const sinks[] = {&raw_kafka, &raw_amqp, &raw_http, &raw_null};
  for (size_t i = 0; name && i < sizeof sinks / sizeof sinks[0]; i++)
    if (strcmp(sinks[i]->name, name) == 0)
      return sinks[i];
  raw_fail("usage", "see the head of tests/bench/tools/raw_loop.c");
}

static struct raw_settings parse(int argc, char **argv) {
  static const struct option names[] = {{"sink", 1, NULL, 'k'},  {"socket", 1, NULL, 'S'}, {"database", 1, NULL, 'D'},
                                        {"to", 1, NULL, 'B'},    {"topic", 1, NULL, 'T'},  {"rows", 1, NULL, 'n'},
                                        {"table", 1, NULL, 't'}, {"route", 1, NULL, 'r'},  {"shards", 1, NULL, 's'},
                                        {"batch", 1, NULL, 'b'}, {"window", 1, NULL, 'w'}, {NULL, 0, NULL, 0}};
  struct raw_settings s = {.table = "outbox", .route = "bench", .shards = 8, .batch = 1000, .window = 10000};
  for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
    const char **text = c == 'k'   ? &s.sink
                        : c == 'S' ? &s.socket
                        : c == 'D' ? &s.database
                        : c == 'B' ? &s.to
                        : c == 'T' ? &s.topic
                        : c == 't' ? &s.table
                        : c == 'r' ? &s.route
                                   : NULL;
    size_t *number = c == 'n' ? &s.rows : c == 's' ? &s.shards : c == 'b' ? &s.batch : c == 'w' ? &s.window : NULL;
    if (text)
      *text = optarg;
    else if (number)
      *number = strtoul(optarg, NULL, 10);
    else
      raw_fail("usage", "see the head of tests/bench/tools/raw_loop.c");
  }
  if (!s.socket || !s.database || !s.rows || s.shards > SHARDS_MAX || s.batch < 1 || s.batch > BATCH_MAX ||
      s.window < 1 || s.window > WINDOW_MAX)
    raw_fail("usage", "see the head of tests/bench/tools/raw_loop.c");
  return s;
}

static void print(const struct loop *loop) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  printf("{\"rows\": %zu, \"began_us\": %lld, \"first_us\": %lld, \"first_rows\": %zu, \"ended_us\": %lld, "
         "\"selects\": %zu, \"deletes\": %zu, \"cpu_s\": %.3f}\n",
         loop->deleted, (long long)loop->began_us, (long long)loop->first_us, loop->first_deleted,
         (long long)loop->ended_us, loop->selects, loop->deletes,
         (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
             1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec));
}

int main(int argc, char **argv) {
  struct loop *loop = calloc(1, sizeof *loop);
  pthread_t reader, deleter;
  if (!loop)
    raw_fail("start", "out of memory");
  loop->settings = parse(argc, argv);
  loop->sink = sink_named(loop->settings.sink);
  loop->done_max = loop->settings.window > BATCH_MAX ? loop->settings.window : BATCH_MAX;
  loop->done = calloc(loop->done_max, sizeof *loop->done);
  loop->reaped = calloc(loop->settings.window, sizeof *loop->reaped);
  if (!loop->done || !loop->reaped)
    raw_fail("start", "out of memory");
  pthread_mutex_init(&loop->lock, NULL);
  pthread_cond_init(&loop->changed, NULL);
  void *sink = loop->sink->open(&loop->settings);
  if (pthread_create(&reader, NULL, read_rows, loop) != 0 ||
      pthread_create(&deleter, NULL, delete_confirmed, loop) != 0)
    raw_fail("start", "no thread");
  send_all(loop, sink);
  pthread_join(reader, NULL);
  pthread_join(deleter, NULL);
  print(loop);
  loop->sink->close(sink);
  free(loop->done);
  free(loop->reaped);
  free(loop);
  return 0;
}
