/* SPDX-License-Identifier: MIT
 *
 * Following what commits: outbox/binlog.c. The log tells of a row a moment before it can be seen.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store_double_ops.h"

enum { HEARTBEAT_US = 2 * 1000 * 1000 };

struct store_watch {
  struct store_session session; /* of its own, which runs no units */
  bool ended;
  struct store_hint hints[STORE_HINTS_MAX];
};

enum store_status double_watch(void *store, const char *host, int64_t max_payload, struct store_watch **out,
                               struct err *err) {
  struct store_watch *watch = *out = calloc(1, sizeof *watch);
  (void)max_payload;
  if (!watch)
    world_fail("no memory for a watch");
  struct store_session *ss = &watch->session;
  ss->store = store;
  ss->db = ss->store->db;
  ss->generation = ss->store->generation;
  bool connected = double_connect(ss, err);
  if (connected && !ss->db->no_log) {
    ss->conn->feed = table_alloc(sizeof *ss->conn->feed);
    (void)snprintf(ss->conn->feed->host, sizeof ss->conn->feed->host, "%s", host ? host : "");
    return STORE_OK;
  }
  double_watch_close(out);
  if (!connected)
    return STORE_DOWN;
  err_set(err, DB_E_BINLOG, "the server writes no binlog; %s", db_error_cure(DB_E_BINLOG));
  return STORE_REFUSED;
}

static bool is_gone(const struct store_watch *watch) {
  const struct store_session *ss = &watch->session;
  return watch->ended || !ss->conn->alive || world_now_us() < ss->db->down_until_us ||
         ss->generation != ss->store->generation;
}

static bool has_news(void *arg) {
  const struct store_watch *watch = arg;
  table_pump(watch->session.db);
  return is_gone(watch) || watch->session.conn->feed->count || watch->session.conn->feed->altered;
}

enum store_status double_watch_next(struct store_watch *watch, const struct store_hint **hints, size_t *count,
                                    struct err *err) {
  struct table *db = watch->session.db;
  struct feed *feed = watch->session.conn->feed;
  *count = 0;
  *hints = watch->hints;
  world_point(POINT_STORE, watch->session.conn->thread);
  (void)world_wait(has_news, watch, world_now_us() + HEARTBEAT_US);
  if (!is_gone(watch))
    world_sleep(chance_log_between(&db->chance, db->latency_low_us + 1, db->latency_high_us + 2));
  if (is_gone(watch)) {
    err_set(err, 2013, "the binlog is followed no more: lost connection");
    return STORE_DOWN;
  }
  if (feed->altered) {
    feed->altered = false;
    err_set(err, 0, "the table is being altered");
    return STORE_BUSY;
  }
  memcpy(watch->hints, feed->hints, feed->count * sizeof *feed->hints);
  *count = feed->count;
  feed->count = 0;
  return STORE_OK;
}

void double_watch_end(struct store_watch *watch) { watch->ended = true; }

void double_watch_close(struct store_watch **watch) {
  if (!*watch)
    return;
  connection_close((*watch)->session.db, &(*watch)->session.conn);
  free(*watch);
  *watch = NULL;
}
