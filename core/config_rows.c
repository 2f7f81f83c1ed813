/* SPDX-License-Identifier: MIT */
#include "core/config_rows.h"

#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define KIB INT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

#define STRING DUEBOX_OPT_STRING
#define BOOL DUEBOX_OPT_BOOL
#define INT DUEBOX_OPT_INT
#define SIZE DUEBOX_OPT_SIZE
#define DURATION DUEBOX_OPT_DURATION
#define ENUM DUEBOX_OPT_ENUM
#define SECRET DUEBOX_OPT_SECRET
#define REQUIRED DUEBOX_OPT_REQUIRED
#define PATH DUEBOX_OPT_PATH
#define RESTART CONFIG_RESTART
#define END                                                                                                            \
  { .name = NULL }

/* Columns: name, type, default, min, max, flags, offset, choices, help. */

static const char *const wakes[] = {[WAKE_AUTO] = "auto", [WAKE_POLL] = "poll", [WAKE_BINLOG] = "binlog", NULL};

#define AT(field) offsetof(struct database_config, field)
const struct duebox_option config_database_rows[] = {
    {"host", STRING, NULL, 0, 0, RESTART, AT(host), NULL,
     "host name or address of the server; 127.0.0.1 unless socket is given"},
    {"port", INT, "3306", 1, 65535, RESTART, AT(port), NULL, "TCP port of the server"},
    {"socket", STRING, NULL, 0, 0, RESTART, AT(socket), NULL, "path of the server's unix socket, instead of host"},
    {"user", STRING, NULL, 0, 0, REQUIRED | RESTART, AT(user), NULL, "user that the daemon logs in as"},
    {"password", SECRET, NULL, 0, 0, RESTART, AT(password), NULL, "that user's password"},
    {"name", STRING, NULL, 0, 0, REQUIRED | RESTART, AT(name), NULL, "schema (database) that holds the outbox table"},
    {"table", STRING, "outbox", 0, 0, RESTART, AT(table), NULL,
     "the outbox table; also the prefix of the tables beside it"},
    {"tls", BOOL, "false", 0, 0, RESTART, AT(tls), NULL, "require TLS and verify the server's certificate and name"},
    {"tls_ca", STRING, NULL, 0, 0, PATH | RESTART, AT(tls_ca), NULL,
     "file with the certificate authorities to trust; the system's when absent"},
    {"server_public_key_file", STRING, NULL, 0, 0, PATH | RESTART, AT(server_public_key_file), NULL,
     "file with the server's RSA key (public_key.pem of its data folder), for users with caching_sha2_password over "
     "TCP "
     "without TLS"},
    {"allow_plaintext", BOOL, "false", 0, 0, RESTART, AT(allow_plaintext), NULL,
     "permit a server on another host without TLS"},
    {"connect_timeout", DURATION, "5s", 100, 5 * MINUTE, RESTART, AT(connect_timeout_ms), NULL,
     "longest wait for a connection, and then for the login"},
    {"read_timeout", DURATION, "30s", SECOND, HOUR, RESTART, AT(read_timeout_ms), NULL,
     "longest wait for the server's answer to a statement, from its sending to its end, and for a session to be set "
     "up; rows that come at 32 KB a second or more may take ten times as long"},
    {"wake", ENUM, "auto", 0, 0, RESTART, AT(wake), wakes,
     "how new rows are noticed at once: by the server's binlog where it can be read (auto), by polling alone, or by "
     "the "
     "binlog with an error in the log where it cannot be read"},
    {"migrate_user", STRING, NULL, 0, 0, RESTART, AT(migrate_user), NULL,
     "user of `duebox migrate`, which may create tables; user when absent"},
    {"migrate_password", SECRET, NULL, 0, 0, RESTART, AT(migrate_password), NULL,
     "that user's password; its file need not be readable for others than who runs `duebox migrate`"},
    END};
#undef AT

static const char *const claims[] = {[CLAIM_MEMORY] = "memory", [CLAIM_RECORDED] = "recorded", NULL};
static const char *const results[] = {[RESULT_NONE] = "none", [RESULT_EXPECTED] = "expected", NULL};

static const char *const orders[] = {[ORDER_BLOCK] = "block", [ORDER_PARK] = "park", NULL};

#define AT(field) offsetof(struct route_rows, route.field)
const struct duebox_option config_route_rows[] = {
    {"claim", ENUM, NULL, 0, 0, 0, AT(claim), claims,
     "whether a claim is written to the row first: recorded for plugins with long calls, else memory"},
    {"result", ENUM, "none", 0, 0, 0, AT(result), results,
     "whether the task is done only when its consumer has answered"},
    {"order", ENUM, "block", 0, 0, 0, AT(order), orders,
     "what tasks of an order_key do while one before them is to be tried again: wait (block) or go on (park)"},
    {"timeout", DURATION, NULL, 1, 30 * DAY, 0, AT(timeout_ms), NULL,
     "time for one attempt, with the wait for its result: 30s, or 15m where a result is expected"},
    {"timeout_max", DURATION, NULL, 1, 30 * DAY, 0, AT(timeout_max_ms), NULL,
     "a row's timeout_ms beyond this and beyond timeout is cut to the longer of the two: ten times timeout, 5m at "
     "least and 30d at most"},
    {"max_attempts", INT, "10", 0, 1000000, 0, offsetof(struct route_rows, max_attempts), NULL,
     "failures after which a task is dead; 0 = no limit"},
    {"give_up", DURATION, "7d", 0, 3650 * DAY, 0, AT(give_up_ms), NULL,
     "a task that is overdue by more than this is dead at its next failure; 0 = never"},
    {"concurrency", INT, NULL, 1, 1000000, 0, AT(concurrency), NULL,
     "tasks at the destination at once, of each daemon: 32 for plugins with long calls, else 10000"},
    {"inflight_bytes", SIZE, "16MiB", KIB, 64 * GIB, 0, AT(inflight_bytes), NULL,
     "bytes of payloads, headers and checkpoints in flight at once"},
    {"rate", DUEBOX_OPT_RATE, "0", 0, 0, 0, AT(rate), NULL,
     "tasks that each daemon hands over per time, such as 100/s; 0 = no limit"},
    {"breaker", INT, "20", 0, 1000000, 0, AT(breaker), NULL,
     "so many failures in a row that speak of the destination, not of the task, suspend it for a moment; 0 = never"},
    {"history", DURATION, "0", 0, 3650 * DAY, 0, AT(history_ms), NULL,
     "how long a done task stays in the history; 0 = it is not kept"},
    {"every_attempt", BOOL, "false", 0, 0, 0, AT(every_attempt), NULL, "keep a record of successful attempts too"},
    {"reply_to", STRING, NULL, 0, 0, 0, AT(reply_to), NULL,
     "topic or queue named to the consumer for its answer: that of the first entry of results via the same plugin, one "
     "that lists the route before others"},
    END};
#undef AT

#define AT(field) offsetof(struct source_config, field)
const struct duebox_option config_source_rows[] = {
    {"routes", DUEBOX_OPT_LIST, NULL, 0, 0, 0, AT(routes), NULL,
     "the routes whose results come on it, and no others: names, in which * stands for any characters and ? for one. "
     "When absent: those whose reply_to is this topic or queue"},
    END};
#undef AT

#define AT(field) offsetof(struct retry_rows, field)
const struct duebox_option config_retry_rows[] = {
    {"levels", DUEBOX_OPT_DURATIONS, NULL, 0, 0, 0, AT(levels), NULL,
     "wait after the first, second, .. failure; the last one repeats. Without levels and "
     "backoff: " CONFIG_RETRY_LEVELS},
    {"backoff", DURATION, NULL, 1, 365 * DAY, 0, AT(backoff_ms), NULL,
     "wait after the first failure, instead of levels"},
    {"multiplier", DUEBOX_OPT_NUMBER, "2", 0, 0, 0, AT(multiplier), NULL,
     "with backoff: each further wait is this much longer"},
    {"max", DURATION, NULL, 1, 365 * DAY, 0, AT(max_ms), NULL,
     "no wait is longer, with jitter too: 1h with backoff, no limit with levels"},
    {"jitter", DUEBOX_OPT_NUMBER, "0.2", 0, 0, 0, AT(jitter), NULL,
     "waits are spread by this part of themselves in both directions, 0 to 1"},
    END};
#undef AT

static const char *const poll_modes[] = {[POLL_FIXED_DELAY] = "fixed-delay", [POLL_FIXED_RATE] = "fixed-rate", NULL};

#define AT(field) offsetof(struct engine_config, field)
const struct duebox_option config_engine_rows[] = {
    {"instance", STRING, NULL, 0, 0, RESTART, AT(instance), NULL,
     "name of this daemon in claimed_by, matched against target_host: one of its own for each daemon; the host's name "
     "when absent"},
    {"lease", DURATION, "10s", SECOND, 10 * MINUTE, 0, AT(lease_ms), NULL,
     "a shard belongs to a daemon for this long; renewed at a third of it"},
    {"poll_min", DURATION, "5ms", 1, MINUTE, 0, AT(poll_min_ms), NULL, "shortest wait between two looks for new rows"},
    {"poll_max", DURATION, "100ms", 1, HOUR, 0, AT(poll_max_ms), NULL, "longest wait between two looks for new rows"},
    {"poll_mode", ENUM, "fixed-delay", 0, 0, 0, AT(poll_mode), poll_modes,
     "whether the wait counts from the end of a look or from its start"},
    {"batch", INT, "2000", 1, 4096, 0, AT(batch), NULL, "rows per read"},
    {"max_payload", SIZE, "1MiB", KIB, GIB, RESTART, AT(max_payload), NULL,
     "tasks with a larger payload are dead without being loaded"},
    {"max_record", SIZE, "256KiB", KIB, 64 * MIB, RESTART, AT(max_record), NULL,
     "of larger result records only the beginning is read"},
    {"max_checkpoint", SIZE, "4KiB", 1, MIB, 0, AT(max_checkpoint), NULL,
     "larger checkpoints in answers are refused, and those that an attempt of the route cannot carry: beyond 240 KiB "
     "over HTTP (12 KiB with http2) and frame_max less 18 KiB over AMQP"},
    {"settle_rows", INT, "1000", 1, 100000, 0, AT(settle_rows), NULL,
     "outcomes are written to the table at this many .."},
    {"settle_delay", DURATION, "2ms", 0, 10 * SECOND, 0, AT(settle_delay_ms), NULL,
     ".. or when the oldest has waited this long; 2 ms at most where one is of a task with an order_key, since the "
     "next of that key waits for it. A task has its place in concurrency until its outcome is written"},
    {"hang", DURATION, "60s", SECOND, HOUR, 0, AT(hang_ms), NULL,
     "a plugin that gives no sign of life for so long is replaced by a new instance"},
    {"drain_timeout", DURATION, "30s", 0, HOUR, 0, AT(drain_timeout_ms), NULL,
     "time that tasks in flight may take when the daemon stops"},
    {"dead_retention", DURATION, "30d", HOUR, 3650 * DAY, 0, AT(dead_retention_ms), NULL,
     "dead, cancelled and expired tasks stay in the history for this long"},
    {"attempts_retention", DURATION, "7d", HOUR, 3650 * DAY, 0, AT(attempts_retention_ms), NULL,
     "records of attempts stay for this long"},
    {"max_recoveries", INT, "3", 1, 1000, 0, AT(max_recoveries), NULL,
     "a task that was in flight in this many crashes, or losses of its shard's lease, in a row is dead"},
    {"realtime", BOOL, "false", 0, 0, RESTART, AT(realtime), NULL,
     "threads that tasks pass on their way out run with real-time priority (SCHED_RR 1), which needs the right to"},
    {"cpus", STRING, NULL, 0, 0, RESTART, AT(cpus), NULL,
     "processors that the daemon runs on, such as 0-1 or 0,2; all when absent"},
    END};
#undef AT

#define AT(field) offsetof(struct admin_rows, field)
const struct duebox_option config_admin_rows[] = {
    {"listen", STRING, "127.0.0.1:8321", 0, 0, RESTART, AT(listen), NULL,
     "host:port of the HTTP API and the dashboard, or off"},
    {"token", SECRET, NULL, 0, 0, RESTART, AT(token), NULL,
     "bearer token of the HTTP API, for reading too; without it only reading, from loopback"},
    {"url", STRING, NULL, 0, 0, RESTART, AT(url), NULL,
     "how others reach the HTTP API; http:// and the listen address when absent"},
    {"ca_file", STRING, NULL, 0, 0, PATH | RESTART, AT(ca_file), NULL,
     "certificates that commands trust instead of the system's where a daemon's url is https://, PEM"},
    {"allow_plaintext", BOOL, "false", 0, 0, RESTART, AT(allow_plaintext), NULL,
     "commands may send the token unencrypted to daemons on other machines"},
    END};
#undef AT

#define AT(field) offsetof(struct callbacks_rows, field)
const struct duebox_option config_callbacks_rows[] = {
    {"listen", STRING, "off", 0, 0, RESTART, AT(listen), NULL,
     "host:port where consumers of HTTP tasks answer later, and nothing else is served, or off"},
    {"base_url", STRING, NULL, 0, 0, RESTART, AT(base_url), NULL,
     "how consumers reach it, with the proxy before it; http:// and the listen address when absent, "
     "which must not be one for all addresses, such as 0.0.0.0"},
    {"secret", SECRET, NULL, 0, 0, RESTART, AT(secret), NULL,
     "signs the callback URLs, the same for all daemons; admin.token serves when absent"},
    {"previous_secret", SECRET, NULL, 0, 0, RESTART, AT(previous_secret), NULL,
     "of URLs that are still on their way after a change of secret"},
    END};
#undef AT

static const char *const levels[] = {"error", "warn", "info", "debug", NULL};
static const char *const formats[] = {"auto", "logfmt", "json", NULL};

#define AT(field) offsetof(struct log_config, field)
const struct duebox_option config_log_rows[] = {
    {"level", ENUM, "info", 0, 0, 0, AT(level), levels, "least important lines that are written"},
    {"format", ENUM, "auto", 0, 0, 0, AT(format), formats, "logfmt, json, or by where stderr goes"},
    END};
#undef AT

const struct duebox_option config_alert_rows[] = {{"route", STRING, NULL, 0, 0, REQUIRED,
                                                   offsetof(struct alert_rows, route), NULL,
                                                   "route that carries the alert as a task"},
                                                  END};

const char *const config_section_keys[] = {"database", "plugins", "routes",    "results", "alerts",
                                           "engine",   "admin",   "callbacks", "log",     NULL};
const char *const config_plugin_keys[] = {"module", NULL};
const char *const config_source_keys[] = {"via", "routes", NULL};
const char *const config_route_keys[] = {
    "via",           "retry",    "claim",       "result",         "order", "timeout", "timeout_max",
    "max_attempts",  "give_up",  "concurrency", "inflight_bytes", "rate",  "breaker", "history",
    "every_attempt", "reply_to", NULL};
