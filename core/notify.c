/* SPDX-License-Identifier: MIT */
#include "core/notify.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Whether it is out, or there is nobody to send it to. */
static bool sent(const char *state) {
  const char *path = getenv("NOTIFY_SOCKET");
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (!path || !path[0] || strlen(path) >= sizeof address.sun_path)
    return true;
  memcpy(address.sun_path, path, strlen(path));
  if (path[0] == '@') /* abstract socket */
    address.sun_path[0] = '\0';
  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return false;
  socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
  ssize_t done = sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)&address, len);
  close(fd);
  return done >= 0;
}

void notify_init(struct notifier *notifier) {
  *notifier = (struct notifier){0};
  mutex_init(&notifier->lock);
}

void notify_destroy(struct notifier *notifier) { mutex_destroy(&notifier->lock); }

void notify_state(struct notifier *notifier, const char *state) {
  mutex_lock(&notifier->lock);
  notifier->unsaid = sent(state) ? NULL : state;
  mutex_unlock(&notifier->lock);
}

void notify_again(struct notifier *notifier) {
  mutex_lock(&notifier->lock);
  if (notifier->unsaid && sent(notifier->unsaid))
    notifier->unsaid = NULL;
  mutex_unlock(&notifier->lock);
}

void notify_alive(struct notifier *notifier) {
  notify_again(notifier);
  (void)sent("WATCHDOG=1"); /* the next one follows soon */
}
