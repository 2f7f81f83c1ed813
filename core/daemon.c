/* SPDX-License-Identifier: MIT */
#include "core/daemon.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/sync.h"
#include "core/modules.h"
#include "core/notify.h"
#include "core/realtime.h"

/* What is still to be written when somebody asks a second time has that long. */
enum { HURRY_MS = 5000 };

struct daemon {
  const char *config_path;
  bool on_hold;
  const struct daemon_parts *parts;
  struct module_registry *modules;
  struct engine *engine;
  atomic_int_fast64_t drain_timeout_ms; /* a reload may come from a thread of the admin listener */
  bool drains;                          /* what is in flight may end before the engine is stopped */
  struct notifier notifier;
  struct mutex reload_lock; /* one reload at a time: SIGHUP and the admin listener */
  struct thread ender;      /* of a stop; as long as the process: cut_off() leaves it running */
};

static bool reload(void *handle, struct err *err) {
  struct daemon *daemon = handle;
  struct config *next = NULL;
  mutex_lock(&daemon->reload_lock);
  notify_state(&daemon->notifier, "RELOADING=1");
  bool loaded = config_load(daemon->config_path, daemon->modules, &next, err);
  /* Once the engine has it, another thread may drop it: what is needed is read before. */
  int64_t drain_timeout_ms = loaded ? next->engine.drain_timeout_ms : 0;
  int level = loaded ? next->log.level : 0, format = loaded ? next->log.format : 0;
  bool taken = loaded && engine_reload(daemon->engine, next, err);
  if (taken) {
    daemon->drain_timeout_ms = drain_timeout_ms;
    log_set_level((enum log_level)level);
    log_set_format((enum log_format)format);
    log_info("DUEBOX-RELOADED", "the configuration is in use: %s", daemon->config_path);
  } else {
    if (loaded)
      config_free(&next);
    engine_reload_refused(daemon->engine);
    log_error("DUEBOX-RELOAD-REFUSED", "nothing was changed: %s", err->text);
  }
  notify_state(&daemon->notifier, "READY=1");
  mutex_unlock(&daemon->reload_lock);
  return taken;
}

/* The signals that mean something; blocked in all threads, taken by the main thread only. */
static void daemon_signals(sigset_t *set) {
  sigemptyset(set);
  sigaddset(set, SIGTERM);
  sigaddset(set, SIGINT);
  sigaddset(set, SIGHUP);
}

void daemon_block_signals(void) {
  sigset_t signals;
  daemon_signals(&signals);
  pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

/* Serves signals until the engine is to end. false: the engine has failed. */
static bool serve(struct daemon *daemon, const sigset_t *signals) {
  const struct timespec second = {.tv_sec = 1};
  for (;;) {
    int signal = sigtimedwait(signals, NULL, &second);
    struct err err = {0};
    if (signal == SIGHUP) {
      (void)!reload(daemon, &err); /* it has logged what happened */
    } else if (signal == SIGTERM || signal == SIGINT) {
      return true;
    } else if (engine_failed(daemon->engine)) {
      log_error("DUEBOX-FAILED", "%s", engine_failed(daemon->engine));
      return false;
    }
    notify_alive(&daemon->notifier);
  }
}

static void end(void *handle) {
  struct daemon *daemon = handle;
  if (daemon->drains)
    engine_drain(daemon->engine, daemon->drain_timeout_ms);
  daemon->parts->stop_admin(daemon->parts->ctx);
  engine_stop(daemon->engine);
}

/* Ends all threads, as long as that may take and nobody asks again; then it has HURRY_MS. False: some go on. */
static bool end_in_time(struct daemon *daemon, const sigset_t *signals) {
  const struct timespec step = {.tv_nsec = 50 * 1000 * 1000};
  int64_t deadline = INT64_MAX;
  if (!thread_start(&daemon->ender, "end", end, daemon)) {
    end(daemon);
    return true;
  }
  while (!thread_join_within(&daemon->ender, 0)) {
    int signal = sigtimedwait(signals, NULL, &step);
    if (deadline == INT64_MAX && (signal == SIGTERM || signal == SIGINT)) {
      log_warn("DUEBOX-HURRY", "asked a second time: ending now, what is in flight may be sent again");
      engine_hurry(daemon->engine);
      deadline = clock_mono_us() + (int64_t)HURRY_MS * 1000;
    }
    if (clock_mono_us() > deadline)
      return false;
    notify_again(&daemon->notifier);
  }
  return true;
}

/* While some threads go on, what they use must stay there: no cleaning up. */
static _Noreturn void cut_off(int code) {
  log_warn("DUEBOX-CUT-OFF",
           "the database, or a plugin, has not let go within %d s: leases end by themselves, and outcomes that could "
           "not be written may be sent again",
           HURRY_MS / 1000);
  log_info("DUEBOX-STOPPED", "code=%d", code);
  _exit(code);
}

static int run_engine(struct daemon *daemon, struct config *config, const struct store *store,
                      const sigset_t *signals) {
  const struct daemon_parts *parts = daemon->parts;
  struct err err = {0};
  daemon->drain_timeout_ms = config->engine.drain_timeout_ms;
  realtime_bind(config->engine.cpus);
  if (!engine_start(store, config, &daemon->engine, &err)) {
    log_error("DUEBOX-START", "%s", err.text);
    config_free(&config);
    return EX_SOFTWARE;
  }
  if (daemon->on_hold)
    engine_hold(daemon->engine);
  int code = EX_SOFTWARE;
  if (!parts->start_admin(parts->ctx, daemon->engine, config, reload, daemon, &err)) {
    log_error("DUEBOX-ADMIN", "%s", err.text);
    code = EX_UNAVAILABLE;
  } else if (!engine_join(daemon->engine, &err)) {
    log_error("DUEBOX-START", "%s", err.text);
  } else {
    log_info("DUEBOX-STARTED", "version=%s config=%s", DUEBOX_VERSION, daemon->config_path);
    if (daemon->on_hold)
      log_warn("DUEBOX-HELD", "nothing is sent until the daemon is started without --hold; see: duebox doctor");
    notify_state(&daemon->notifier, "READY=1");
    code = serve(daemon, signals) ? EX_OK : EX_SOFTWARE;
    daemon->drains = code == EX_OK;
  }
  if (daemon->drains)
    log_info("DUEBOX-DRAINING", "asked to end; what is in flight has %lld ms for that",
             (long long)daemon->drain_timeout_ms);
  notify_state(&daemon->notifier, "STOPPING=1");
  if (!end_in_time(daemon, signals))
    cut_off(code);
  engine_free(&daemon->engine);
  log_info("DUEBOX-STOPPED", "code=%d", code);
  return code;
}

/* The usual soft limit is for programs that use select(). */
static void raise_open_files(void) {
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files); /* /metrics shows what came of it */
  }
}

int daemon_run(const char *config_path, bool on_hold, const struct daemon_parts *parts) {
  struct daemon daemon = {.config_path = config_path, .on_hold = on_hold, .parts = parts};
  struct config *config = NULL;
  struct store store = {0};
  struct err err = {0};
  int code = EX_CONFIG;
  sigset_t signals;
  daemon_block_signals();
  daemon_signals(&signals);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN); /* a log file at its limit is a full disk */
  raise_open_files();
  mutex_init(&daemon.reload_lock);
  notify_init(&daemon.notifier);

  daemon.modules = modules_new();
  if (!daemon.modules || !config_load(config_path, daemon.modules, &config, &err)) {
    log_error("DUEBOX-CONFIG", "%s", daemon.modules ? err.text : "out of memory");
    goto out;
  }
  log_setup((enum log_level)config->log.level, (enum log_format)config->log.format, 2);
  if (!parts->make_store(parts->ctx, config, &store, &err)) {
    log_error("DUEBOX-CONFIG", "%s", err.text);
    config_free(&config);
    goto out;
  }
  code = run_engine(&daemon, config, &store, &signals);
  parts->drop_store(parts->ctx, &store);
out:
  notify_destroy(&daemon.notifier);
  mutex_destroy(&daemon.reload_lock);
  modules_free(&daemon.modules);
  return code;
}
