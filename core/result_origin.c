/* SPDX-License-Identifier: MIT */
#include "core/result_origin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOR " for "
#define CALLBACK "/callback/"

const char result_origin_settled[] =
    "it was the answer to a call, and was dealt with when the call ended: its status "
    "counted, or it was a failure if it had none; there is nothing to replay, purge it";

/* The id behind a place, or NULL. No id has a space in it. */
static const char *id_behind(const char *origin) {
  enum { LEN = sizeof FOR - 1 };
  const char *space = strrchr(origin, ' ');
  if (!space || space + 1 - origin < LEN || memcmp(space + 1 - LEN, FOR, LEN) != 0)
    return NULL;
  return record_is_id(space + 1, strlen(space + 1)) ? space + 1 : NULL;
}

static void write_place(char out[RESULT_ORIGIN_SIZE], const char *place, const char *between, const char *id) {
  size_t room = RESULT_ORIGIN_SIZE - 1 - strlen(between) - strlen(id), len = strlen(place);
  snprintf(out, RESULT_ORIGIN_SIZE, "%s%s%s", place + (len > room ? len - room : 0), between, id);
}

/* A queue may be called "orders for shop": without an id behind it, it must not be read as if there were one. */
void result_origin_write(char out[RESULT_ORIGIN_SIZE], const char *place, const char *id) {
  write_place(out, place, id ? FOR : "", id ? id : "");
  if (!id && id_behind(out))
    write_place(out, place, FOR, "no id");
}

void result_origin_callback(char out[RESULT_ORIGIN_SIZE], const char *id, uint32_t attempt) {
  snprintf(out, RESULT_ORIGIN_SIZE, CALLBACK "%s/%" PRIu32, id, attempt);
}

/* An id may hold slashes; the attempt is behind the last one. */
static bool read_callback(const char *origin, struct record_road *road, char id[RECORD_ID_MAX + 1]) {
  const char *start = origin + sizeof CALLBACK - 1, *slash = strrchr(origin, '/');
  if (strncmp(origin, CALLBACK, sizeof CALLBACK - 1) != 0 || slash <= start ||
      !record_is_id(start, (size_t)(slash - start)))
    return false;
  char *end;
  unsigned long long attempt = strtoull(slash + 1, &end, 10);
  if (slash[1] < '1' || slash[1] > '9' || *end || attempt > UINT32_MAX)
    return false;
  snprintf(id, RECORD_ID_MAX + 1, "%.*s", (int)(slash - start), start);
  *road = (struct record_road){.message_id = id, .attempt = (uint32_t)attempt, .binding = true, .current_only = true};
  return true;
}

bool result_origin_road(const char *source, const char *origin, struct record_road *road, char id[RECORD_ID_MAX + 1]) {
  *road = (struct record_road){0};
  if (strcmp(source, SOURCE_ANSWER) == 0)
    return false;
  if (strcmp(source, SOURCE_CALLBACK) == 0)
    return read_callback(origin, road, id);
  const char *known = id_behind(origin);
  if (known) {
    snprintf(id, RECORD_ID_MAX + 1, "%s", known);
    road->message_id = id;
  }
  return true;
}
