/* SPDX-License-Identifier: MIT
 *
 * core/notify.h - tells systemd how we are (sd_notify protocol: one datagram to $NOTIFY_SOCKET).
 *
 * Never waits: while whoever owns the socket does not read it, the newest state is kept, and sent again. Nothing is
 * done without $NOTIFY_SOCKET. Any thread.
 */
#ifndef CORE_NOTIFY_H
#define CORE_NOTIFY_H

#include "core/base/sync.h"

struct notifier {
  struct mutex lock;
  const char *unsaid; /* the newest state, until it is sent */
};

void notify_init(struct notifier *notifier);
void notify_destroy(struct notifier *notifier);
/* state: READY=1 and the like; a literal. */
void notify_state(struct notifier *notifier, const char *state);
/* Sends the state that is still unsaid. To be called again and again. */
void notify_again(struct notifier *notifier);
/* The same, and that we are alive. */
void notify_alive(struct notifier *notifier);

#endif
