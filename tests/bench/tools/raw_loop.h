/* SPDX-License-Identifier: MIT
 *
 * tests/bench/tools/raw_loop.h - the port between the raw loop and its destinations.
 *
 * A destination belongs to the main thread. It is never given more rows than the window before they come back from
 * reap(); what it needs of a row after send() it copies. A fault ends the process.
 */
#ifndef TESTS_BENCH_RAW_LOOP_H
#define TESTS_BENCH_RAW_LOOP_H

#include <stddef.h>
#include <stdint.h>

struct raw_settings {
  const char *sink, *socket, *database, *table, *route;
  const char *to, *topic; /* brokers and topic, URL and queue, URL and NULL, NULL and NULL */
  size_t rows, shards, batch, window;
};

/* Valid during send(). */
struct raw_row {
  uint64_t id;
  const char *message_id, *due, *key, *payload; /* due as SQL writes it; all NUL-terminated */
  size_t message_id_len, key_len, payload_len;
};

struct raw_sink {
  const char *name;
  void *(*open)(const struct raw_settings *settings);
  void (*send)(void *sink, const struct raw_row *row);
  /* Ids of rows that are confirmed, at most cap of them; waits for the first one for at most wait_ms. */
  size_t (*reap)(void *sink, uint64_t *ids, size_t cap, int wait_ms);
  void (*close)(void *sink);
};

extern const struct raw_sink raw_kafka, raw_amqp, raw_http, raw_null;

enum { RAW_DUE_TEXT = 28 };

/* "2026-01-02 03:04:05.123456" to "2026-01-02T03:04:05.123456Z", as the plugins write it. */
void raw_due_header(const char *due, char out[RAW_DUE_TEXT]);

_Noreturn void raw_fail(const char *what, const char *why);

#endif
