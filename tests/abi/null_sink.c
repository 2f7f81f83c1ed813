/* SPDX-License-Identifier: MIT
 *
 * tests/abi/null_sink.c - a plugin without a destination, for tests and measurements.
 *
 * As a sink it completes every task, at once or after `delay`, as its options, the route's options or the task's header
 * `null-outcome` say. Payload "crash" aborts the process, payload "hang" keeps poll() until the file `hang_until` is
 * there, payload "forget" is never completed; create() waits while the file `create_waits` is there; the destination is
 * said to be away while the file `away_while` is. As a source it hands over the texts of `records` once. Built twice:
 * "null" as it is, "null_long" with long calls and answers (NULL_LONG). Driver thread only, but for wakeup().
 */
#include <duebox/plugin.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#ifdef NULL_LONG
#define NAME "null_long"
#define CAPABILITIES (DUEBOX_CAP_SINK | DUEBOX_CAP_LONG_CALLS | DUEBOX_CAP_ANSWERS)
#else
#define NAME "null"
#define CAPABILITIES (DUEBOX_CAP_SINK | DUEBOX_CAP_SOURCE)
#endif

struct null_options {
  int64_t delay_ms;
  int64_t fail_every;
  int outcome;
  int answer;
  const char *hang_until;
  const char *create_waits;
  const char *create_fails;
  const char *full_while;
  const char *away_while;
  struct duebox_map settings;
  const char *password;
  const char *url;
  const char *ca_file;
};

struct null_route {
  int outcome; /* 0 = the instance's */
  const char *topic;
  const char *key;
  const char *secret;
};

struct null_source {
  const char *topic;
  struct duebox_list records;
};

struct open_task {
  uint64_t token;
  int64_t ready_ms;
  enum duebox_outcome_class cls;
};

struct null_instance {
  const struct duebox_host *host;
  const struct null_options *options;
  const struct null_source *source;
  struct open_task *open; /* ring */
  size_t cap, head, count;
  uint64_t seen;
  size_t offered; /* records of the source handed over so far */
  int wake_fd;
  bool closed, full, hang, away;
};

/* In the order of enum duebox_outcome_class. */
static const char *const outcomes[] = {"delivered", "rejected", "retry", "unavailable", "unknown", "gone", NULL};
static const char *const route_outcomes[] = {"default",     "delivered", "rejected", "retry",
                                             "unavailable", "unknown",   "gone",     NULL};
static const char *const answers[] = {"none", "done", "later", NULL};

static int64_t now_ms(void) {
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static bool null_check(const void *options, struct duebox_error *err) {
  const struct null_options *o = options;
  if (o->fail_every > 0 && o->outcome == 0) {
    snprintf(err->text, sizeof err->text, "fail_every has no effect with outcome: delivered; choose another outcome");
    return false;
  }
  return true;
}

static bool null_check_route(const void *options, const void *route, struct duebox_error *err) {
  const struct null_route *r = route;
  if (r->key && !r->topic) {
    snprintf(err->text, sizeof err->text, "key has no effect without topic; add it or remove key");
    return false;
  }
  return true;
}

static bool null_create(void *inst, const struct duebox_instance_config *config, const struct duebox_host *host,
                        struct duebox_error *err) {
  struct null_instance *n = inst;
  n->host = host;
  n->options = config->options;
  n->source = config->source;
  while (n->options->create_waits && access(n->options->create_waits, F_OK) == 0)
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
  if (n->options->create_fails) {
    snprintf(err->text, sizeof err->text, "%s", n->options->create_fails);
    return false;
  }
  n->cap = config->max_inflight ? config->max_inflight : 1;
  n->open = calloc(n->cap, sizeof *n->open);
  n->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (n->open && n->wake_fd >= 0)
    return true;
  snprintf(err->text, sizeof err->text, "out of memory or file descriptors");
  return false;
}

static bool null_start(void *inst, struct duebox_error *err) {
  const struct null_instance *n = inst;
  n->host->health(n->host->ctx, true, NULL);
  return true;
}

static bool payload_is(const struct duebox_task *task, const char *text) {
  return task->payload.len == strlen(text) && memcmp(task->payload.data, text, task->payload.len) == 0;
}

static enum duebox_outcome_class by_header(const struct duebox_task *task) {
  for (size_t i = 0; i < task->header_count; i++)
    for (int c = 0; strcmp(task->headers[i].name, "null-outcome") == 0 && outcomes[c]; c++)
      if (strncmp(outcomes[c], task->headers[i].value.data, task->headers[i].value.len) == 0 &&
          strlen(outcomes[c]) == task->headers[i].value.len)
        return (enum duebox_outcome_class)(c + 1);
  return (enum duebox_outcome_class)0;
}

static enum duebox_outcome_class decide(struct null_instance *n, const struct duebox_task *task) {
  const struct null_route *route = task->route_data;
  enum duebox_outcome_class wanted = by_header(task);
  n->seen++;
  if (wanted)
    return wanted;
  if (n->options->fail_every > 0 && n->seen % (uint64_t)n->options->fail_every != 0)
    return DUEBOX_DELIVERED;
  return (enum duebox_outcome_class)(route && route->outcome ? route->outcome : n->options->outcome + 1);
}

static size_t null_submit(void *inst, const struct duebox_task *const *tasks, size_t count) {
  struct null_instance *n = inst;
  size_t taken = 0;
  int64_t ready = now_ms() + n->options->delay_ms;
  if (n->options->full_while && access(n->options->full_while, F_OK) == 0)
    return 0;
  for (; taken < count && !n->closed && n->count < n->cap; taken++) {
    const struct duebox_task *task = tasks[taken];
    if (payload_is(task, "crash"))
      abort();
    if (payload_is(task, "forget"))
      continue;
    n->hang = n->hang || payload_is(task, "hang");
    n->open[(n->head + n->count++) % n->cap] = (struct open_task){task->token, ready, decide(n, task)};
  }
  return taken;
}

static void complete_first(struct null_instance *n, enum duebox_outcome_class cls) {
  uint64_t token = n->open[n->head].token;
  bool delivered = cls == DUEBOX_DELIVERED;
  n->head = (n->head + 1) % n->cap;
  n->count--;
  n->host->complete(n->host->ctx, token,
                    &DUEBOX_OUTCOME(.cls = cls, .answer = delivered ? (enum duebox_answer)n->options->answer : 0,
                                    .error_class = delivered ? NULL : "null.scripted",
                                    .message = delivered ? NULL : "as the test asked for"));
}

static void wait_for_file(const char *path) {
  while (path && access(path, F_OK) != 0)
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

static void offer_records(struct null_instance *n) {
  while (n->source && !n->closed && !n->full && n->offered < n->source->records.count) {
    const char *text = n->source->records.items[n->offered];
    char origin[64];
    snprintf(origin, sizeof origin, "null#%zu", n->offered);
    struct duebox_record record = {.struct_size = sizeof record,
                                   .body = {.data = text, .len = strlen(text)},
                                   .full_len = strlen(text),
                                   .origin = origin};
    n->full = !n->host->result(n->host->ctx, &record, n->offered);
    n->offered += !n->full;
  }
}

static void say_away(struct null_instance *n) {
  bool away = n->options->away_while && access(n->options->away_while, F_OK) == 0;
  if (away != n->away)
    n->host->health(n->host->ctx, !away, NULL);
  n->away = away;
}

static void null_poll(void *inst, int timeout_ms) {
  struct null_instance *n = inst;
  uint64_t ignored;
  say_away(n);
  offer_records(n);
  if (n->count > 0) {
    int64_t left = n->open[n->head].ready_ms - now_ms();
    timeout_ms = left < 0 ? 0 : left < timeout_ms ? (int)left : timeout_ms;
  }
  struct pollfd fd = {.fd = n->wake_fd, .events = POLLIN};
  if (poll(&fd, 1, timeout_ms) > 0 && read(n->wake_fd, &ignored, sizeof ignored) < 0)
    return; /* somebody else's wake-up: the next poll sees it */
  if (n->hang)
    wait_for_file(n->options->hang_until);
  n->hang = false;
  for (int64_t now = now_ms(); n->count > 0 && n->open[n->head].ready_ms <= now;)
    complete_first(n, n->open[n->head].cls);
}

static void null_wakeup(void *inst) {
  const struct null_instance *n = inst;
  uint64_t one = 1;
  if (write(n->wake_fd, &one, sizeof one) < 0)
    return; /* the counter is full, so a wake-up is pending already */
}

static void null_close(void *inst) { ((struct null_instance *)inst)->closed = true; }

static void null_stop(void *inst, int deadline_ms) {
  struct null_instance *n = inst;
  while (n->count > 0)
    complete_first(n, DUEBOX_UNKNOWN);
}

static void null_destroy(void *inst) {
  struct null_instance *n = inst;
  free(n->open);
  if (n->wake_fd > 0)
    close(n->wake_fd);
}

#define AT(field) offsetof(struct null_options, field)
static const struct duebox_option options[] = {
    {"delay", DUEBOX_OPT_DURATION, "0", 0, 3600000, 0, AT(delay_ms), NULL, "time from submit to completion"},
    {"outcome", DUEBOX_OPT_ENUM, "delivered", 0, 0, 0, AT(outcome), outcomes, "what becomes of the tasks"},
    {"fail_every", DUEBOX_OPT_INT, "0", 0, 1000000, 0, AT(fail_every), NULL,
     "only each n-th task gets the outcome, the others are delivered; 0 = all get it"},
    {"answer", DUEBOX_OPT_ENUM, "none", 0, 0, 0, AT(answer), answers,
     "what a delivered task's consumer is said to answer"},
    {"hang_until", DUEBOX_OPT_STRING, NULL, 0, 0, 0, AT(hang_until), NULL,
     "file that ends the hang of payload \"hang\""},
    {"create_waits", DUEBOX_OPT_STRING, NULL, 0, 0, 0, AT(create_waits), NULL, "file that keeps create() waiting"},
    {"create_fails", DUEBOX_OPT_STRING, NULL, 0, 0, 0, AT(create_fails), NULL, "why create() fails"},
    {"full_while", DUEBOX_OPT_STRING, NULL, 0, 0, 0, AT(full_while), NULL, "file that keeps submit() from taking any"},
    {"away_while", DUEBOX_OPT_STRING, NULL, 0, 0, 0, AT(away_while), NULL,
     "file that makes it say that its destination is away"},
    {"settings", DUEBOX_OPT_MAP, NULL, 0, 0, 0, AT(settings), NULL, "free keys, ignored"},
    {"password", DUEBOX_OPT_SECRET, NULL, 0, 0, 0, AT(password), NULL, "a secret, ignored"},
    {"url", DUEBOX_OPT_STRING, NULL, 0, 0, 0, AT(url), NULL, "a broker, ignored"},
    {"ca_file", DUEBOX_OPT_STRING, NULL, 0, 0, DUEBOX_OPT_PATH, AT(ca_file), NULL, "whom to trust, ignored"},
    {.name = NULL}};
#undef AT

#define AT(field) offsetof(struct null_route, field)
static const struct duebox_option route_options[] = {
    {"outcome", DUEBOX_OPT_ENUM, "default", 0, 0, 0, AT(outcome), route_outcomes, "what becomes of this route's tasks"},
    {"topic", DUEBOX_OPT_STRING, NULL, 0, 0, DUEBOX_OPT_TEMPLATE | DUEBOX_OPT_TARGET, AT(topic), NULL,
     "where tasks would go, ignored"},
    {"key", DUEBOX_OPT_STRING, NULL, 0, 0, DUEBOX_OPT_TEMPLATE, AT(key), NULL, "a template, ignored"},
    {"secret", DUEBOX_OPT_SECRET, NULL, 0, 0, 0, AT(secret), NULL, "a secret, ignored"},
    {.name = NULL}};
#undef AT

static const struct duebox_sink_ops sink = {.struct_size = sizeof sink, .submit = null_submit};

#ifndef NULL_LONG
static void null_ack(void *inst, uint64_t cookie, bool committed) {}

static void null_resume(void *inst) { ((struct null_instance *)inst)->full = false; }

#define AT(field) offsetof(struct null_source, field)
static const struct duebox_option source_options[] = {
    {"topic", DUEBOX_OPT_STRING, NULL, 0, 0, DUEBOX_OPT_REQUIRED, AT(topic), NULL, "where consumers answer"},
    {"records", DUEBOX_OPT_LIST, NULL, 0, 0, 0, AT(records), NULL, "result records, handed over once"},
    {.name = NULL}};
#undef AT

static const struct duebox_source_ops source = {.struct_size = sizeof source, .ack = null_ack, .resume = null_resume};
#endif

DUEBOX_EXPORT extern const struct duebox_plugin duebox_plugin_v1;
const struct duebox_plugin duebox_plugin_v1 = {
    DUEBOX_PLUGIN_PREFIX,
    .capabilities = CAPABILITIES,
    .name = NAME,
    .version = "1.0.0",
    .summary = "completes tasks without sending them",
    .options = options,
    .options_size = sizeof(struct null_options),
    .route_options = route_options,
    .route_size = sizeof(struct null_route),
#ifndef NULL_LONG
    .source_options = source_options,
    .source_size = sizeof(struct null_source),
    .source = &source,
#endif
    .instance_size = sizeof(struct null_instance),
    .check = null_check,
    .check_route = null_check_route,
    .create = null_create,
    .start = null_start,
    .poll = null_poll,
    .wakeup = null_wakeup,
    .close = null_close,
    .stop = null_stop,
    .destroy = null_destroy,
    .sink = &sink,
};
