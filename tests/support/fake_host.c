/* SPDX-License-Identifier: MIT
 *
 * tests/support/fake_host.c - see fake_host.h. The instance's life and the host table; tasks are in fake_tasks.c and
 * results in fake_results.c.
 */
#include "tests/support/fake_host_impl.h"
#include "tests/support/own_time.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

enum {
  STARTED_MS = 500, /* events of the start have passed by then */
  WAKEUP_MS = 1500, /* own time (own_time.h), with sanitizers */
  SLEEPS = 20,
  SLEEP_MS = 100,
};

int64_t fake_host_now_ms(void) {
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

struct waker {
  struct fake_host *host;
  int64_t starved_ms; /* how long it got no processor before the wake-up */
};

static void *wake_once(void *arg) {
  struct waker *waker = arg;
  waker->starved_ms = own_time_starved_ms();
  fake_host_wakeup(waker->host);
  return NULL;
}

static void *wake_later(void *arg) {
  usleep(50000); /* likely inside poll(); before it is fine too */
  return wake_once(arg);
}

/* Several times over: a library's own timers may end one poll() by chance. */
static void check_wake(struct fake_host *host, void *(*wake)(void *)) {
  for (int64_t end = fake_host_now_ms() + STARTED_MS; fake_host_now_ms() < end;)
    fake_host_poll(host, 50);
  for (int round = 0; round < 5; round++) {
    pthread_t thread;
    struct waker waker = {.host = host};
    int64_t begin = own_time_ms();
    assert_int_equal(pthread_create(&thread, NULL, wake, &waker), 0);
    if (wake == wake_once)
      pthread_join(thread, NULL);
    fake_host_poll(host, 20000);
    int64_t took = own_time_ms() - begin;
    if (wake != wake_once)
      pthread_join(thread, NULL);
    took -= waker.starved_ms;
    if (took > WAKEUP_MS)
      fail_msg("poll(20 s) returned %lld ms after a wakeup()", (long long)took);
  }
}

/* A wake-up ends one poll(), and not those that follow: the driver would use a whole processor from then on. */
static void check_sleep(struct fake_host *host) {
  int64_t begin = fake_host_now_ms();
  for (int i = 0; i < SLEEPS; i++)
    fake_host_poll(host, SLEEP_MS);
  int64_t took = fake_host_now_ms() - begin;
  if (took < SLEEPS * SLEEP_MS / 4) /* a library's own timers may end some */
    fail_msg("%d times poll(%d ms) took %lld ms in all: the driver does not sleep", SLEEPS, SLEEP_MS, (long long)took);
}

void fake_host_check_wakeup(struct fake_host *host) {
  check_wake(host, wake_later);
  check_wake(host, wake_once); /* a wake-up just before poll() must not be lost either */
  check_sleep(host);
}

void *fake_grow(void *items, size_t count, size_t *cap, size_t item) {
  if (count < *cap)
    return items;
  *cap = *cap ? *cap * 2 : 64;
  items = realloc(items, *cap * item);
  if (!items)
    abort();
  return items;
}

void fake_breach(struct fake_host *host, const char *fmt, ...) {
  if (host->breach[0])
    return; /* the first one is the cause */
  va_list args;
  va_start(args, fmt);
  vsnprintf(host->breach, sizeof(host->breach), fmt, args);
  va_end(args);
}

static void host_log(void *ctx, enum duebox_log_level level, const char *id, const char *fmt, ...) {
  struct fake_host *host = ctx;
  char text[1024];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof(text), fmt, args);
  va_end(args);
  pthread_mutex_lock(&host->lock);
  host->log_ids = fake_grow(host->log_ids, host->log_count, &host->log_cap, sizeof(*host->log_ids));
  snprintf(host->log_ids[host->log_count++].id, sizeof(host->log_ids->id), "%s", id);
  pthread_mutex_unlock(&host->lock);
  if (host->verbose)
    fprintf(stderr, "[%s] %d %s %s\n", host->name, (int)level, id, text);
}

static void host_health(void *ctx, bool up, const char *text) {
  struct fake_host *host = ctx;
  pthread_mutex_lock(&host->lock);
  host->health = up;
  host->unread[0] = '\0';
  pthread_mutex_unlock(&host->lock);
  if (host->verbose)
    fprintf(stderr, "[%s] health %s %s\n", host->name, up ? "up" : "down", text ? text : "");
}

static void host_unread(void *ctx, const char *text) {
  struct fake_host *host = ctx;
  if (!text || !text[0])
    fake_breach(host, "unread() without a reason");
  host_health(ctx, false, text);
  pthread_mutex_lock(&host->lock);
  snprintf(host->unread, sizeof(host->unread), "%s", text);
  pthread_mutex_unlock(&host->lock);
}

bool fake_host_unread(struct fake_host *host, const char *part) {
  pthread_mutex_lock(&host->lock);
  bool is = host->unread[0] && strstr(host->unread, part);
  pthread_mutex_unlock(&host->lock);
  return is;
}

int fake_host_health(struct fake_host *host) {
  pthread_mutex_lock(&host->lock);
  int health = host->health;
  pthread_mutex_unlock(&host->lock);
  return health;
}

size_t fake_host_logged(struct fake_host *host, const char *id) {
  size_t count = 0;
  pthread_mutex_lock(&host->lock);
  for (size_t i = 0; i < host->log_count; i++)
    count += strcmp(host->log_ids[i].id, id) == 0;
  pthread_mutex_unlock(&host->lock);
  return count;
}

static const struct duebox_plugin *find_plugin(const struct fake_host_config *config) {
  if (config->plugin)
    return config->plugin;
  void *module = dlopen(config->module, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!module)
    fail_msg("cannot load the plugin: %s", dlerror());
  const struct duebox_plugin *plugin = dlsym(module, DUEBOX_PLUGIN_SYMBOL);
  if (!plugin)
    fail_msg("%s exports no %s", config->module, DUEBOX_PLUGIN_SYMBOL);
  return plugin;
}

static void judge(const struct duebox_plugin *plugin) {
  assert_int_equal(plugin->magic, DUEBOX_PLUGIN_MAGIC);
  assert_int_equal(plugin->abi_major, DUEBOX_ABI_MAJOR);
  assert_int_equal(plugin->size, sizeof(*plugin));
  assert_true(plugin->instance_size > 0);
}

struct fake_host *fake_host_new(const struct fake_host_config *config) {
  const struct duebox_plugin *plugin = find_plugin(config);
  judge(plugin);
  struct fake_host *host = calloc(1, sizeof(*host));
  assert_non_null(host);
  host->plugin = plugin;
  host->inst = calloc(1, plugin->instance_size);
  assert_non_null(host->inst);
  host->name = config->name ? config->name : plugin->name;
  host->verbose = getenv("DUEBOX_TEST_LOG") != NULL;
  host->health = -1;
  host->room = SIZE_MAX;
  pthread_mutex_init(&host->lock, NULL);
  host->table = (struct duebox_host){
      .struct_size = sizeof(host->table),
      .ctx = host,
      .complete = fake_complete,
      .result = fake_take_result,
      .log = host_log,
      .expand = fake_expand,
      .health = host_health,
      .unread = host_unread,
  };
  host->config = (struct duebox_instance_config){
      .struct_size = sizeof(host->config),
      .role = config->role,
      .name = host->name,
      .options = config->options,
      .source = config->source,
      .max_payload = config->max_payload ? config->max_payload : 1 << 20,
      .max_record = config->max_record ? config->max_record : 64 << 10,
      .max_inflight = config->max_inflight ? config->max_inflight : 1000,
      .outbox = "shop.outbox",
  };
  return host;
}

bool fake_host_create(struct fake_host *host, struct duebox_error *err) {
  host->created = true; /* destroy() is owed after a failure too */
  return host->plugin->create(host->inst, &host->config, &host->table, err);
}

void fake_host_start(struct fake_host *host) {
  struct duebox_error err = {.text = ""};
  host->driver = pthread_self();
  if (!host->plugin->start(host->inst, &err))
    fail_msg("%s: start failed: %s", host->name, err.text);
  host->started = true;
}

struct fake_host *fake_host_open(const struct fake_host_config *config) {
  struct fake_host *host = fake_host_new(config);
  struct duebox_error err = {.text = ""};
  if (!fake_host_create(host, &err))
    fail_msg("%s: create failed: %s", host->name, err.text);
  fake_host_start(host);
  return host;
}

void fake_host_poll(struct fake_host *host, int timeout_ms) {
  host->driver = pthread_self();
  host->plugin->poll(host->inst, timeout_ms);
}

void fake_host_wakeup(struct fake_host *host) { host->plugin->wakeup(host->inst); }

void fake_host_close(struct fake_host *host) { host->plugin->close(host->inst); }

int64_t fake_host_stop(struct fake_host *host, int deadline_ms) {
  int64_t begin = own_time_ms();
  host->driver = pthread_self();
  host->plugin->stop(host->inst, deadline_ms);
  int64_t took = own_time_ms() - begin;
  pthread_mutex_lock(&host->lock);
  host->stopped = true;
  for (size_t i = 0; i < host->task_count; i++)
    if (host->tasks[i].outcome.accepted && !host->tasks[i].outcome.completed)
      fake_breach(host, "stop() left task %s open", host->tasks[i].outcome.message_id);
  pthread_mutex_unlock(&host->lock);
  return took;
}

static void free_records(struct fake_host *host) {
  for (size_t i = 0; i < host->task_count; i++) {
    fake_task_drop(&host->tasks[i]);
    free(host->tasks[i].outcome.record);
  }
  for (size_t i = 0; i < host->result_count; i++)
    free(host->results[i].body);
  free(host->tasks);
  free(host->results);
  free(host->log_ids);
}

void fake_host_free(struct fake_host *host) {
  if (host->started && !host->stopped)
    fake_host_stop(host, 1000);
  if (host->created)
    host->plugin->destroy(host->inst);
  char breach[sizeof(host->breach)];
  memcpy(breach, host->breach, sizeof(breach));
  free_records(host);
  pthread_mutex_destroy(&host->lock);
  free(host->inst);
  free(host);
  if (breach[0])
    fail_msg("the plugin broke its contract: %s", breach);
}

bool fake_host_wait(struct fake_host *host, bool (*done)(void *ctx), void *ctx, int timeout_ms) {
  int64_t end = fake_host_now_ms() + timeout_ms;
  while (!done(ctx)) {
    if (fake_host_now_ms() >= end)
      return false;
    fake_host_poll(host, 10);
  }
  return true;
}
