/* SPDX-License-Identifier: MIT
 *
 * admin/body.c - strict reading of command bodies: an unknown member is an error, for a misspelt one would change
 * something other than was meant.
 */
#include "admin/body.h"

#include <string.h>
#include <time.h>

#include "admin/problem.h"

static bool is_known(const char *key, const char *const *known) {
  while (*known && strcmp(*known, key) != 0)
    known++;
  return *known != NULL;
}

json_t *body_object(const struct request *request, const char *const *known, struct response *response) {
  if (request->body.len == 0)
    return json_object();
  json_error_t error;
  json_t *object = json_loadb(request->body.data, request->body.len, JSON_REJECT_DUPLICATES, &error);
  if (!object) {
    respond_problem(response, PROBLEM_BAD_REQUEST, "the body is no JSON: line %d column %d: %s", error.line,
                    error.column, error.text);
    return NULL;
  }
  if (!json_is_object(object)) {
    respond_problem(response, PROBLEM_BAD_REQUEST, "the body must be a JSON object");
    json_decref(object);
    return NULL;
  }
  const char *key;
  json_t *value;
  json_object_foreach(object, key, value) {
    if (is_known(key, known))
      continue;
    respond_problem(response, PROBLEM_BAD_REQUEST, "unknown member \"%s\"", key);
    json_decref(object);
    return NULL;
  }
  return object;
}

static bool short_text(const json_t *object, const char *key, size_t max, const char *def, const char **out,
                       struct response *response) {
  const json_t *value = json_object_get(object, key);
  *out = value ? json_string_value(value) : def;
  if (*out && strlen(*out) <= max)
    return true;
  respond_problem(response, PROBLEM_BAD_REQUEST, "\"%s\" must be a text of at most %zu bytes", key, max);
  return false;
}

bool body_motive(const json_t *object, struct motive *motive, struct response *response) {
  return short_text(object, "actor", BODY_ACTOR_MAX, "api", &motive->actor, response) &&
         short_text(object, "reason", BODY_REASON_MAX, "", &motive->reason, response);
}

bool body_text(const json_t *object, const char *key, size_t max, const char **text, struct response *response) {
  return short_text(object, key, max, "", text, response);
}

/* Reads exactly n digits; -1 when they are not there. */
static int digits(const char **p, int n) {
  int value = 0;
  for (int i = 0; i < n; i++, (*p)++) {
    if (**p < '0' || **p > '9')
      return -1;
    value = value * 10 + (**p - '0');
  }
  return value;
}

static bool take(const char **p, const char *any_of) {
  if (!**p || !strchr(any_of, **p))
    return false;
  (*p)++;
  return true;
}

/* Digits after the point to microseconds; further ones are dropped. */
static int64_t fraction(const char **p) {
  int64_t us = 0;
  for (int64_t weight = 100000; **p >= '0' && **p <= '9'; (*p)++, weight /= 10)
    us += (**p - '0') * weight;
  return us;
}

/* "Z" or "+hh:mm" to minutes; false when it is neither. */
static bool offset(const char **p, int *minutes) {
  *minutes = 0;
  if (take(p, "Zz"))
    return true;
  int sign = **p == '-' ? -1 : 1;
  if (!take(p, "+-"))
    return false;
  int h = digits(p, 2);
  bool colon = take(p, ":");
  int m = colon ? digits(p, 2) : -1;
  *minutes = sign * (h * 60 + m);
  return h >= 0 && h < 24 && m >= 0 && m < 60;
}

bool body_parse_time(const char *text, int64_t *us) {
  const char *p = text;
  struct tm tm = {0};
  int year = digits(&p, 4);
  int month = take(&p, "-") ? digits(&p, 2) : -1, day = take(&p, "-") ? digits(&p, 2) : -1;
  int hour = take(&p, "Tt ") ? digits(&p, 2) : -1, minute = take(&p, ":") ? digits(&p, 2) : -1;
  int second = take(&p, ":") ? digits(&p, 2) : -1, zone;
  if (year < 1970 || month < 1 || month > 12 || day < 1 || day > 31 || hour < 0 || hour > 23 || minute < 0 ||
      minute > 59 || second < 0 || second > 60)
    return false;
  bool point = take(&p, ".");
  if (point && (*p < '0' || *p > '9'))
    return false;
  int64_t part = point ? fraction(&p) : 0;
  if (!offset(&p, &zone) || *p)
    return false;
  tm = (struct tm){
      .tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day, .tm_hour = hour, .tm_min = minute, .tm_sec = second};
  time_t seconds = timegm(&tm);
  if (tm.tm_mon != month - 1) /* 30 February became March */
    return false;
  *us = ((int64_t)seconds - zone * 60LL) * 1000000 + part;
  return *us >= 0;
}
