/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_message.c - see kafka_message.h.
 *
 * Runs for every message: no snprintf, no gmtime_r (it takes a lock), no allocation besides librdkafka's own.
 */
#include "kafka_message.h"

#include <string.h>

#include "kafka_correlation.h"

static char *put_digits(char *at, int64_t value, int digits) {
  for (int i = digits - 1; i >= 0; i--, value /= 10)
    at[i] = (char)('0' + value % 10);
  return at + digits;
}

/* Day number since 1970-01-01 to a date of the Gregorian calendar, by years that start on the first of March, so that
 * the leap day is the last one and month lengths repeat in groups of 153 days. */
static char *put_date(char *at, int64_t days) {
  int64_t day = days + 719468; /* since 0000-03-01 */
  int64_t era = day / 146097;
  int64_t day_of_era = day % 146097;
  int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  int64_t march_month = (5 * day_of_year + 2) / 153;
  int64_t month = march_month < 10 ? march_month + 3 : march_month - 9;
  at = put_digits(at, era * 400 + year_of_era + (month <= 2), 4);
  *at++ = '-';
  at = put_digits(at, month, 2);
  *at++ = '-';
  return put_digits(at, day_of_year - (153 * march_month + 2) / 5 + 1, 2);
}

void kafka_due_text(int64_t due_us, char out[KAFKA_DUE_SIZE]) {
  int64_t seconds = due_us / 1000000, of_day = seconds % 86400;
  char *at = put_date(out, seconds / 86400);
  *at++ = 'T';
  at = put_digits(at, of_day / 3600, 2);
  *at++ = ':';
  at = put_digits(at, of_day / 60 % 60, 2);
  *at++ = ':';
  at = put_digits(at, of_day % 60, 2);
  *at++ = '.';
  at = put_digits(at, due_us % 1000000, 6);
  *at++ = 'Z';
  *at = '\0';
}

/* Copies; cannot fail: librdkafka ends the process when there is no memory. */
static void add(rd_kafka_headers_t *headers, const char *name, const char *value, size_t len) {
  rd_kafka_header_add(headers, name, (ssize_t)strlen(name), value, (ssize_t)len);
}

static void add_text(rd_kafka_headers_t *headers, const char *name, const char *value) {
  add(headers, name, value, strlen(value));
}

static void add_number(rd_kafka_headers_t *headers, const char *name, uint32_t number) {
  char text[10], *at = text + sizeof(text);
  do
    *--at = (char)('0' + number % 10);
  while (number /= 10);
  add(headers, name, at, (size_t)(text + sizeof(text) - at));
}

/* Whoever may insert a task would have its consumer answer for another one. */
static bool names_another(const struct duebox_header *header, const char *message_id) {
  size_t len = strlen(message_id);
  return kafka_correlates(header->name) &&
         (header->value.len != len || memcmp(header->value.data, message_id, len) != 0);
}

rd_kafka_headers_t *kafka_headers(const struct duebox_task *task) {
  char due[KAFKA_DUE_SIZE];
  rd_kafka_headers_t *headers = rd_kafka_headers_new(task->header_count + 7);
  for (size_t i = 0; i < task->header_count; i++)
    if (!names_another(&task->headers[i], task->message_id))
      add(headers, task->headers[i].name, task->headers[i].value.data, task->headers[i].value.len);
  add_text(headers, "duebox-id", task->message_id);
  add_number(headers, "duebox-attempt", task->attempt);
  if (duebox_task_revision(task) > 0)
    add_number(headers, "duebox-revision", task->revision);
  add_text(headers, "duebox-route", task->route);
  kafka_due_text(task->due_us, due);
  add(headers, "duebox-due", due, KAFKA_DUE_SIZE - 1);
  if (task->checkpoint.len)
    add(headers, "duebox-checkpoint", task->checkpoint.data, task->checkpoint.len);
  if (task->reply_to)
    add_text(headers, "duebox-reply-to", task->reply_to);
  return headers;
}
