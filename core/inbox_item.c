/* SPDX-License-Identifier: MIT
 *
 * core/inbox_item.c - a record in the inbox: its making and its end.
 *
 * @thread any
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/inbox_internal.h"

struct item *inbox_new_item(const char *source, const char *origin, const char *body, size_t len) {
  struct item *item = calloc(1, sizeof *item);
  if (!item || !(item->body = malloc(len + 1))) {
    free(item);
    return NULL;
  }
  memcpy(item->body, body, len);
  item->body[len] = '\0';
  item->full_len = len;
  snprintf(item->source, sizeof item->source, "%s", source);
  result_origin_write(item->origin, origin ? origin : "", NULL);
  item->result.body = (struct duebox_bytes){item->body, len};
  item->result.source = item->source;
  item->result.origin = item->origin;
  return item;
}

/* What cannot be a message id names no task: Spring writes bytes of a UUID, which the database would refuse to look
 * for. */
void inbox_set_road(struct item *item, const struct record_road *road) {
  if (!road->message_id || !record_is_id(road->message_id, strlen(road->message_id)))
    return;
  item->road = *road;
  snprintf(item->road_id, sizeof item->road_id, "%s", road->message_id);
  item->road.message_id = item->road_id;
}

void inbox_free_item(struct item *item) {
  result_record_free(&item->result.record);
  free(item->body);
  free(item);
}
