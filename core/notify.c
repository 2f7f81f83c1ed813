/* SPDX-License-Identifier: MIT */
#include "core/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void notify(const char *state) {
  const char *path = getenv("NOTIFY_SOCKET");
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (!path || !path[0] || strlen(path) >= sizeof address.sun_path)
    return;
  memcpy(address.sun_path, path, strlen(path));
  if (path[0] == '@') /* abstract socket */
    address.sun_path[0] = '\0';
  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return;
  socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
  /* Nobody listening is the supervisor's business, not ours. */
  ssize_t sent = sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&address, len);
  (void)sent;
  close(fd);
}
