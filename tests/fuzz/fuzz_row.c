/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/fuzz_row.c - a row as a server might send it, and texts on their way into statements. Fields are separated
 * by line feeds; one that is a single dash is NULL. What is decoded keeps the limits of the schema and points into the
 * row; a literal, read back, is the text it was made of.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/store.h"
#include "outbox/row.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool right) {
  if (!right)
    abort();
}

static void check_bytes(struct duebox_bytes bytes, const char *row, size_t size, size_t max) {
  check(bytes.len <= max && (bytes.len == 0 || (bytes.data >= row && bytes.data + bytes.len <= row + size)));
}

static void decode(char *row, size_t size) {
  char *fields[ROW_FIELD_COUNT] = {0};
  unsigned long lengths[ROW_FIELD_COUNT] = {0};
  char *at = row, *end = row + size;
  for (int i = 0; i < ROW_FIELD_COUNT && at < end; i++) {
    char *stop = memchr(at, '\n', (size_t)(end - at));
    stop = stop ? stop : end;
    bool null = stop - at == 1 && *at == '-';
    fields[i] = null ? NULL : at;
    lengths[i] = null ? 0 : (unsigned long)(stop - at);
    *stop = '\0'; /* as the client library does; the buffer has room for the last */
    at = stop + 1;
  }
  struct task task;
  struct err err = {0};
  if (!row_decode(&(struct db_row){.fields = fields, .lengths = lengths}, &task, &err)) {
    check(err.code != 0 && err.text[0]);
    return;
  }
  check(task.shard < STORE_SHARDS_MAX && task.state < TASK_STATES);
  check(task.unreadable || (task.priority >= 1 && task.priority <= 9)); /* else it ends, whatever else is wrong */
  check_bytes(task.route, row, size, task.unreadable ? size : STORE_ROUTE_MAX);
  check_bytes(task.message_id, row, size, STORE_ID_MAX + (task.unreadable ? STORE_WIDER : 0));
  check_bytes(task.headers, row, size, size);
  check_bytes(task.payload, row, size, size);
}

/* Reads a literal of text_sql back as MySQL does. */
static void check_literal(const char *data, size_t size) {
  static const char escapes[] = "0nrZ", meant[] = "\0\n\r\x1a";
  struct text text = {0};
  text_sql(&text, data, size);
  const char *at = text.data + 1;
  for (size_t i = 0; i < size; i++) {
    char c = *at++;
    check(c != '\'');
    if (c == '\\') {
      c = *at++;
      const char *escape = memchr(escapes, c, sizeof escapes - 1);
      c = escape ? meant[escape - escapes] : c;
    }
    check(c == data[i]);
  }
  check(strcmp(at, "'") == 0 && at + 1 == text.data + text.len);
  text_free(&text);
}

static void check_time(const char *data, size_t size) {
  int64_t us, back;
  struct text text = {0};
  if (!time_parse(data, size, &us))
    return;
  text_time(&text, us);
  bool in_range = us >= INT64_C(-30610224000000000); /* year 1000: the first that is written */
  check(!in_range || (time_parse(text.data, text.len, &back) && back == us && memcmp(text.data, data, 19) == 0));
  text_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *row = malloc(size + 1);
  if (!row)
    return 0;
  if (size)
    memcpy(row, data, size);
  check_literal(row, size);
  check_time(row, size);
  decode(row, size);
  free(row);
  return 0;
}
