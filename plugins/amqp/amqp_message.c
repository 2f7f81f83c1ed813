/* SPDX-License-Identifier: MIT */
#include "amqp_message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum {
  OWN_HEADERS = 5,
  SHORTSTR_MAX = 255,
  ENTRY_OVERHEAD = 6,  /* length of the name, kind, length of the value */
  HEADER_OVERHEAD = 64 /* the frame, class, weight, body size, flags, and the fixed-size properties */
};

static amqp_bytes_t bytes_of(const char *data, size_t len) { return (amqp_bytes_t){.len = len, .bytes = (void *)data}; }

void amqp_message_time(int64_t time_us, char *out, size_t cap) {
  int64_t fraction = time_us % 1000000;
  if (fraction < 0)
    fraction += 1000000;
  time_t seconds = (time_t)((time_us - fraction) / 1000000);
  struct tm tm;
  char date[24];
  gmtime_r(&seconds, &tm);
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &tm);
  snprintf(out, cap, "%s.%06dZ", date, (int)fraction);
}

static bool reserve(struct amqp_message *message, size_t entries) {
  if (entries <= (size_t)message->capacity)
    return true;
  if (entries > INT32_MAX / sizeof *message->entries)
    return false;
  amqp_table_entry_t *grown = realloc(message->entries, entries * sizeof *grown);
  if (!grown)
    return false;
  message->entries = grown;
  message->capacity = (int)entries;
  return true;
}

static void add_header(struct amqp_message *message, const char *name, size_t name_len, const char *value, size_t len) {
  amqp_table_t *headers = &message->properties.headers;
  amqp_table_entry_t *entry = &headers->entries[headers->num_entries++];
  entry->key = bytes_of(name, name_len);
  entry->value.kind = AMQP_FIELD_KIND_UTF8;
  entry->value.value.bytes = bytes_of(value, len);
  message->head_size += name_len + len + ENTRY_OVERHEAD;
}

static void add_own(struct amqp_message *message, const char *name, const char *value, size_t len) {
  add_header(message, name, strlen(name), value, len);
}

/* RabbitMQ takes these for lists of more routing keys, and closes the channel (406) when they are none: here every
 * header is a text. No other header breaks a channel. */
static bool is_routing_name(const char *name) { return strcmp(name, "CC") == 0 || strcmp(name, "BCC") == 0; }

/* Spring's names for properties. It reads both into one map, headers last, and makes properties of it again: a row
 * would have its consumer take the id of another task for its own, and answer for that. */
static bool passes_for_a_property(const char *name) { return strncasecmp(name, "amqp_", 5) == 0; }

static int add_headers(struct amqp_message *message, const struct duebox_task *task) {
  snprintf(message->attempt, sizeof message->attempt, "%u", task->attempt);
  amqp_message_time(task->due_us, message->due, sizeof message->due);
  add_own(message, "duebox-attempt", message->attempt, strlen(message->attempt));
  if (duebox_task_revision(task) > 0) {
    snprintf(message->revision, sizeof message->revision, "%u", task->revision);
    add_own(message, "duebox-revision", message->revision, strlen(message->revision));
  }
  add_own(message, "duebox-route", task->route, strlen(task->route));
  add_own(message, "duebox-due", message->due, strlen(message->due));
  if (task->checkpoint.len)
    add_own(message, "duebox-checkpoint", task->checkpoint.data, task->checkpoint.len);
  for (size_t i = 0; i < task->header_count; i++) {
    const struct duebox_header *header = &task->headers[i];
    size_t len = strlen(header->name);
    if (passes_for_a_property(header->name))
      continue;
    if (len > SHORTSTR_MAX)
      return AMQP_INVALID_HEADER_NAME;
    if (is_routing_name(header->name))
      return AMQP_INVALID_CC;
    add_header(message, header->name, len, header->value.data, header->value.len);
  }
  return 0;
}

static void set_text(struct amqp_message *message, amqp_bytes_t *property, amqp_flags_t flag, const char *text) {
  if (!text || !*text)
    return;
  *property = amqp_cstring_bytes(text);
  message->properties._flags |= flag;
  message->head_size += property->len + 1;
}

static void set_properties(struct amqp_message *message, const struct duebox_task *task, const struct amqp_route *route,
                           int64_t wall_us) {
  amqp_basic_properties_t *p = &message->properties;
  p->_flags =
      AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_PRIORITY_FLAG | AMQP_BASIC_TIMESTAMP_FLAG;
  p->headers.entries = message->entries;
  p->delivery_mode = route->persistent ? AMQP_DELIVERY_PERSISTENT : AMQP_DELIVERY_NONPERSISTENT;
  p->priority = task->priority;
  p->timestamp = (uint64_t)(wall_us / 1000000); /* RabbitMQ and the clients agree on seconds */
  set_text(message, &p->message_id, AMQP_BASIC_MESSAGE_ID_FLAG, task->message_id);
  set_text(message, &p->correlation_id, AMQP_BASIC_CORRELATION_ID_FLAG, task->message_id);
  set_text(message, &p->reply_to, AMQP_BASIC_REPLY_TO_FLAG, task->reply_to);
  set_text(message, &p->content_type, AMQP_BASIC_CONTENT_TYPE_FLAG, route->content_type);
  set_text(message, &p->app_id, AMQP_BASIC_APP_ID_FLAG, route->app_id);
}

int amqp_message_build(struct amqp_message *message, const struct duebox_task *task, const struct amqp_route *route,
                       int64_t wall_us, size_t frame_max) {
  if (!reserve(message, task->header_count + OWN_HEADERS))
    return -1;
  message->properties = (amqp_basic_properties_t){0};
  message->head_size = HEADER_OVERHEAD;
  set_properties(message, task, route, wall_us);
  if (message->properties.message_id.len > SHORTSTR_MAX)
    return AMQP_INVALID_MESSAGE_ID;
  if (message->properties.reply_to.len > SHORTSTR_MAX)
    return AMQP_INVALID_REPLY_TO;
  int invalid = add_headers(message, task);
  if (invalid)
    return invalid;
  /* Found out by the library only after the first frame of the message has left: too late for the channel. */
  return message->head_size > frame_max ? AMQP_INVALID_HEADERS_SIZE : 0;
}

/* By which RabbitMQ tells its consumers with direct replies apart. One that is not well formed ends the connection. */
static const char direct_reply[] = "amq.rabbitmq.reply-to";

const char *amqp_message_key(const struct duebox_host *host, const struct duebox_task *task,
                             const struct amqp_route *route, char room[AMQP_MESSAGE_KEY], int *invalid) {
  const char *key = route->routing_key;
  size_t len = strlen(key);
  if (strchr(key, '{')) {
    key = room;
    len = host->expand(host->ctx, route->routing_key, task, DUEBOX_ESCAPE_NONE, room, AMQP_MESSAGE_KEY);
  }
  *invalid = len >= AMQP_MESSAGE_KEY                                                      ? AMQP_INVALID_ROUTING_KEY
             : strlen(key) != len                                                         ? AMQP_INVALID_KEY_NUL
             : !*route->exchange && strncmp(key, direct_reply, strlen(direct_reply)) == 0 ? AMQP_INVALID_KEY_REPLY
                                                                                          : 0;
  return *invalid ? NULL : key;
}

void amqp_message_free(struct amqp_message *message) {
  free(message->entries);
  *message = (struct amqp_message){0};
}
