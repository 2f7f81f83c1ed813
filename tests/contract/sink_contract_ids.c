/* SPDX-License-Identifier: MIT
 *
 * tests/contract/sink_contract_ids.c - message ids as applications may choose them.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include "tests/contract/sink_contract_run.h"
#include "tests/support/fake_host.h"

enum { LIMIT_MS = 60000 };

static size_t held_copies(const struct run *run, const char *id) {
  size_t count, copies = 0;
  const struct contract_message *messages = run->c->received(run->fixture, &count);
  for (size_t i = 0; i < count; i++)
    copies += strcmp(messages[i].id, id) == 0;
  return copies;
}

/* A destination may show what it holds a little later than it confirms it. */
static void check_held(const struct run *run, const char *id, const struct fake_outcome *outcome) {
  size_t wanted = outcome->cls == DUEBOX_DELIVERED;
  for (int64_t end = fake_host_now_ms() + LIMIT_MS; held_copies(run, id) < wanted && fake_host_now_ms() < end;)
    usleep(5000);
  if (held_copies(run, id) != wanted || (!wanted && outcome->cls != DUEBOX_REJECTED))
    fail_msg("%s ended as class %d (%s) and the destination holds it %zu times", id, (int)outcome->cls,
             outcome->error_class, held_copies(run, id));
}

/* An application chooses them: any visible ASCII, such as another one's with a dot before it. None takes the place of
 * another, also where it comes after that was delivered. (A destination that has no room for some must reject them; a
 * slash is not tried.) */
void ids_of_every_form_are_told_apart(void **state) {
  const struct run *run = *state;
  static const char *const ids[] = {
      ".x",    "x",     "x.1", "x.1.1",
      ".x.1",  "..x",   "..",  ".",
      "~",     "-x",    "x~",  "x.part",
      "x.tmp", "#x#",   "*",   "?",
      "X",     "%2e",   "a:b", "a\\b",
      "'",     "\"q\"", "{x}", "$x",
      "a,b",   "a;b",   "a=b", "012345678901234567890123456789012345678901234567890123456789"};
  const size_t count = sizeof ids / sizeof ids[0];
  struct fake_host *host = fake_host_open(&(struct fake_host_config){.plugin = run->c->plugin,
                                                                     .module = run->c->module,
                                                                     .role = DUEBOX_ROLE_SINK,
                                                                     .options = run->c->options(run->fixture),
                                                                     .max_payload = run->c->max_payload,
                                                                     .name = "ids"});
  for (size_t i = 0; i < count; i++) {
    fake_host_add(
        host, &(struct fake_task){
                  .message_id = ids[i], .attempt = 1, .route_data = run->c->route(run->fixture), .payload = {"{}", 2}});
    if (!fake_host_settle(host, LIMIT_MS))
      fail_msg("%s was not completed within %d ms", ids[i], LIMIT_MS);
  }
  for (size_t i = 0; i < count; i++) {
    struct fake_outcome outcome = fake_host_outcome(host, i);
    check_held(run, ids[i], &outcome);
  }
  fake_host_free(host);
}
