/* SPDX-License-Identifier: MIT
 *
 * outbox/sql.h - building SQL and JSON text: pure, no connection needed.
 *
 * Statements live in sql/queries/, one a file, with {named} placeholders; this fills them in. Foreign bytes become
 * quoted literals here and nowhere else. The escaping is right for connections as db_conn.c makes them: character set
 * utf8mb4 and no NO_BACKSLASH_ESCAPES. Text statements rather than prepared ones, because rows with payloads are then
 * used in place in the client's own buffer, and several statements travel in one round trip.
 *
 * Running out of memory is remembered in the buffer and reported by whoever sends it.
 */
#ifndef OUTBOX_SQL_H
#define OUTBOX_SQL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A growing text, NUL-terminated. One owner; freed with text_free. */
struct text {
  char *data;
  size_t len, cap;
  bool failed; /* out of memory: data is incomplete and must not be used */
};

void text_clear(struct text *text);
void text_free(struct text *text);
void text_add(struct text *text, const char *data, size_t len);
/* Adds the other text; failed where that is. */
void text_append(struct text *text, const struct text *other);
/* Adds len bytes for the caller to fill; NULL: out of memory. Valid until the text is touched again. */
char *text_room(struct text *text, size_t len);
void text_puts(struct text *text, const char *string);
void text_u64(struct text *text, uint64_t value);
void text_i64(struct text *text, int64_t value);
/* Adds a quoted SQL string literal of any bytes. */
void text_sql(struct text *text, const char *data, size_t len);
/* Whether a value of an ASCII column is text: MariaDB takes any bytes from a client with a lenient sql_mode. */
bool sql_is_ascii(const char *data, size_t len);
/* Adds a literal of an ASCII column's value, whichever bytes it holds. */
void text_ascii(struct text *text, const char *data, size_t len);
/* Adds a quoted JSON string; bytes that are not UTF-8 and NUL become '?', and at most max bytes of data are taken, cut
 * between characters. NULL data adds null. */
void text_json(struct text *text, const char *data, size_t len, size_t max);
/* Adds a quoted SQL string literal cleaned and cut as text_json does; NULL data adds NULL. */
void text_clean_sql(struct text *text, const char *data, size_t len, size_t max);
/* Adds `YYYY-MM-DD hh:mm:ss.ffffff` of microseconds since 1970 UTC, cut to the years 1000 to 9999. */
void text_time(struct text *text, int64_t us);

/* Microseconds since 1970 UTC of `YYYY-MM-DD hh:mm:ss[.f{1,6}]`; false when it is not a valid time. */
bool time_parse(const char *text, size_t len, int64_t *us);

struct time_parts {
  int year, month, day, hour, minute, second, us;
};
/* Microseconds since 1970 UTC; false when there is no such time. */
bool time_from(const struct time_parts *parts, int64_t *us);

/* A number of decimal digits only; false when it is none or over max. */
bool number_parse(const char *text, size_t len, uint64_t max, uint64_t *out);

/* The text where it can be a message id, else "", which no task has: the column is ASCII, and the server refuses to
 * compare it with anything else. */
const char *message_id_or_none(const char *text);

/* What a text names that people give for a task: "id:100" a row id, "message_id:100" a message id, digits one or the
 * other, everything else a message id. Whoever inserts tasks may call one "id:100", and who copies that from a list
 * means no row. */
struct task_name {
  bool is_row;            /* row is a row id it can mean */
  uint64_t row;           /* 0 = none */
  const char *message_id; /* a message id it can mean, within the text; "" = none */
  const char *whole;      /* of a text with a prefix: the message id that it is itself; "" = none */
};
struct task_name task_name_of(const char *text);

/* Whether that is one that the name can mean; "" is none, though a row may have it. */
bool task_name_is(const char *can_mean, const char *message_id);

/* What a placeholder becomes. */
enum sql_kind { SQL_END = 0, SQL_RAW, SQL_STRING, SQL_CLEAN, SQL_UNSIGNED, SQL_SIGNED, SQL_TIME };

struct sql_arg {
  const char *name;
  enum sql_kind kind;
  const char *string; /* RAW, STRING, CLEAN */
  size_t len;
  uint64_t u;  /* UNSIGNED; CLEAN: bytes taken at most */
  int64_t i;   /* SIGNED, TIME */
  bool failed; /* RAW: the text is incomplete, so the statement is as well */
};

#define RAW(n, s)                                                                                                      \
  ((struct sql_arg){.name = (n), .kind = SQL_RAW, .string = (s).data, .len = (s).len, .failed = (s).failed})
#define WORD(n, s) ((struct sql_arg){.name = (n), .kind = SQL_RAW, .string = (s), .len = strlen(s)})
#define STRING(n, s) ((struct sql_arg){.name = (n), .kind = SQL_STRING, .string = (s), .len = strlen(s)})
/* A text from outside for a text column: see text_clean_sql. */
#define CLEAN(n, s, max) ((struct sql_arg){.name = (n), .kind = SQL_CLEAN, .string = (s), .len = strlen(s), .u = (max)})
#define UNSIGNED(n, v) ((struct sql_arg){.name = (n), .kind = SQL_UNSIGNED, .u = (v)})
#define SIGNED(n, v) ((struct sql_arg){.name = (n), .kind = SQL_SIGNED, .i = (v)})
#define TIME(n, us) ((struct sql_arg){.name = (n), .kind = SQL_TIME, .i = (us)})
#define ARGS(...) ((const struct sql_arg[]){__VA_ARGS__, {.kind = SQL_END}})
#define NO_ARGS (&(const struct sql_arg){.kind = SQL_END})

/* {case_counts}: whether the server tells names of tables apart that differ in case alone. information_schema of
 * MariaDB does not, unless a statement asks for one name. */
#define SQL_CASE_COUNTS "@@lower_case_table_names = 0"
/* {lease_runs}: whether the lease of a row of outbox_shards counts. No lease is as long as 11 minutes (engine.lease is
 * 10 at most): one that ends later was written before the server's clock was put back, and a living owner would have
 * renewed it since. One without an end, which only a hand writes beside an owner, does not run: never NULL. */
#define SQL_LEASE_RUNS                                                                                                 \
  "COALESCE(lease_until > UTC_TIMESTAMP(6) AND lease_until <= UTC_TIMESTAMP(6) + INTERVAL 11 MINUTE, FALSE)"
/* {abandoned_until}: a row of outbox_shards without a living owner: what was due by then may be sent already. Nothing
 * is handed over after the end of a lease, nor before it is due; a clock that was put back since makes that the later
 * of these. */
#define SQL_ABANDONED_UNTIL                                                                                            \
  "GREATEST(UTC_TIMESTAMP(6), COALESCE(lease_until, UTC_TIMESTAMP(6)), COALESCE(abandoned_at, UTC_TIMESTAMP(6)))"
/* {by_delay}, {o_by_delay}, {b_by_delay}: when a row without a due_at is due. Whatever a client wrote into delay_ms
 * with the table's CHECKs switched off, it is no error. */
/* The bytes of an ASCII column as they are: as text those that are no ASCII would all come as '?'. */
#define SQL_BYTES(column) "CAST(" column " AS BINARY)"
#define SQL_BY_DELAY(of) of "created_at + INTERVAL LEAST(GREATEST(" of "delay_ms, 0), 315360000000) * 1000 MICROSECOND"
/* {ripe}, {o_ripe}: since when a row may have been handed over: it was put off since where its first_due_at is earlier.
 */
#define SQL_RIPE(of)                                                                                                   \
  "LEAST(COALESCE(" of "due_at, " SQL_BY_DELAY(of) ", TIMESTAMP'1970-01-01 00:00:00'), "                               \
                                                   "COALESCE(" of "first_due_at, " of                                  \
                                                   "due_at, " SQL_BY_DELAY(of) ", TIMESTAMP'1970-01-01 00:00:00'))"
/* {maybe_sent}: whether a copy of this row of the outbox has left, or may have. An attempt that is counted was handed
 * over, or had its claim recorded and perhaps given back before anything left: the row does not tell these apart. One
 * that no attempt is counted of may have left from the memory of a daemon that died: it was due when its shard was
 * abandoned, or was so before it moved (recoveries). Claims in memory leave no trace in the row, so a row that its
 * route's pause, or a hold, kept back then counts too. */
#define SQL_MAYBE_SENT                                                                                                 \
  "(attempt > 0 OR recoveries > 0 OR state IN ('claimed', 'awaiting') OR "                                             \
  "{ripe} <= COALESCE((SELECT "                                                                                        \
  "IF(IF(COALESCE(owner, '') = '', unclean, NOT COALESCE({lease_runs}, FALSE)), {abandoned_until}, "                   \
  "COALESCE(abandoned_at, TIMESTAMP'1970-01-01 00:00:00')) "                                                           \
  "FROM `{table}_shards` WHERE `{table}_shards`.shard = `{table}`.shard), UTC_TIMESTAMP(6)))"
/* {claimer_gone}: of a claimed row, whether the daemon that claimed it lives no more. A row of outbox_instances that is
 * missing does not say so (remake_instances.sql). */
#define SQL_CLAIMER_GONE                                                                                               \
  "(claimed_by IS NULL OR EXISTS (SELECT 1 FROM `{table}_instances` i WHERE i.id = claimed_by AND "                    \
  "(i.alive_until <= UTC_TIMESTAMP(6) OR i.seen_at >= UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE)))"
/* {claim_lost}: whether a row of the outbox is claimed by a daemon that cannot settle it any more: it holds the row's
 * shard no longer, or, of a bound task, lives no longer. */
#define SQL_CLAIM_LOST                                                                                                 \
  "(state = 'claimed' AND IF(shard = 63, {claimer_gone}, COALESCE((SELECT COALESCE(claim_epoch, 0) < epoch OR NOT "    \
  "COALESCE({lease_runs}, FALSE) FROM `{table}_shards` WHERE `{table}_shards`.shard = `{table}`.shard), FALSE)))"
/* {head_lives}: whether the task `o` is what the row `h` of outbox_heads says. It is none any more once it has left,
 * also when its consumer asks for it again later, which counts as a failure of its own. Nothing is a head before its
 * time: whoever may INSERT can choose the ids of a former head, but not failures or first_due_at. Rows without a
 * message id are from before there were any. The server ignores blanks at the end of texts that it compares; we do not.
 */
#define SQL_HEAD_LIVES                                                                                                 \
  "o.id = h.head_id AND (h.message_id = '' OR h.message_id = o.message_id AND h.failures = o.failures) "               \
  "AND o.route = h.route AND o.order_key = h.order_key AND LENGTH(o.order_key) = LENGTH(h.order_key) "                 \
  "AND o.state <> 'awaiting' AND (o.failures > 0 OR COALESCE(o.first_due_at, o.due_at, {o_by_delay}) <= "              \
  "UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE)"
/* {host_lives}: whether a daemon lives that has the name in target_host. */
#define SQL_HOST_LIVES                                                                                                 \
  "EXISTS (SELECT 1 FROM `{table}_instances` i WHERE i.host = target_host AND i.alive_until > UTC_TIMESTAMP(6) AND "   \
  "i.seen_at < UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE)"

/* Rows of shard 63 that a daemon of {host} may bring back or take back: others are their own host's while it lives. */
#define SQL_OURS_TO_TAKE "(target_host = {host} OR NOT {host_lives})"

/* Adds "0,1,63" for the bits that are set. */
void text_shard_set(struct text *out, uint64_t shards);

/* Adds the text `with`, its {placeholders} filled in from args; {table} comes from `table`. A placeholder that args
 * lack is a programming error: it marks the text as failed. */
void text_expand(struct text *text, const char *with, const char *table, const struct sql_arg *args);
/* Adds a statement of sql/queries/ without its leading comment lines, expanded. */
void text_query(struct text *text, const char *statement, const char *table, const struct sql_arg *args);
/* The same as a statement of its own: with a separator when text holds a statement already. */
void text_statement(struct text *text, const char *statement, const char *table, const struct sql_arg *args);

#endif
