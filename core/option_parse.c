/* SPDX-License-Identifier: MIT
 *
 * core/option_parse.c - texts of people to values with units. Pure, and the same in every locale.
 *
 * Errors quote the text and say how it should look; the caller puts the place in front.
 */
#include <stdlib.h>
#include <string.h>

#include "core/options.h"

struct unit {
  const char *name;
  int64_t factor;
};

static const struct unit durations[] = {
    {"ms", 1}, {"s", 1000}, {"m", 60 * 1000}, {"h", 3600 * 1000}, {"d", 24 * 3600 * 1000}, {NULL, 0}};

static const struct unit sizes[] = {{"", 1},
                                    {"B", 1},
                                    {"KB", 1000},
                                    {"MB", 1000 * 1000},
                                    {"GB", 1000 * 1000 * 1000},
                                    {"KiB", 1024},
                                    {"MiB", 1024 * 1024},
                                    {"GiB", 1024 * 1024 * 1024},
                                    {NULL, 0}};

/* Per how many milliseconds. */
static const struct unit rates[] = {{"/s", 1000}, {"/m", 60 * 1000}, {"/h", 3600 * 1000}, {NULL, 0}};

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Takes digits off *p; false when there are none or they do not fit. */
static bool take_int(const char **p, int64_t *value) {
  if (!is_digit(**p))
    return false;
  for (*value = 0; is_digit(**p); (*p)++)
    if (__builtin_mul_overflow(*value, 10, value) || __builtin_add_overflow(*value, **p - '0', value))
      return false;
  return true;
}

/* The unit whose name is the first n characters of text, or NULL. */
static const struct unit *find_unit(const struct unit *units, const char *text, size_t n) {
  for (; units->name; units++)
    if (strlen(units->name) == n && strncmp(units->name, text, n) == 0)
      return units;
  return NULL;
}

bool option_parse_int(const char *text, int64_t *value, struct err *err) {
  bool negative = text[0] == '-';
  const char *p = text + negative;
  if (!take_int(&p, value) || *p)
    return err_set(err, 1, "\"%.64s\" is not a whole number; write digits only, such as 25", text);
  if (negative)
    *value = -*value;
  return true;
}

/* Decimal notation without exponent. With at most 15 digits both the mantissa and the power of ten are exact in a
 * double, so one division gives the nearest value. */
static bool take_decimal(const char **p, double *value) {
  int64_t mantissa = 0;
  int digits = 0, decimals = 0;
  bool point = false;
  for (; is_digit(**p) || (**p == '.' && !point); (*p)++) {
    if (**p == '.') {
      point = true;
      continue;
    }
    mantissa = mantissa * 10 + (**p - '0');
    decimals += point;
    if (++digits > 15)
      return false;
  }
  double power = 1;
  for (int i = 0; i < decimals; i++)
    power *= 10;
  *value = (double)mantissa / power;
  return digits > 0;
}

bool option_parse_number(const char *text, double *value, struct err *err) {
  bool negative = text[0] == '-';
  const char *p = text + negative;
  if (!take_decimal(&p, value) || *p)
    return err_set(err, 1, "\"%.64s\" is not a number; write it as 2 or 0.25, with at most 15 digits", text);
  if (negative)
    *value = -*value;
  return true;
}

bool option_parse_bool(const char *text, bool *value, struct err *err) {
  static const char *const yes[] = {"true", "yes", "on"}, *const no[] = {"false", "no", "off"};
  for (size_t i = 0; i < ARRAY_LEN(yes); i++)
    if (strcmp(text, yes[i]) == 0 || strcmp(text, no[i]) == 0) {
      *value = strcmp(text, yes[i]) == 0;
      return true;
    }
  return err_set(err, 1, "\"%.64s\" is neither true nor false; write true or false", text);
}

/* Nobody means more than a thousand years; and as microseconds, beside a time, it is still far from overflowing. */
#define DURATION_MAX_MS (INT64_C(365000) * 24 * 3600 * 1000)

bool option_parse_duration(const char *text, int64_t *ms, struct err *err) {
  const char *p = text;
  int64_t total = 0, number, larger = INT64_MAX;
  if (strcmp(text, "0") == 0) {
    *ms = 0;
    return true;
  }
  do { /* "1h30m" is a sum */
    const char *digits = p;
    if (!take_int(&p, &number))
      return is_digit(*digits)
                 ? err_set(err, 1, "\"%.64s\" is too long a duration; at most 365000d", text)
                 : err_set(err, 1,
                           "\"%.64s\" is not a duration; write whole numbers with a unit: 250ms, 30s, 15m, 1h, 2d",
                           text);
    size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    if (n == 0 && *p == '\0')
      return err_set(err, 1, "\"%.64s\" has no unit; write %.20ss for seconds or %.20sms for milliseconds", text, text,
                     text);
    const struct unit *unit = find_unit(durations, p, n);
    if (!unit)
      return err_set(err, 1, "\"%.64s\" is not a duration; the units are ms, s, m, h and d, as in 250ms, 30s, 15m",
                     text);
    if (unit->factor >= larger) /* "1m1h": perhaps months were meant, or the one in place of the other */
      return err_set(err, 1, "\"%.64s\" is not a duration; the larger unit comes first, each once, as in 1h30m", text);
    larger = unit->factor;
    if (__builtin_mul_overflow(number, unit->factor, &number) || __builtin_add_overflow(total, number, &total) ||
        total > DURATION_MAX_MS)
      return err_set(err, 1, "\"%.64s\" is too long a duration; at most 365000d", text);
    p += n;
  } while (*p);
  *ms = total;
  return true;
}

bool option_parse_size(const char *text, int64_t *bytes, struct err *err) {
  const char *p = text;
  int64_t number;
  if (!take_int(&p, &number))
    return err_set(err, 1, "\"%.64s\" is not a size; write a whole number of bytes with or without a unit: 64KiB, 1MiB",
                   text);
  const struct unit *unit = find_unit(sizes, p, strlen(p));
  if (!unit)
    return err_set(err, 1, "\"%.64s\" is not a size; the units are B, KB, MB, GB (1000) and KiB, MiB, GiB (1024)",
                   text);
  if (__builtin_mul_overflow(number, unit->factor, bytes))
    return err_set(err, 1, "\"%.64s\" is too large a size", text);
  return true;
}

bool option_parse_rate(const char *text, double *per_second, struct err *err) {
  const char *p = text;
  double number;
  if (strcmp(text, "0") == 0) {
    *per_second = 0;
    return true;
  }
  if (!take_decimal(&p, &number))
    return err_set(err, 1, "\"%.64s\" is not a rate; write 100/s, 6000/m or 10/h, or 0 for no limit", text);
  const struct unit *unit = find_unit(rates, p, strlen(p));
  if (!unit)
    return err_set(err, 1, "\"%.64s\" is not a rate; write %.*s/s, %.*s/m or %.*s/h", text, (int)(p - text), text,
                   (int)(p - text), text, (int)(p - text), text);
  *per_second = number * 1000 / (double)unit->factor;
  return true;
}
