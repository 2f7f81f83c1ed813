/* SPDX-License-Identifier: MIT
 *
 * tests/support/reserved_port.c - a socket that is bound and never listens.
 */
#include "tests/support/reserved_port.h"

#include <netinet/in.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <setjmp.h>

#include <cmocka.h>

int reserved_port_open(int *port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t len = sizeof(address);
  int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
  assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
  *port = ntohs(address.sin_port);
  return fd;
}
