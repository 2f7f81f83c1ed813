/* SPDX-License-Identifier: MIT
 *
 * tests/integration/store_fixture.h - a migrated database of its own for each test of the store, and ways to hurt it.
 *
 * The server comes from DUEBOX_TEST_MYSQL, the path of its unix socket (root without a password). Statements that the
 * store sends pass through a hook (linker option --wrap=mysql_real_query), so that a connection can be lost, or an
 * error returned, at exactly the statement that a test names.
 */
#ifndef TESTS_STORE_FIXTURE_H
#define TESTS_STORE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/config.h"
#include "core/store.h"

enum { SHARDS = 4 };
#define LIVING ((1u << TASK_DONE) - 1) /* all states of living tasks */

struct fixture {
  char database[64];
  struct database_config config;
  struct store store;
  struct store_session *ss;
  struct shard_lease leases[SHARDS]; /* all shards, held by "me" */
  struct err err;
};

/* cmocka fixture: state becomes a struct fixture *. */
int store_setup(void **state);
int store_teardown(void **state);
/* The same with the database empty: no migration, no session. */
int store_setup_empty(void **state);

/* What main() of a test does: runs the tests, or the one that argv[1] names (a pattern). 77 without a server. */
int store_main(int argc, char **argv, const struct CMUnitTest *tests, size_t count);

/* Runs a statement as root in the test's database. */
void sql(struct fixture *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The integer in the first field of the first row. */
int64_t ask(struct fixture *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The text in the first field of the first row; "(null)" for NULL, "(none)" without a row. Valid until the next call.
 */
const char *ask_text(struct fixture *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Whether the server is MySQL, not MariaDB. In statements seq_1_to_N works with both. */
bool is_mysql(struct fixture *f);
/* The error number that a statement of root gives; 0 when it succeeds. */
unsigned sql_error(struct fixture *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Runs a statement on a second connection of root, for transactions beside the store's. */
void other(struct fixture *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns when the server executes the statement on that connection, whose answer nobody waits for. */
struct db_conn;
void starts(struct fixture *f, struct db_conn *conn, const char *statement);

/* Asserts that a call of the store gave STORE_OK, and shows its error otherwise. */
#define ok(f, call) store_ok((f), (call), #call, __FILE__, __LINE__)
void store_ok(struct fixture *f, enum store_status status, const char *call, const char *file, int line);

/* All due rows of one group; NULL when there are none. */
struct task_batch *read_group(struct fixture *f, enum task_state state, uint8_t shard, const char *route);
void release(struct task_batch *batch);
/* The due rows of route r that are bound to a host and that this one may have, of ten at most; NULL when there are
 * none. */
struct task_batch *read_bound(struct fixture *f, const char *host);
/* How many these are. */
size_t count_bound(struct fixture *f, const char *host);
/* The message id of a row, valid until the teardown. */
struct duebox_bytes message_id_of(struct fixture *f, uint64_t id);
/* Claims rows, as they are now, all of the first one's route, in the name of "me". */
enum store_status claim_rows(struct fixture *f, const struct shard_lease *leases, size_t lease_count,
                             const uint64_t *ids, size_t count, int64_t timeout_ms, int64_t lease_ms,
                             struct task_batch **batch, uint64_t *lost);
/* A decision about a row as the table has it now. */
struct decision decide_on(struct fixture *f, uint64_t id, enum task_event event);
/* A decision about a row that was read, and sent. */
struct decision decide_on_sent(const struct task *task, enum task_event event);
/* Inserts tasks 1 and 2, which are m1 and m2, in two shards, and decides about both. */
void two_rows(struct fixture *f, struct decision d[2], enum task_event event);
/* Settles with all leases of the fixture; returns how many were applied. */
size_t settle(struct fixture *f, struct decision *decisions, size_t count);

enum fault {
  FAULT_NONE,
  FAULT_KILL_BEFORE, /* the connection is killed before the statement is sent */
  FAULT_LOSE_ANSWER, /* the statement is executed, its answer is lost with the connection */
  FAULT_ERROR,       /* the statement is not sent; the given error is returned */
  FAULT_KILL_BEHIND, /* KILL QUERY hits the script behind the statement that is the text */
  FAULT_INSTEAD,     /* see fault_instead() */
  FAULT_FEWER,       /* the first comma of the text becomes a plus: the answer has a column less */
};

/* Hurts the next `times` statements that contain `text`. */
void fault_arm(struct fixture *f, enum fault fault, const char *text, unsigned error, int times);
/* In the next `times` scripts `text` is replaced by `other`. */
void fault_instead(struct fixture *f, const char *text, const char *other, int times);
/* Calls `call` once, before the next statement that contains `text` is sent. It may arm itself again. */
void fault_call(struct fixture *f, const char *text, void (*call)(struct fixture *f));
/* Keeps copies of all scripts that the store sends from now on. */
void capture_start(void);
/* Ends that and gives them out; each is to be freed. */
size_t capture_end(char ***scripts);
/* How many statements, or scripts of statements, the store has sent since the last call. */
int statements_sent(void);

/* Both tasks of a test are in the history and nowhere else, with one attempt each. */
void assert_done_once(struct fixture *f);

#endif
