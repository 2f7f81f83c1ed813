/* SPDX-License-Identifier: MIT
 *
 * tests/support/fake_host.h - a small host that runs one plugin instance under a test.
 *
 * It plays the core's part of duebox/plugin.h and watches the plugin's part: every breach of the contract (a second
 * completion, a completion nobody asked for, a report after stop(), a failure without a text) is kept and makes
 * fake_host_free() fail the test. A task's memory is freed the moment it is completed and the array given to submit()
 * when submit() returns, so that AddressSanitizer sees a plugin that looks at them later.
 *
 * Threads: the thread that calls these functions is the instance's driver. What the plugin reports may come from any
 * thread; a mutex guards the records. Only fake_host_wakeup() may be called beside the driver.
 */
#ifndef TESTS_SUPPORT_FAKE_HOST_H
#define TESTS_SUPPORT_FAKE_HOST_H

#include <duebox/plugin.h>

struct fake_host;

struct fake_host_config {
  const struct duebox_plugin *plugin; /* linked into the test, or NULL: */
  const char *module;                 /* path of the .so to load */
  enum duebox_role role;
  const void *options;
  const void *source;
  const char *name;      /* NULL = the plugin's name */
  int64_t max_payload;   /* 0 = 1 MiB */
  int64_t max_record;    /* 0 = 64 KiB */
  uint32_t max_inflight; /* 0 = 1000 */
};

/* What to put into a task. Zero means: a message id of its own, route "test.route", attempt 1, timeout 30 s, priority
 * 5, due now, nothing in the optional fields. Everything is copied, except route_data. */
struct fake_task {
  const char *message_id;
  const char *route;
  uint32_t attempt;
  uint32_t timeout_ms;
  int64_t due_us;
  uint8_t priority;
  struct duebox_bytes key;
  struct duebox_bytes payload;
  struct duebox_bytes checkpoint;
  const struct duebox_header *headers;
  size_t header_count;
  const char *reply_to;
  const void *route_data;
  bool result_awaited;
};

struct fake_outcome {
  char message_id[64];
  uint32_t attempt;
  bool accepted; /* submit() took it */
  bool completed;
  enum duebox_outcome_class cls;
  enum duebox_scope scope;
  enum duebox_answer answer;
  int64_t retry_after_ms;
  bool blameless, recalled;
  char error_class[64];
  char message[512];
  char *record; /* NULL, or record_len bytes and a NUL */
  size_t record_len;
};

enum fake_ack { FAKE_OPEN = 0, FAKE_COMMITTED, FAKE_REFUSED };

struct fake_result {
  char *body;
  size_t len, full_len;
  bool truncated;
  char origin[128];
  uint64_t cookie;
  enum fake_ack ack;
};

int64_t fake_host_now_ms(void); /* monotonic */

/* Loads and judges the plugin, allocates the instance; fails the test when there is no such plugin. */
struct fake_host *fake_host_new(const struct fake_host_config *config);
bool fake_host_create(struct fake_host *host, struct duebox_error *err);
/* new + create + start; fails the test with the plugin's text. */
struct fake_host *fake_host_open(const struct fake_host_config *config);
void fake_host_start(struct fake_host *host);
void fake_host_poll(struct fake_host *host, int timeout_ms);
void fake_host_wakeup(struct fake_host *host);
/* Fails the test when wakeup() does not end poll(), or ends more than the one. */
void fake_host_check_wakeup(struct fake_host *host);
void fake_host_close(struct fake_host *host);
/* stop(); returns how long it took, in milliseconds, less the time in which this thread got no processor. */
int64_t fake_host_stop(struct fake_host *host, int deadline_ms);
/* Stops (1 s) if that is still to do, destroys, frees, and fails the test on any breach of the contract. */
void fake_host_free(struct fake_host *host);
/* Polls until done(ctx) is true; false after timeout_ms. */
bool fake_host_wait(struct fake_host *host, bool (*done)(void *ctx), void *ctx, int timeout_ms);

/* Sink. A task is added, then offered in order until it is accepted. Tasks are numbered from 0. */
size_t fake_host_add(struct fake_host *host, const struct fake_task *task);
/* Offers what is not accepted yet; returns how many submit() took. */
size_t fake_host_offer(struct fake_host *host);
/* recall(), where the plugin has it; false: it has none. */
bool fake_host_recall(struct fake_host *host);
size_t fake_host_tasks(struct fake_host *host);
size_t fake_host_accepted(struct fake_host *host);
size_t fake_host_completed(struct fake_host *host);
size_t fake_host_count(struct fake_host *host, enum duebox_outcome_class cls);
/* Offers and polls until every task added has been completed; false after timeout_ms. */
bool fake_host_settle(struct fake_host *host, int timeout_ms);
struct fake_outcome fake_host_outcome(struct fake_host *host, size_t index);

/* Source. The host takes `room` more results and is full then. Unlimited at first. */
void fake_host_set_room(struct fake_host *host, size_t room);
void fake_host_resume(struct fake_host *host, size_t room);
size_t fake_host_results(struct fake_host *host);
bool fake_host_wait_results(struct fake_host *host, size_t count, int timeout_ms);
struct fake_result fake_host_result(struct fake_host *host, size_t index);
void fake_host_ack(struct fake_host *host, size_t index, bool committed);
bool fake_host_refused(struct fake_host *host); /* result() has answered "full" and resume() has not followed */

/* What was said: -1 nothing yet, 0 down, 1 up. */
int fake_host_health(struct fake_host *host);
/* Whether the source has said last that it is unread, with this in the reason. */
bool fake_host_unread(struct fake_host *host, const char *part);
size_t fake_host_logged(struct fake_host *host, const char *id);

/* Fills a zeroed options struct with the defaults of its rows. */
void fake_options(const struct duebox_option *rows, void *out);

#endif
