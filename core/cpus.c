/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/realtime.h"

/* A number at *text, behind which *text stands afterwards; -1 when there is none that can be a processor's. */
static int number(const char **text) {
  int value = 0;
  const char *at = *text;
  for (; *at >= '0' && *at <= '9'; at++) {
    value = value * 10 + (*at - '0');
    if (value >= CPU_SETSIZE)
      return -1;
  }
  bool any = at != *text;
  *text = at;
  return any ? value : -1;
}

bool cpus_parse(const char *text, cpu_set_t *out) {
  CPU_ZERO(out);
  for (;; text++) {
    int first = number(&text), last = first;
    if (*text == '-') {
      text++;
      last = number(&text);
    }
    if (first < 0 || last < first)
      return false;
    for (int cpu = first; cpu <= last; cpu++)
      CPU_SET((size_t)cpu, out);
    if (*text != ',')
      return *text == '\0';
  }
}
