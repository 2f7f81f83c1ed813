/* SPDX-License-Identifier: MIT
 *
 * People's commands, which the thread that reads runs between two reads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/base/sync.h"
#include "core/scheduler.h"

enum { COMMANDS = 200, STATEMENT_US = 1000 };

/* The store: while it looks for the task of one command, the next one comes. */
struct fake {
  struct scheduler s;
  struct asked asked[COMMANDS];
  size_t came, ran;
};

static const struct task_command command = {.verb = INTERVENE_CANCEL, .id = "1"};

static void come(struct fake *fake) {
  struct asked **end = &fake->s.asked;
  if (fake->came == COMMANDS)
    return;
  mutex_lock(&fake->s.ask_lock);
  while (*end)
    end = &(*end)->next;
  *end = &fake->asked[fake->came++];
  (*end)->command = &command;
  mutex_unlock(&fake->s.ask_lock);
}

static enum store_status locate(struct store_session *ss, const char *name, uint64_t *id, uint8_t *shard, bool *found,
                                struct err *err) {
  struct fake *fake = (struct fake *)ss;
  thread_sleep(STATEMENT_US);
  fake->ran++;
  come(fake);
  *found = false;
  return STORE_OK;
}

static void rows_are_read_although_commands_keep_coming(void **state) {
  static const struct store_ops ops = {.locate = locate};
  const struct store store = {.ops = &ops};
  struct fake *fake = calloc(1, sizeof *fake);
  assert_non_null(fake);
  fake->s.store = &store;
  fake->s.ss = (struct store_session *)fake;
  mutex_init(&fake->s.ask_lock);
  cond_init(&fake->s.answered);
  mailbox_init(&fake->s.in);
  come(fake);
  struct flight_list none = {0};
  size_t ran = 0;
  while (fake->s.asked) {
    scheduler_run_commands(&fake->s); /* and then rows are read */
    assert_in_range(fake->ran, ran + 1, ran + COMMANDS / 10);
    assert_true(mailbox_take(&fake->s.in, 0, &none) || !fake->s.asked);
    ran = fake->ran;
  }
  assert_int_equal(ran, COMMANDS);
  mailbox_destroy(&fake->s.in);
  cond_destroy(&fake->s.answered);
  mutex_destroy(&fake->s.ask_lock);
  free(fake);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_read_although_commands_keep_coming)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
