/* SPDX-License-Identifier: MIT */
#include "core/headers.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/json_scan.h"

static bool is(struct duebox_bytes json, const char *text) {
  return json.len == strlen(text) && memcmp(json.data, text, json.len) == 0;
}

static bool breaks_line(const char *text, size_t len) { return memchr(text, '\r', len) || memchr(text, '\n', len); }

static bool syntax(const struct json_scan *scan, struct err *err) {
  return err_set(err, 1, "the headers are no JSON object of strings: byte %zu: %s", (size_t)(scan->at - scan->start),
                 scan->problem);
}

static bool check_name(const struct duebox_header *list, size_t count, const char *name, size_t len, struct err *err) {
  if (len == 0)
    return err_set(err, 1, "a header has an empty name");
  if (breaks_line(name, len))
    return err_set(err, 1, "a header's name holds a line break");
  for (size_t i = 0; i < count; i++)
    if (strcmp(list[i].name, name) == 0)
      return err_set(err, 1, "header \"%.64s\" is there twice", name);
  return true;
}

/* Takes a string, or a number or boolean as its text: clients write {"retries": 3} as readily as {"retries": "3"}. */
static bool read_value(struct json_scan *scan, const char *name, char *text, size_t *len, struct err *err) {
  enum json_scan_type type = json_scan_peek(scan);
  struct duebox_bytes span;
  if (type == SCAN_STRING) {
    if (!json_scan_string(scan, text, len))
      return err_set(err, 1, "header \"%.64s\": %s", name, scan->problem);
    return !breaks_line(text, *len) || err_set(err, 1, "header \"%.64s\": the value holds a line break", name);
  }
  if (type != SCAN_NUMBER && type != SCAN_BOOL)
    return err_set(err, 1, "header \"%.64s\": the value must be a string, a number, true or false", name);
  if (!json_scan_value(scan, &span))
    return err_set(err, 1, "header \"%.64s\": %s", name, scan->problem);
  memcpy(text, span.data, span.len);
  text[span.len] = '\0';
  *len = span.len;
  return true;
}

/* Names that only duebox sets, on every sink and in any case: a consumer that goes by one goes by what duebox says. An
 * application's own is left out, and the task is sent: who hands a message on copies what it received. */
bool headers_is_reserved(const char *name) { return strncasecmp(name, "duebox-", 7) == 0; }

/* Reads all members; text has as many bytes as the JSON, and no name or value is longer there than in the JSON, colon
 * or comma included. */
static bool read_members(struct json_scan *scan, struct duebox_header *list, size_t room, size_t *count, char *text,
                         struct err *err) {
  bool first = true;
  size_t len;
  if (!json_scan_enter(scan))
    return syntax(scan, err);
  while (json_scan_key(scan, &first, text, &len)) {
    const char *name = text;
    if (*count == room)
      return err_set(err, 1, "more than %d headers", HEADERS_MAX);
    if (!check_name(list, *count, name, len, err))
      return false;
    text += len + 1;
    if (!read_value(scan, name, text, &len, err))
      return false;
    if (headers_is_reserved(name))
      continue;
    list[(*count)++] = (struct duebox_header){.name = name, .value = {.data = text, .len = len}};
    text += len + 1;
  }
  return (!scan->problem && json_scan_end(scan)) || syntax(scan, err);
}

bool headers_parse(struct duebox_bytes json, struct duebox_header **out, size_t *count, struct err *err) {
  *out = NULL;
  *count = 0;
  if (json.len == 0 || is(json, "{}") || is(json, "null"))
    return true;
  if (json.len > HEADERS_TEXT_MAX)
    return err_set(err, 1, "the headers have %zu bytes, at most %d are allowed", json.len, HEADERS_TEXT_MAX);
  size_t room = 1;
  for (size_t i = 0; i < json.len && room < HEADERS_MAX; i++)
    room += json.data[i] == ',';
  struct duebox_header *list = malloc(room * sizeof *list + json.len);
  if (!list)
    return err_set(err, 1, "out of memory for headers");
  struct json_scan scan = json_scan_start(json.data, json.len);
  bool ok = read_members(&scan, list, room, count, (char *)(list + room), err);
  if (ok && *count > 0) {
    *out = list;
    return true;
  }
  *count = 0;
  free(list);
  return ok;
}
