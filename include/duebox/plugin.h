/* SPDX-License-Identifier: MIT
 *
 * duebox/plugin.h - the plugin ABI, version 1.10.
 *
 * A plugin is a shared object that exports one const data symbol, `duebox_plugin_v1`. The host reads its frozen prefix
 * (magic, abi_major, abi_minor, size) before it calls anything of it. Loading alone runs the constructors of the shared
 * object and of its libraries, so a plugin that is refused by its prefix has run those. A plugin may be a sink (tasks
 * go out), a source (results come in) or both; an in-process handler is a sink that answers DUEBOX_ANSWER_DONE or
 * _RECORD.
 *
 * Threads. Each configured use of a plugin is an instance with a thread of its own, the driver. Everything runs on it,
 * create() first of all, one call at a time, except wakeup(), which any thread may call once create() has succeeded,
 * and destroy(), which comes from another thread after the driver has ended. A plugin needs no lock for its own state
 * unless it starts threads itself. Two instances may run at once, so a plugin keeps no writable global.
 *
 * Rules. A plugin never retries, never spools, never sleeps, and never says delivered before the destination did.
 * Every accepted task is completed exactly once, in stop() at the latest.
 *
 * Changes: fields are appended only; each struct carries its size; whatever would be removed or re-meant makes a new
 * major. 1.0: first version. 1.1: duebox_record.correlation_id, duebox_task.revision; duebox_outcome.record beside
 * ANSWER_DONE and _LATER; targets (DUEBOX_OPT_TARGET, DUEBOX_SCOPE_TARGET). 1.2: check_targets. 1.3:
 * duebox_outcome.blameless. 1.4: duebox_host.unread. 1.5: duebox_instance_config.outbox, duebox_check.outbox. 1.6:
 * max_checkpoint. 1.7: DUEBOX_CAP_SHARED_LINE. 1.8: DUEBOX_OPT_PATH. 1.9: duebox_task.result_awaited,
 * duebox_check.max_payload; no header of a task begins with duebox-. 1.10: duebox_sink_ops.recall,
 * duebox_outcome.recalled, duebox_source_ops.yield.
 */
#ifndef DUEBOX_PLUGIN_H
#define DUEBOX_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duebox/option.h>
#include <duebox/outcome.h>
#include <duebox/task.h>

#define DUEBOX_PLUGIN_MAGIC 0x44554542u /* "DUEB" */
#define DUEBOX_ABI_MAJOR 1u
#define DUEBOX_ABI_MINOR 10u
#define DUEBOX_PLUGIN_SYMBOL "duebox_plugin_v1"

#if defined(__GNUC__)
#define DUEBOX_EXPORT __attribute__((visibility("default")))
#define DUEBOX_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define DUEBOX_EXPORT
#define DUEBOX_PRINTF(f, a)
#endif

/* Capabilities. A host refuses bits that it does not know. */
#define DUEBOX_CAP_SINK 0x1u       /* has sink ops */
#define DUEBOX_CAP_SOURCE 0x2u     /* has source ops */
#define DUEBOX_CAP_LONG_CALLS 0x4u /* an attempt takes long or runs foreign code: claims are recorded by default */
#define DUEBOX_CAP_ANSWERS 0x8u    /* outcomes carry the consumer's answer */
/* Since 1.7. All tasks of an instance go over one connection, which the destination works off in turn: the host gives
 * no route more than is confirmed in a short time, so that a slow one does not stand before the others. */
#define DUEBOX_CAP_SHARED_LINE 0x10u

enum duebox_log_level { DUEBOX_LOG_ERROR = 0, DUEBOX_LOG_WARN, DUEBOX_LOG_INFO, DUEBOX_LOG_DEBUG };

/* How expand() writes a substituted value. */
enum duebox_escape {
  DUEBOX_ESCAPE_NONE = 0, /* bytes as they are */
  DUEBOX_ESCAPE_URL,      /* percent-encode all but RFC 3986 unreserved characters */
};

/* A text for the error, written by whoever fails. */
struct duebox_error {
  char text[512];
};

/* A result record as a source received it. Borrowed by the host for the call only. */
struct duebox_record {
  size_t struct_size;
  struct duebox_bytes body; /* the JSON record; truncated to what the source keeps when `truncated` is set */
  size_t full_len;          /* length of the record as the broker holds it */
  bool truncated;           /* larger than the limit: counts only if the beginning says enough */
  const char *origin;       /* where it stood, for people: "topic[partition]@offset", "queue#delivery-tag" */
  /* Since 1.1 */
  const char *correlation_id; /* what the broker carries beside it to say which message it answers, or NULL */
};

/* What the host offers. `ctx` is the first argument of every function. The table outlives the instance. */
struct duebox_host {
  size_t struct_size;
  void *ctx;

  /* Reports the outcome of one accepted task. Any thread. Exactly once per accepted task; never blocks, never calls the
   * plugin back. Everything `outcome` points to is copied before it returns; the task view is invalid afterwards. */
  void (*complete)(void *ctx, uint64_t token, const struct duebox_outcome *outcome);

  /* Hands over a result record. Any thread. Returns true when taken: then ack(cookie) follows exactly once. Returns
   * false when the host is full: the source keeps the record, stops reading and offers it again after resume(). */
  bool (*result)(void *ctx, const struct duebox_record *record, uint64_t cookie);

  /* Writes one log line, prefixed with the instance's name. Any thread. `id` is a stable word such as
   * "KAFKA-FATAL", of up to 63 printable ASCII characters other than blanks, quotes, backslashes and "="; never put a
   * secret into the text. */
  void (*log)(void *ctx, enum duebox_log_level level, const char *id, const char *fmt, ...) DUEBOX_PRINTF(4, 5);

  /* Writes the expansion of an option with DUEBOX_OPT_TEMPLATE for a task into out (cap bytes, always NUL-terminated
   * when cap > 0) and returns the length it needs without the NUL, like snprintf. Driver thread. */
  size_t (*expand)(void *ctx, const char *tmpl, const struct duebox_task *task, enum duebox_escape escape, char *out,
                   size_t cap);

  /* Says whether the destination is reachable at all, for health and metrics. Any thread. text may be NULL. */
  void (*health)(void *ctx, bool up, const char *text);

  /* Since 1.4. A source says that its broker answers and its records are not read all the same, with the reason and
   * what to change: the daemon is not ready while that lasts. The next health() takes it back. Any thread. */
  void (*unread)(void *ctx, const char *text);
};

struct duebox_sink_ops {
  size_t struct_size;
  /* Takes the first k of n tasks and returns k (0..n). Never blocks. k < n means full: the host offers the rest again
   * after the next completion or after 10 ms. The array is the host's; the tasks stay valid until completed. */
  size_t (*submit)(void *inst, const struct duebox_task *const *tasks, size_t n);

  /* Since 1.10; read only where `struct_size` covers it. May be NULL: then what was accepted is sent. The lease under
   * which tasks were handed over is lost, or not certain any more, and whoever holds it next may cancel or change them.
   * Every task accepted so far of which no byte has left ends as DUEBOX_UNAVAILABLE with outcome.recalled, here or in
   * one of the next polls. What has begun to leave may be given up as UNKNOWN with `blameless`, or be awaited; but
   * nothing that was accepted before is begun, or sent once more, from now on. What is submitted later is not meant.
   * Never blocks. Driver thread, between submit() and poll(): so that a process that stood still is recalled before it
   * sends anything, poll() begins what is to be sent before it waits, and not after that. */
  void (*recall)(void *inst);
};

struct duebox_source_ops {
  size_t struct_size;
  /* The table has committed (committed) or will never commit (not committed, at shutdown) the record of this cookie.
   * Only after committed may its offset or acknowledgement advance. */
  void (*ack)(void *inst, uint64_t cookie, bool committed);
  void (*resume)(void *inst); /* the host has room again after result() returned false, or goes on after yield() */

  /* Since 1.10; read only where `struct_size` covers it. May be NULL: then records wait here for the host. It cannot
   * write results for now, and another daemon may: what is not acknowledged goes back to the broker, or whoever reads
   * in our place, and nothing is read until resume(). Acks of what was handed over before are to be ignored from now
   * on. May take a second. Driver thread. */
  void (*yield)(void *inst);
};

enum duebox_role { DUEBOX_ROLE_SINK = 1, DUEBOX_ROLE_SOURCE = 2 };

struct duebox_instance_config {
  size_t struct_size;
  enum duebox_role role; /* an instance is either a sink or a source, never both */
  const char *name;      /* name of the instance, for logs and client ids */
  const void *options;   /* the struct filled from `options` */
  const void *source;    /* ROLE_SOURCE: the struct filled from `source_options`; NULL for a sink */
  int64_t max_payload;   /* bytes: no task's payload is larger */
  int64_t max_record;    /* bytes: ROLE_SOURCE keeps at most this much of one record */
  uint32_t max_inflight; /* the host never has more tasks open at once with this instance */
  /* Since 1.5 */
  const char *outbox; /* "<database>.<table>": the same in all daemons of an outbox and after each restart, to make
                       * names of at a broker that several outboxes share; [A-Za-z0-9_$-.] only. NULL: not known */
};

/* Since 1.2. What is known of a target: a topic, an exchange, a queue, a URL. */
enum duebox_check_verdict {
  DUEBOX_CHECK_UNSURE = 0, /* could not be found out */
  DUEBOX_CHECK_OK,         /* it is there and may be used, as far as can be seen without a message */
  DUEBOX_CHECK_WRONG,      /* no task will get there */
};

/* Since 1.2. One question, with room for the answer. */
struct duebox_check {
  size_t struct_size;
  const void *route;  /* of a route: the struct filled from `route_options`; else NULL */
  const void *source; /* of an entry under `results:`: the struct filled from `source_options`; else NULL */
  const char *name;   /* the route's */
  /* Writes an option with DUEBOX_OPT_TEMPLATE as it is for every task of the route; false when it does not fit or is
   * another one for each task. */
  bool (*expand)(const struct duebox_check *check, const char *tmpl, char *out, size_t cap);
  enum duebox_check_verdict verdict;
  char text[512]; /* what was found: "topic orders has 3 partitions" */
  char cure[256]; /* what to do about it, or empty */
  /* Since 1.5 */
  const char *outbox; /* as in duebox_instance_config */
  /* Since 1.9 */
  int64_t max_payload; /* bytes: no task's payload is larger; 0 = not known */
};

struct duebox_plugin {
  /* Frozen prefix, the same in every version of the ABI. */
  uint32_t magic;
  uint32_t abi_major;
  uint32_t abi_minor;
  uint32_t size; /* sizeof(struct duebox_plugin) as compiled */

  uint32_t capabilities;
  const char *name;    /* module name: "kafka" */
  const char *version; /* the plugin's own version */
  const char *summary; /* one line */
  const char *vendor;  /* library it stands on, with version, or NULL */

  const struct duebox_option *options; /* of an entry under `plugins:`; ends with a NULL name */
  size_t options_size;
  const struct duebox_option *route_options; /* of a route that goes via this plugin */
  size_t route_size;
  const struct duebox_option *source_options; /* of an entry under `results:` */
  size_t source_size;

  size_t instance_size; /* the host allocates and zeroes this much for each instance, and frees it after destroy() */

  /* Checks options across each other; false = refused with err->text. Main thread, no I/O. May be NULL. */
  bool (*check)(const void *options, struct duebox_error *err);
  /* Checks a route's options. Main thread, no I/O. May be NULL. */
  bool (*check_route)(const void *options, const void *route, struct duebox_error *err);
  /* Prepares an instance; no I/O. On failure too the instance must be safe for destroy(). */
  bool (*create)(void *inst, const struct duebox_instance_config *config, const struct duebox_host *host,
                 struct duebox_error *err);
  /* Begins to connect. "Not yet connected" is success. */
  bool (*start)(void *inst, struct duebox_error *err);
  /* Drives the library for at most timeout_ms; completions and results may be reported inside. */
  void (*poll)(void *inst, int timeout_ms);
  /* Makes a poll() in progress return soon. Any thread. */
  void (*wakeup)(void *inst);
  /* Refuses new work from now on; what is open goes on. A source stops reading. */
  void (*close)(void *inst);
  /* Ends everything within deadline_ms: afterwards nothing is reported any more, and every task still open has been
   * completed as DUEBOX_UNKNOWN (or UNAVAILABLE where it certainly was not sent). */
  void (*stop)(void *inst, int deadline_ms);
  /* Frees what create() and start() made; never blocks. The instance's memory itself belongs to the host. */
  void (*destroy)(void *inst);

  const struct duebox_sink_ops *sink;     /* NULL without DUEBOX_CAP_SINK */
  const struct duebox_source_ops *source; /* NULL without DUEBOX_CAP_SOURCE */

  /* Since 1.2; read only where `size` covers it. Asks the destination whether what routes and sources name is there and
   * may be used, over connections of its own. Sends no message and changes nothing there. Blocks for timeout_ms at
   * most: what is not known by then stays DUEBOX_CHECK_UNSURE. Outside of any instance, on a thread of the host, with
   * options that check() and check_route() have passed. May be NULL. */
  void (*check_targets)(const void *options, struct duebox_check *const *checks, size_t count, int timeout_ms);

  /* Since 1.6. How large a checkpoint may be that any task of a route can carry, beside headers of 16 KiB and a payload
   * that fits: a consumer's answer with a larger one is told so, and its checkpoint is not stored. Main thread, no I/O,
   * with options that check() and check_route() have passed. May be NULL: as large as the host takes them. */
  size_t (*max_checkpoint)(const void *options, const void *route);
};

#define DUEBOX_PLUGIN_PREFIX                                                                                           \
  .magic = DUEBOX_PLUGIN_MAGIC, .abi_major = DUEBOX_ABI_MAJOR, .abi_minor = DUEBOX_ABI_MINOR,                          \
  .size = sizeof(struct duebox_plugin)

#endif
