/* SPDX-License-Identifier: MIT */
#include "cli/interrupt.h"

#include <signal.h>
#include <stddef.h>
#include <sysexits.h>

#include "core/base/attr.h"

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

/* The system notes it: it puts the default action in this one's place (SA_RESETHAND). */
static void let_pass(int signal) { (void)signal; }

void interrupt_catch(void) {
  for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
    struct sigaction before, action = {.sa_handler = let_pass, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
    if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
      (void)sigaction(signals[i], &action, NULL);
  }
}

int interrupt_caught(void) {
  for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
    struct sigaction now;
    if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL)
      return signals[i];
  }
  return 0;
}

bool interrupt_say(struct err *err) {
  return err_set(err, EX_TEMPFAIL, "ended by a signal; what it has not changed by now is as it was");
}

void interrupt_obey(void) {
  int caught = interrupt_caught();
  if (caught)
    (void)raise(caught);
}
