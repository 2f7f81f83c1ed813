/* SPDX-License-Identifier: MIT
 *
 * tests/support/fake_results.c - the source side of the fake host: results taken, refused when full, acknowledged.
 */
#include "tests/support/fake_host_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void check_record(struct fake_host *host, const struct duebox_record *record) {
  if (record->struct_size != sizeof(*record))
    fake_breach(host, "a record that does not carry its size");
  if (!record->body.data)
    fake_breach(host, "a record without a body pointer");
  if (!record->origin || !record->origin[0])
    fake_breach(host, "a record without an origin");
  if ((int64_t)record->body.len > host->config.max_record)
    fake_breach(host, "a record of %zu bytes, the limit is %lld", record->body.len, (long long)host->config.max_record);
  if (record->truncated != (record->body.len < record->full_len))
    fake_breach(host, "a record with %zu of %zu bytes and truncated=%d", record->body.len, record->full_len,
                record->truncated);
}

static void keep_record(struct fake_result *kept, const struct duebox_record *record, uint64_t cookie) {
  *kept = (struct fake_result){
      .body = calloc(1, record->body.len + 1),
      .len = record->body.len,
      .full_len = record->full_len,
      .truncated = record->truncated,
      .cookie = cookie,
  };
  if (!kept->body)
    abort();
  memcpy(kept->body, record->body.data, record->body.len);
  snprintf(kept->origin, sizeof(kept->origin), "%s", record->origin);
}

bool fake_take_result(void *ctx, const struct duebox_record *record, uint64_t cookie) {
  struct fake_host *host = ctx;
  bool taken = false;
  pthread_mutex_lock(&host->lock);
  check_record(host, record);
  if (host->stopped)
    fake_breach(host, "a result after stop(): %s", record->origin);
  if (host->full)
    fake_breach(host, "%s was offered between \"full\" and resume()", record->origin);
  for (size_t i = 0; i < host->result_count; i++)
    if (host->results[i].cookie == cookie && host->results[i].ack == FAKE_OPEN)
      fake_breach(host, "%s carries the cookie of a record that is still open", record->origin);
  if (host->room == 0) {
    host->full = true;
    goto out;
  }
  host->room -= host->room != SIZE_MAX;
  host->results = fake_grow(host->results, host->result_count, &host->result_cap, sizeof(*host->results));
  keep_record(&host->results[host->result_count++], record, cookie);
  taken = true;
out:
  pthread_mutex_unlock(&host->lock);
  return taken;
}

void fake_host_set_room(struct fake_host *host, size_t room) {
  pthread_mutex_lock(&host->lock);
  host->room = room;
  pthread_mutex_unlock(&host->lock);
}

void fake_host_resume(struct fake_host *host, size_t room) {
  pthread_mutex_lock(&host->lock);
  host->room = room;
  host->full = false;
  pthread_mutex_unlock(&host->lock);
  host->plugin->source->resume(host->inst);
}

bool fake_host_refused(struct fake_host *host) {
  pthread_mutex_lock(&host->lock);
  bool full = host->full;
  pthread_mutex_unlock(&host->lock);
  return full;
}

size_t fake_host_results(struct fake_host *host) {
  pthread_mutex_lock(&host->lock);
  size_t count = host->result_count;
  pthread_mutex_unlock(&host->lock);
  return count;
}

bool fake_host_wait_results(struct fake_host *host, size_t count, int timeout_ms) {
  int64_t end = fake_host_now_ms() + timeout_ms;
  while (fake_host_results(host) < count) {
    if (fake_host_now_ms() >= end)
      return false;
    fake_host_poll(host, 10);
  }
  return true;
}

struct fake_result fake_host_result(struct fake_host *host, size_t index) {
  pthread_mutex_lock(&host->lock);
  assert_true(index < host->result_count);
  struct fake_result result = host->results[index];
  pthread_mutex_unlock(&host->lock);
  return result;
}

void fake_host_ack(struct fake_host *host, size_t index, bool committed) {
  pthread_mutex_lock(&host->lock);
  assert_true(index < host->result_count);
  struct fake_result *result = &host->results[index];
  assert_int_equal(result->ack, FAKE_OPEN);
  result->ack = committed ? FAKE_COMMITTED : FAKE_REFUSED;
  uint64_t cookie = result->cookie;
  pthread_mutex_unlock(&host->lock);
  host->plugin->source->ack(host->inst, cookie, committed);
}
