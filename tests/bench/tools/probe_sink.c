/* SPDX-License-Identifier: MIT
 *
 * tests/bench/tools/probe_sink.c - a plugin without a destination that measures the hand-over itself.
 *
 * submit() notes each task in a book (book.h) against its due time, and poll() completes it as delivered: at once, or
 * `delay` later as at a distance, and every `slow_every`th of them `slow` later. stop() writes the book as JSON into
 * the file that the option `book` names. Driver thread only, but for wakeup().
 */
#include <duebox/plugin.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "book.h"

struct probe_options {
  int64_t first, count;
  const char *path;
  int64_t delay_ms, slow_ms, slow_every;
};

/* Tasks that are completed in the order in which they came. */
struct ring {
  struct {
    uint64_t token;
    int64_t due_us; /* when to complete it */
  } * open;
  size_t cap, head, count;
};

enum { QUICK, SLOW, RINGS };

struct probe {
  const struct duebox_host *host;
  const struct probe_options *options;
  struct ring ring[RINGS];
  uint64_t taken;
  int wake_fd;
  bool closed;
  struct book book;
};

static bool probe_create(void *inst, const struct duebox_instance_config *config, const struct duebox_host *host,
                         struct duebox_error *err) {
  struct probe *p = inst;
  p->host = host;
  p->options = config->options;
  for (int i = 0; i < RINGS; i++) {
    p->ring[i].cap = config->max_inflight ? config->max_inflight : 1;
    p->ring[i].open = calloc(p->ring[i].cap, sizeof *p->ring[i].open);
  }
  p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (p->ring[QUICK].open && p->ring[SLOW].open && p->wake_fd >= 0) {
    book_open(&p->book, (uint64_t)p->options->first, (uint64_t)p->options->count);
    return true;
  }
  snprintf(err->text, sizeof err->text, "out of memory or file descriptors");
  return false;
}

static bool probe_start(void *inst, struct duebox_error *err) {
  const struct probe *p = inst;
  p->host->health(p->host->ctx, true, NULL);
  return true;
}

static size_t probe_submit(void *inst, const struct duebox_task *const *tasks, size_t count) {
  struct probe *p = inst;
  size_t taken = 0;
  int64_t now_us = book_now_us();
  for (; taken < count && !p->closed; taken++) {
    const struct duebox_task *task = tasks[taken];
    bool slow = p->options->slow_every && p->taken % (uint64_t)p->options->slow_every == 0;
    struct ring *ring = &p->ring[slow ? SLOW : QUICK];
    if (ring->count == ring->cap)
      break;
    size_t at = (ring->head + ring->count++) % ring->cap;
    ring->open[at].token = task->token;
    ring->open[at].due_us = now_us + 1000 * (slow ? p->options->slow_ms : p->options->delay_ms);
    p->taken++;
    book_arrive(&p->book, task->payload.data, task->payload.len, task->due_us, now_us);
  }
  return taken;
}

static void complete_until(struct probe *p, int64_t until_us) {
  for (int i = 0; i < RINGS; i++)
    for (struct ring *ring = &p->ring[i]; ring->count > 0 && ring->open[ring->head].due_us <= until_us; ring->count--) {
      p->host->complete(p->host->ctx, ring->open[ring->head].token, &DUEBOX_OUTCOME(.cls = DUEBOX_DELIVERED));
      ring->head = (ring->head + 1) % ring->cap;
    }
}

/* How long to wait for what is to be completed next, in milliseconds. */
static int wait_ms(const struct probe *p, int most_ms) {
  int64_t now_us = book_now_us(), least_us = 1000 * (int64_t)most_ms;
  for (int i = 0; i < RINGS; i++)
    if (p->ring[i].count > 0 && p->ring[i].open[p->ring[i].head].due_us - now_us < least_us)
      least_us = p->ring[i].open[p->ring[i].head].due_us - now_us;
  return least_us <= 0 ? 0 : (int)((least_us + 999) / 1000);
}

static void probe_poll(void *inst, int timeout_ms) {
  struct probe *p = inst;
  uint64_t ignored;
  struct pollfd fd = {.fd = p->wake_fd, .events = POLLIN};
  if (poll(&fd, 1, wait_ms(p, timeout_ms)) > 0 && read(p->wake_fd, &ignored, sizeof ignored) < 0)
    return; /* somebody else's wake-up: the next poll sees it */
  complete_until(p, book_now_us());
}

static void probe_wakeup(void *inst) {
  const struct probe *p = inst;
  uint64_t one = 1;
  if (write(p->wake_fd, &one, sizeof one) < 0)
    return; /* the counter is full, so a wake-up is pending already */
}

static void probe_close(void *inst) { ((struct probe *)inst)->closed = true; }

static void probe_stop(void *inst, int deadline_ms) {
  struct probe *p = inst;
  complete_until(p, INT64_MAX);
  FILE *out = p->options->path ? fopen(p->options->path, "w") : NULL;
  if (out) {
    book_print(&p->book, out);
    fclose(out);
  } else if (p->options->path) {
    p->host->log(p->host->ctx, DUEBOX_LOG_ERROR, "PROBE-BOOK", "%s: %s", p->options->path, strerror(errno));
  }
}

static void probe_destroy(void *inst) {
  struct probe *p = inst;
  book_close(&p->book);
  for (int i = 0; i < RINGS; i++)
    free(p->ring[i].open);
  if (p->wake_fd > 0)
    close(p->wake_fd);
}

#define AT(field) offsetof(struct probe_options, field)
static const struct duebox_option options[] = {
    {"first", DUEBOX_OPT_INT, "1", 0, INT64_MAX, 0, AT(first), NULL, "number of the first task that is expected"},
    {"count", DUEBOX_OPT_INT, "0", 0, INT64_MAX, 0, AT(count), NULL, "how many are expected"},
    {"book", DUEBOX_OPT_STRING, NULL, 0, 0, 0, AT(path), NULL, "file that the book is written to"},
    {"delay", DUEBOX_OPT_DURATION, "0ms", 0, 60000, 0, AT(delay_ms), NULL, "how long a task is there"},
    {"slow", DUEBOX_OPT_DURATION, "0ms", 0, 60000, 0, AT(slow_ms), NULL, "how long a slow one is"},
    {"slow_every", DUEBOX_OPT_INT, "0", 0, INT64_MAX, 0, AT(slow_every), NULL, "one of so many is slow; 0 = none"},
    {.name = NULL}};
#undef AT

static const struct duebox_option route_options[] = {{.name = NULL}};
static const struct duebox_sink_ops sink = {.struct_size = sizeof sink, .submit = probe_submit};

DUEBOX_EXPORT extern const struct duebox_plugin duebox_plugin_v1;
const struct duebox_plugin duebox_plugin_v1 = {
    DUEBOX_PLUGIN_PREFIX,
    .capabilities = DUEBOX_CAP_SINK,
    .name = "probe",
    .version = "1.0.0",
    .summary = "measures when tasks are handed over",
    .options = options,
    .options_size = sizeof(struct probe_options),
    .route_options = route_options,
    .route_size = 1,
    .instance_size = sizeof(struct probe),
    .create = probe_create,
    .start = probe_start,
    .poll = probe_poll,
    .wakeup = probe_wakeup,
    .close = probe_close,
    .stop = probe_stop,
    .destroy = probe_destroy,
    .sink = &sink,
};
