/* SPDX-License-Identifier: MIT */
#include "core/template.h"

#include <stdio.h>
#include <string.h>

#include "core/options.h"

#define HEADER_PREFIX "header."

enum field { FIELD_TASK_KEY, FIELD_ROUTE, FIELD_MESSAGE_ID, FIELD_PRIORITY, FIELDS };
static const char *const field_names[FIELDS] = {"task_key", "route", "message_id", "priority"};

/* One step through a template: a literal text or a placeholder. */
struct part {
  bool placeholder;
  const char *text; /* the literal, or the name between the braces */
  size_t len;
};

/* Takes the next part off *p. False with a problem text when a brace stands alone. */
static bool next_part(const char **p, struct part *part, const char **problem) {
  const char *s = *p;
  *part = (struct part){.text = s};
  if ((s[0] == '{' || s[0] == '}') && s[1] == s[0]) {
    part->len = 1;
    *p = s + 2;
  } else if (s[0] == '{') {
    size_t n = strcspn(s + 1, "{}");
    if (s[1 + n] != '}') {
      *problem = "\"{\" is not closed; write \"{{\" for a brace that is meant literally";
      return false;
    }
    *part = (struct part){.placeholder = true, .text = s + 1, .len = n};
    *p = s + n + 2;
  } else if (s[0] == '}') {
    *problem = "\"}\" has no \"{\" before it; write \"}}\" for a brace that is meant literally";
    return false;
  } else {
    part->len = strcspn(s, "{}");
    *p = s + part->len;
  }
  return true;
}

static bool is_header(const struct part *part) {
  return part->len > strlen(HEADER_PREFIX) && strncmp(part->text, HEADER_PREFIX, strlen(HEADER_PREFIX)) == 0;
}

static enum field find_field(const struct part *part) {
  for (int i = 0; i < FIELDS; i++)
    if (strlen(field_names[i]) == part->len && memcmp(field_names[i], part->text, part->len) == 0)
      return (enum field)i;
  return FIELDS;
}

bool template_check(const char *tmpl, struct err *err) {
  struct part part;
  const char *problem;
  while (*tmpl) {
    if (!next_part(&tmpl, &part, &problem))
      return err_set(err, 1, "%s", problem);
    if (!part.placeholder || is_header(&part) || find_field(&part) != FIELDS)
      continue;
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(part.len < 63 ? part.len : 63), part.text);
    const char *near = option_suggest(name, field_names, FIELDS);
    if (near)
      return err_set(err, 1, "unknown placeholder {%s}; did you mean {%s}?", name, near);
    return err_set(err, 1,
                   "unknown placeholder {%s}; there are {task_key}, {route}, {message_id}, {priority} and "
                   "{header.NAME}",
                   name);
  }
  return true;
}

bool template_varies(const char *tmpl) {
  struct part part;
  const char *problem;
  while (*tmpl && next_part(&tmpl, &part, &problem))
    if (part.placeholder && find_field(&part) != FIELD_ROUTE)
      return true;
  return false;
}

/* Where the expansion is written; len counts on beyond cap. */
struct sink {
  char *out;
  size_t cap, len;
};

static void put(struct sink *sink, const char *data, size_t n) {
  if (sink->len < sink->cap && n > 0) {
    size_t room = sink->cap - sink->len;
    memcpy(sink->out + sink->len, data, n < room ? n : room);
  }
  sink->len += n;
}

static bool unreserved(unsigned char c) { /* RFC 3986 section 2.3; isalnum() would ask the locale */
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

static void put_value(struct sink *sink, struct duebox_bytes value, enum duebox_escape escape) {
  static const char hex[] = "0123456789ABCDEF";
  if (escape == DUEBOX_ESCAPE_NONE) {
    put(sink, value.data, value.len);
    return;
  }
  for (size_t i = 0; i < value.len; i++) {
    unsigned char c = (unsigned char)value.data[i];
    if (unreserved(c))
      put(sink, (const char *)&c, 1);
    else
      put(sink, (const char[]){'%', hex[c >> 4], hex[c & 15]}, 3);
  }
}

static struct duebox_bytes text_bytes(const char *text) {
  return (struct duebox_bytes){.data = text ? text : "", .len = text ? strlen(text) : 0};
}

static struct duebox_bytes header_value(const struct duebox_task *task, const char *name, size_t len) {
  for (size_t i = 0; i < task->header_count; i++)
    if (strlen(task->headers[i].name) == len && memcmp(task->headers[i].name, name, len) == 0)
      return task->headers[i].value;
  return text_bytes("");
}

static void put_placeholder(struct sink *sink, const struct part *part, const struct duebox_task *task,
                            enum duebox_escape escape) {
  const char priority[2] = {(char)('0' + task->priority % 10), '\0'};
  if (is_header(part)) {
    size_t skip = strlen(HEADER_PREFIX);
    put_value(sink, header_value(task, part->text + skip, part->len - skip), escape);
    return;
  }
  switch (find_field(part)) {
  case FIELD_TASK_KEY:
    put_value(sink, task->key, escape);
    break;
  case FIELD_ROUTE:
    put_value(sink, text_bytes(task->route), escape);
    break;
  case FIELD_MESSAGE_ID:
    put_value(sink, text_bytes(task->message_id), escape);
    break;
  case FIELD_PRIORITY:
    put_value(sink, (struct duebox_bytes){priority, 1}, escape);
    break;
  case FIELDS: /* unknown: as it stands */
    put(sink, part->text - 1, part->len + 2);
    break;
  }
}

size_t template_expand(const char *tmpl, const struct duebox_task *task, enum duebox_escape escape, char *out,
                       size_t cap) {
  struct sink sink = {.out = out, .cap = cap};
  struct part part;
  const char *problem;
  while (*tmpl) {
    if (!next_part(&tmpl, &part, &problem)) {
      put(&sink, tmpl++, 1);
      continue;
    }
    if (part.placeholder)
      put_placeholder(&sink, &part, task, escape);
    else
      put(&sink, part.text, part.len);
  }
  if (cap > 0)
    out[sink.len < cap ? sink.len : cap - 1] = '\0';
  return sink.len;
}
