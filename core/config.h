/* SPDX-License-Identifier: MIT
 *
 * core/config.h - the configuration after loading: one immutable tree, swapped as a whole on reload.
 *
 * Loading reads one YAML file and its drop-ins (conf.d/ *.yaml beside it, in name order), checks everything strictly,
 * loads plugin modules to know their option rows, and either returns a complete configuration or an error with
 * file:line:column and a suggestion. It never starts anything. All memory belongs to the configuration.
 */
#ifndef CORE_CONFIG_H
#define CORE_CONFIG_H

#include <duebox/plugin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/attr.h"
#include "core/base/err.h"
#include "core/retry.h"

/* How new rows are noticed between two looks. */
enum wake_mode { WAKE_AUTO = 0, WAKE_POLL, WAKE_BINLOG };

struct database_config {
  const char *host; /* NULL when socket is given */
  int64_t port;
  const char *socket; /* unix socket path, or NULL */
  const char *user;
  const char *password; /* "" when none */
  const char *name;     /* schema */
  const char *table;    /* "outbox"; [A-Za-z0-9_]{1,48} */
  const char *outbox;   /* "shop.outbox": what plugins tell outboxes apart by */
  bool tls;             /* required and verified */
  const char *tls_ca;
  const char *server_public_key_file; /* caching_sha2_password over TCP without TLS; never one that the server sends */
  bool allow_plaintext;               /* without TLS to a host that is not loopback */
  int64_t connect_timeout_ms, read_timeout_ms; /* of every connection */
  int wake;                                    /* enum wake_mode */
  const char *migrate_user, *migrate_password; /* `duebox migrate` may use a third user; NULL = user */
  const char *migrate_unread; /* why the file of its password was not read: this user may not; NULL = it was, or none */
};

/* An entry under `plugins:`. */
struct plugin_config {
  const char *name;                   /* "bus" */
  const struct duebox_plugin *module; /* loaded, never unloaded */
  const void *options;                /* filled from module->options */
  uint32_t max_inflight;              /* sum over its routes' concurrency, capped */
  uint32_t capacity;                  /* its instance is made for so many: what a reload may raise the sum to */
};

enum claim_mode { CLAIM_MEMORY = 0, CLAIM_RECORDED };
enum result_mode { RESULT_NONE = 0, RESULT_EXPECTED };

/* What others of an order_key do while one of them is to be tried again. */
enum order_mode { ORDER_BLOCK = 0, ORDER_PARK };

/* An entry under `routes:`. */
struct route_config {
  const char *name;
  const struct plugin_config *plugin; /* `via` */
  const void *options;                /* filled from module->route_options: task.route_data */
  enum claim_mode claim;              /* default: recorded where the module says LONG_CALLS */
  enum result_mode result;
  enum order_mode order;
  int64_t timeout_ms;     /* one attempt, and the wait for its result where one is expected */
  int64_t timeout_max_ms; /* of what rows ask for in its place, unless timeout_ms is longer */
  struct retry_policy retry;
  int64_t give_up_ms;            /* a task older than this since it was due is dead, whatever its budget; 0 = never */
  int64_t concurrency;           /* tasks in flight */
  int64_t inflight_bytes;        /* of payloads, headers and checkpoints in flight */
  size_t max_checkpoint;         /* bytes: of engine.max_checkpoint what its plugin can carry */
  double rate;                   /* tasks per second, 0 = no limit */
  int64_t history_ms;            /* how long a done task stays in outbox_history; 0 = done rows are not kept */
  bool every_attempt;            /* an outbox_attempts row for successful attempts too */
  int64_t breaker;               /* so many failures of a target in a row suspend it; 0 = never */
  bool many_targets;             /* what makes up its target holds placeholders */
  struct duebox_list answers_at; /* where it has: the topics and queues of results that no task may lead to */
  const char *reply_to;          /* where consumers answer: result topic or queue, or callback URL; NULL = none */
  uint64_t answer_to;            /* the entry of results that they are told of: its config_answer_to(); 0 = none */
  bool result_awaited;           /* a result counts that comes otherwise than with a call and than by its callback */
};

/* The most that one attempt of a task may last, whatever its row asks for. */
static inline int64_t route_timeout_most_ms(const struct route_config *route) {
  return route->timeout_max_ms > route->timeout_ms ? route->timeout_max_ms : route->timeout_ms;
}

/* How long one attempt of a task may last, in ms: as its row asks (own_ms; 0 = it does not), within what the route
 * lets it have. */
static inline int64_t route_attempt_ms(const struct route_config *route, uint32_t own_ms) {
  int64_t most_ms = route_timeout_most_ms(route);
  return !own_ms ? route->timeout_ms : own_ms < most_ms ? own_ms : most_ms;
}

/* An entry under `results:`. */
struct source_config {
  const char *name; /* "<plugin>#<n>" */
  const struct plugin_config *plugin;
  const void *options;       /* filled from module->source_options */
  struct duebox_list routes; /* patterns of those whose results come on it; none = those whose reply_to it is */
};

enum poll_mode { POLL_FIXED_DELAY = 0, POLL_FIXED_RATE };

/* `engine:` - everything has a default that suits. */
struct engine_config {
  const char *instance; /* host name unless given; matched against target_host */
  int64_t lease_ms;     /* shard lease; renewed at a third of it */
  int64_t poll_min_ms;  /* adaptive poll: shortest and longest wait between two looks */
  int64_t poll_max_ms;
  int poll_mode;             /* enum poll_mode: fixed-delay counts from the end of a look, fixed-rate from its start */
  int64_t batch;             /* rows per read */
  int64_t max_payload;       /* bytes; larger rows are dead without being loaded */
  int64_t max_record;        /* bytes of one result record */
  int64_t max_checkpoint;    /* bytes of a checkpoint in a result record */
  int64_t settle_rows;       /* a settle batch is written at this many outcomes ... */
  int64_t settle_delay_ms;   /* ... or when the oldest has waited this long */
  int64_t hang_ms;           /* a plugin without a sign of life for so long is replaced */
  int64_t drain_timeout_ms;  /* SIGTERM: how long in-flight tasks may take */
  int64_t dead_retention_ms; /* dead, cancelled and expired rows stay in history this long */
  int64_t attempts_retention_ms;
  int64_t max_recoveries; /* a row that was in flight in this many crashes in a row is dead as poison */
  bool realtime;          /* core/realtime.h */
  const char *cpus;       /* "0-1": processors that the daemon runs on; NULL = all */
};

struct admin_config {
  const char *host; /* NULL = no listener */
  uint16_t port;
  const char *token;    /* NULL = only GET requests, from loopback */
  uid_t token_owner;    /* of the file that it stands in */
  const char *url;      /* how others reach it, "http://127.0.0.1:8321" */
  const char *ca_file;  /* of the authorities that commands trust; NULL = the system's */
  bool allow_plaintext; /* commands may send the token readable to another machine */
};

/* `callbacks:` - where consumers of HTTP tasks answer later. */
struct callbacks_config {
  const char *host; /* NULL = no listener, and no callback URLs */
  uint16_t port;
  const char *base_url;        /* how consumers reach it, "https://duebox.example" */
  const char *secret;          /* signs the URLs */
  const char *previous_secret; /* of URLs that were given out before; NULL = none */
  const char *outbox;          /* "shop.outbox": a URL is for no other, though the secret be the same; NULL = any */
};

struct log_config {
  int level;  /* enum log_level */
  int format; /* enum log_format */
};

struct config {
  const char *path;
  struct database_config database;
  struct plugin_config *plugins;
  size_t plugin_count;
  struct route_config *routes; /* sorted by name */
  size_t route_count;
  struct source_config *sources;
  size_t source_count;
  const struct route_config *dead_alert; /* alerts.dead.route, or NULL; name only (plugin NULL) where only another
                                            daemon has that route */
  struct engine_config engine;
  struct admin_config admin;
  struct callbacks_config callbacks;
  struct log_config log;
  const struct yaml_node *tree; /* the merged files: where each value was written */
  struct arena *arena;          /* owns all of the above */
};

struct module_registry; /* core/modules.h: plugin modules that were loaded, by path; never unloaded */

/* Loads and checks the file. *out is NULL on failure. Main thread; opens files, dlopens modules. */
MUSTCHECK bool config_load(const char *path, struct module_registry *modules, struct config **out, struct err *err);
/* The same, and tells of everything that can be found wrong in one go; err has the first. What is no YAML ends the
 * search, and what is beneath a plugin that is not there is not judged. */
typedef void config_finding_fn(void *ctx, const char *text);
MUSTCHECK bool config_examine(const char *path, struct module_registry *modules, config_finding_fn *finding, void *ctx,
                              struct config **out, struct err *err);
void config_free(struct config **config);

/* The route of that name, or NULL. O(log n). */
const struct route_config *config_route(const struct config *config, const char *name, size_t name_len);

/* Whether the consumers of a route answer on that entry of results. route: of that name, or NULL where this
 * configuration has none; then nothing is known of its road, and every entry without a list of its own is one. */
bool config_answers_on(const struct config *config, const char *entry, const char *name,
                       const struct route_config *route);

/* Names the topic or queue of that entry of results, over reloads, restarts and daemons; 0 = there is no such entry. A
 * row keeps it, so that an answer counts where the message said, whatever its route says by then. */
uint64_t config_answer_to(const struct config *config, const char *entry);

/* Whether a running daemon can take `next` in place of `now` without a restart: plugins, results, database,
 * admin, callbacks and engine.instance must be the same. False = text says which part needs a restart. */
MUSTCHECK bool config_reloadable(const struct config *now, const struct config *next, struct err *err);

#endif
