/* SPDX-License-Identifier: MIT */
#include "core/base/log_repeat.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/hash.h"

enum { GAP_MIN_US = 10 * 1000 * 1000, GAP_MAX_US = 60 * 1000 * 1000 };
enum { LINE_US = 1000 * 1000, AT_ONCE = 50 };

bool log_quota_due(struct log_quota *quota, int64_t now_us, uint64_t *unsaid) {
  if (quota->paid_us < now_us)
    quota->paid_us = now_us;
  if (quota->paid_us - now_us > (AT_ONCE - 1) * (int64_t)LINE_US) {
    quota->unsaid++;
    return false;
  }
  quota->paid_us += LINE_US;
  *unsaid = quota->unsaid;
  quota->unsaid = 0;
  return true;
}

bool log_repeat_comes(struct log_repeat *repeat, const char *text, int64_t now_us, uint64_t *unsaid) {
  uint64_t wanted = hash_keyed(text, strlen(text)) | 1; /* 0 = a free place */
  size_t at = 0;
  /* Its own place, else the one that has been quiet for longest. */
  for (size_t i = 0; i < LOG_REPEAT_TEXTS && repeat->known[at].text != wanted; i++)
    if (repeat->known[i].text == wanted || repeat->known[i].came_us < repeat->known[at].came_us)
      at = i;
  bool fresh = repeat->known[at].text != wanted || now_us - repeat->known[at].came_us > GAP_MAX_US;
  *unsaid = fresh ? 0 : repeat->known[at].unsaid;
  int64_t gap = repeat->known[at].gap_us;
  repeat->known[at].came_us = now_us;
  if (!fresh && now_us - repeat->known[at].said_us < gap) {
    repeat->known[at].unsaid++;
    return false;
  }
  gap = fresh ? GAP_MIN_US : gap * 2;
  repeat->known[at].text = wanted;
  repeat->known[at].unsaid = 0;
  repeat->known[at].said_us = now_us;
  repeat->known[at].gap_us = gap < GAP_MAX_US ? gap : GAP_MAX_US;
  return true;
}

bool log_repeat_due(struct log_repeat *repeat, const char *text, int64_t now_us, uint64_t *unsaid) {
  return log_repeat_comes(repeat, text, now_us, unsaid) && log_quota_due(&repeat->quota, now_us, &repeat->others);
}

void log_repeated(struct log_repeat *repeat, enum log_level level, const char *id, const char *fmt, ...) {
  char text[2048];
  uint64_t unsaid;
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  if (!log_repeat_due(repeat, text, clock_mono_us(), &unsaid))
    return;
  char same[64] = "", others[64] = "";
  if (unsaid)
    snprintf(same, sizeof same, " (%llu more times since this was said last)", (unsigned long long)unsaid);
  if (repeat->others)
    snprintf(others, sizeof others, " (and %llu like it have no line)", (unsigned long long)repeat->others);
  log_write(level, id, "%s%s%s", text, same, others);
}
