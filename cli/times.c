/* SPDX-License-Identifier: MIT */
#include "cli/times.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { US_PER_MS = 1000, US_PER_S = 1000000 };

void rfc3339_print(int64_t us, char out[TIME_TEXT_MAX]) {
  int64_t part = us % US_PER_S;
  if (part < 0)
    part += US_PER_S;
  time_t seconds = (time_t)((us - part) / US_PER_S);
  struct tm tm;
  char date[24];
  gmtime_r(&seconds, &tm);
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &tm);
  snprintf(out, TIME_TEXT_MAX, "%s.%06dZ", date, (int)part);
}

/* Exactly `digits` digits; moves *text behind them. */
static bool number(const char **text, int digits, int low, int high, int *out) {
  int value = 0;
  for (int i = 0; i < digits; i++, (*text)++) {
    if (**text < '0' || **text > '9')
      return false;
    value = value * 10 + (**text - '0');
  }
  *out = value;
  return value >= low && value <= high;
}

static bool literal(const char **text, char c) {
  if (**text != c)
    return false;
  (*text)++;
  return true;
}

/* ".123456": one to six digits count, more are refused. */
static bool fraction(const char **text, int *us) {
  *us = 0;
  int digits = 0;
  for (; **text >= '0' && **text <= '9'; (*text)++, digits++)
    *us = *us * 10 + (**text - '0');
  if (digits < 1 || digits > 6)
    return false;
  for (; digits < 6; digits++)
    *us *= 10;
  return true;
}

static bool clock_part(const char **text, struct tm *tm, int *us) {
  if (!number(text, 2, 0, 23, &tm->tm_hour) || !literal(text, ':') || !number(text, 2, 0, 59, &tm->tm_min))
    return false;
  if (literal(text, ':') && !number(text, 2, 0, 59, &tm->tm_sec))
    return false;
  return !literal(text, '.') || fraction(text, us);
}

static bool zone(const char **text, int *offset_min) {
  *offset_min = 0;
  if (literal(text, 'Z') || literal(text, 'z'))
    return true;
  int sign = literal(text, '+') ? 1 : literal(text, '-') ? -1 : 0;
  if (sign == 0)
    return true;
  int hours, minutes;
  if (!number(text, 2, 0, 14, &hours) || !literal(text, ':') || !number(text, 2, 0, 59, &minutes))
    return false;
  *offset_min = sign * (hours * 60 + minutes);
  return true;
}

bool rfc3339_parse(const char *text, int64_t *us) {
  struct tm tm = {0};
  int year, month, micros = 0, offset_min = 0;
  if (!number(&text, 4, 1970, 9999, &year) || !literal(&text, '-') || !number(&text, 2, 1, 12, &month) ||
      !literal(&text, '-') || !number(&text, 2, 1, 31, &tm.tm_mday))
    return false;
  if ((literal(&text, 'T') || literal(&text, 't') || literal(&text, ' ')) &&
      (!clock_part(&text, &tm, &micros) || !zone(&text, &offset_min)))
    return false;
  if (*text)
    return false;
  tm.tm_year = year - 1900;
  tm.tm_mon = month - 1;
  int day = tm.tm_mday;
  time_t seconds = timegm(&tm);
  if (tm.tm_mday != day) /* 31 February */
    return false;
  *us = ((int64_t)seconds - (int64_t)offset_min * 60) * US_PER_S + micros;
  return true;
}

const char *span_print(int64_t us, char *out, size_t cap) {
  uint64_t v = us < 0 ? 0 - (uint64_t)us : (uint64_t)us;
  uint64_t s = v / US_PER_S;
  if (v < 10 * US_PER_MS)
    snprintf(out, cap, "%.1f ms", (double)v / US_PER_MS);
  else if (s < 1)
    snprintf(out, cap, "%u ms", (unsigned)(v / US_PER_MS));
  else if (s < 60)
    snprintf(out, cap, "%.1f s", (double)v / US_PER_S);
  else if (s < 3600)
    snprintf(out, cap, "%u min %u s", (unsigned)(s / 60), (unsigned)(s % 60));
  else if (s < 86400)
    snprintf(out, cap, "%u h %u min", (unsigned)(s / 3600), (unsigned)(s / 60 % 60));
  else
    snprintf(out, cap, "%llu d %u h", (unsigned long long)(s / 86400), (unsigned)(s / 3600 % 24));
  return out;
}
