/* SPDX-License-Identifier: MIT
 *
 * tests/support/fake_expand.c - templates and option defaults as the real host has them, small enough for tests.
 */
#include "tests/support/fake_host_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct out {
  char *data;
  size_t cap, len;
};

static void put(struct out *out, char c) {
  if (out->len + 1 < out->cap)
    out->data[out->len] = c;
  out->len++;
}

static void put_bytes(struct out *out, const char *data, size_t len, enum duebox_escape escape) {
  static const char unreserved[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  static const char hex[] = "0123456789ABCDEF";
  for (size_t i = 0; i < len; i++) {
    unsigned char c = (unsigned char)data[i];
    if (escape == DUEBOX_ESCAPE_NONE || (c && strchr(unreserved, c))) {
      put(out, (char)c);
      continue;
    }
    put(out, '%');
    put(out, hex[c >> 4]);
    put(out, hex[c & 15]);
  }
}

static void put_name(struct out *out, const struct duebox_task *task, const char *name, enum duebox_escape escape) {
  char priority[4];
  if (strcmp(name, "task_key") == 0) {
    put_bytes(out, task->key.data, task->key.len, escape);
  } else if (strcmp(name, "route") == 0) {
    put_bytes(out, task->route, strlen(task->route), escape);
  } else if (strcmp(name, "message_id") == 0) {
    put_bytes(out, task->message_id, strlen(task->message_id), escape);
  } else if (strcmp(name, "priority") == 0) {
    int len = snprintf(priority, sizeof(priority), "%u", task->priority);
    put_bytes(out, priority, (size_t)len, escape);
  } else if (strncmp(name, "header.", 7) == 0) {
    for (size_t i = 0; i < task->header_count; i++)
      if (strcmp(task->headers[i].name, name + 7) == 0)
        put_bytes(out, task->headers[i].value.data, task->headers[i].value.len, escape);
  } else {
    fail_msg("the template names {%s}, which does not exist", name);
  }
}

size_t fake_expand(void *ctx, const char *tmpl, const struct duebox_task *task, enum duebox_escape escape, char *text,
                   size_t cap) {
  struct fake_host *host = ctx;
  struct out out = {text, cap, 0};
  if (!pthread_equal(host->driver, pthread_self())) {
    pthread_mutex_lock(&host->lock);
    fake_breach(host, "expand() was called on another thread than the driver");
    pthread_mutex_unlock(&host->lock);
  }
  for (const char *at = tmpl; *at; at++) {
    const char *end = *at == '{' ? strchr(at, '}') : NULL;
    char name[64];
    if (!end || (size_t)(end - at) > sizeof(name)) {
      put(&out, *at);
      continue;
    }
    snprintf(name, sizeof(name), "%.*s", (int)(end - at - 1), at + 1);
    put_name(&out, task, name, escape);
    at = end;
  }
  if (cap)
    text[out.len < cap ? out.len : cap - 1] = '\0';
  return out.len;
}

static int64_t unit_factor(const char *unit) {
  static const struct {
    const char *name;
    int64_t factor;
  } units[] = {{"", 1},         {"ms", 1},     {"s", 1000},      {"m", 60000}, {"h", 3600000},
               {"d", 86400000}, {"KiB", 1024}, {"MiB", 1048576}, {"B", 1}};
  for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
    if (strcmp(units[i].name, unit) == 0)
      return units[i].factor;
  fail_msg("unit \"%s\" in a default", unit);
  return 0;
}

static int choice(const struct duebox_option *row) {
  for (int i = 0; row->choices[i]; i++)
    if (strcmp(row->choices[i], row->def) == 0)
      return i;
  fail_msg("option %s: its default \"%s\" is not a choice", row->name, row->def);
  return 0;
}

void fake_options(const struct duebox_option *rows, void *out) {
  for (const struct duebox_option *row = rows; row->name; row++) {
    void *at = (char *)out + row->offset;
    char *unit = NULL;
    if (!row->def)
      continue;
    switch (row->type) {
    case DUEBOX_OPT_STRING:
      *(const char **)at = row->def;
      break;
    case DUEBOX_OPT_BOOL:
      *(bool *)at = strcmp(row->def, "true") == 0;
      break;
    case DUEBOX_OPT_INT:
    case DUEBOX_OPT_SIZE:
    case DUEBOX_OPT_DURATION:
      *(int64_t *)at = strtoll(row->def, &unit, 10);
      *(int64_t *)at *= unit_factor(unit);
      break;
    case DUEBOX_OPT_NUMBER:
    case DUEBOX_OPT_RATE:
      *(double *)at = strtod(row->def, NULL);
      break;
    case DUEBOX_OPT_ENUM:
      *(int *)at = choice(row);
      break;
    default:
      fail_msg("option %s: a test must set this type itself", row->name);
    }
  }
}
