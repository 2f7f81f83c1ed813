/* SPDX-License-Identifier: MIT */
#include "http_turns.h"

#include <stdlib.h>

#include "http_transfer.h"

static void append(struct http_queue *queue, struct http_transfer *transfer) {
  transfer->next = NULL;
  *(queue->first ? &queue->last->next : &queue->first) = transfer;
  queue->last = transfer;
}

static struct http_transfer *pop(struct http_queue *queue) {
  struct http_transfer *transfer = queue->first;
  queue->first = transfer->next;
  return transfer;
}

bool http_turns_init(struct http_turns *turns, size_t transfers) {
  *turns = (struct http_turns){.all = calloc(transfers, sizeof(*turns->all))};
  for (size_t i = 0; turns->all && i < transfers; i++) {
    turns->all[i].next = turns->free;
    turns->free = &turns->all[i];
  }
  return turns->all != NULL;
}

void http_turns_free(struct http_turns *turns) {
  free(turns->all);
  *turns = (struct http_turns){0};
}

static void append_line(struct http_turns *turns, struct http_line *line) {
  line->next = NULL;
  *(turns->last ? &turns->last->next : &turns->first) = line;
  turns->last = line;
}

/* before: the line in front of it, NULL = it is the first. */
static void unlink_line(struct http_turns *turns, struct http_line *line, struct http_line *before) {
  *(before ? &before->next : &turns->first) = line->next;
  if (turns->last == line)
    turns->last = before;
}

static struct http_line *find(const struct http_turns *turns, const void *route) {
  struct http_line *line = turns->first;
  while (line && line->route != route)
    line = line->next;
  return line;
}

/* There is always a free one: each line has a transfer at least. */
static struct http_line *line_of(struct http_turns *turns, const void *route) {
  struct http_line *line = find(turns, route);
  if (line)
    return line;
  line = turns->free;
  turns->free = line->next;
  *line = (struct http_line){.route = route};
  append_line(turns, line);
  return line;
}

void http_turns_put(struct http_turns *turns, struct http_transfer *transfer) {
  enum http_place place = transfer->opens ? HTTP_OPENS : transfer->beginnings > 0 ? HTTP_AGAIN : HTTP_FIRST;
  append(&line_of(turns, transfer->task->route_data)->queues[place], transfer);
}

void http_turns_kept(struct http_turns *turns, const void *route) {
  struct http_line *line = find(turns, route);
  if (line)
    line->kept++;
}

bool http_turns_empty(const struct http_turns *turns) { return !turns->first; }

void http_turns_next(struct http_turns *turns) {
  turns->begins_left = HTTP_TURN_BEGINS;
  turns->opens_left = HTTP_TURN_OPENS;
}

/* The queue that has the line's first one, NULL: nobody waits in it. */
static struct http_queue *next_of(struct http_line *line) {
  for (size_t place = 0; place < HTTP_PLACES; place++) {
    if (line->queues[place].first)
      return &line->queues[place];
  }
  return NULL;
}

/* The first one of a line; the line is the last one then, if anybody waits in it. */
static struct http_transfer *take_from(struct http_turns *turns, struct http_line *line, struct http_line *before) {
  struct http_transfer *transfer = pop(next_of(line));
  unlink_line(turns, line, before);
  if (next_of(line)) {
    append_line(turns, line);
  } else {
    line->next = turns->free;
    turns->free = line;
  }
  return transfer;
}

/* A line that needs a connection when none is left keeps its place. */
struct http_transfer *http_turns_take(struct http_turns *turns) {
  struct http_line *before = NULL, *line = turns->begins_left ? turns->first : NULL;
  for (; line && line->queues[HTTP_OPENS].first && !line->kept && turns->opens_left == 0; line = line->next)
    before = line;
  if (!line)
    return NULL;
  bool kept = line->kept > 0;
  line->kept -= kept;
  struct http_transfer *transfer = take_from(turns, line, before);
  turns->begins_left--;
  transfer->may_open = transfer->opens && !kept;
  turns->opens_left -= transfer->may_open;
  transfer->opens = false;
  return transfer;
}

struct http_transfer *http_turns_drop(struct http_turns *turns) {
  return turns->first ? take_from(turns, turns->first, NULL) : NULL;
}

bool http_turns_open(struct http_turns *turns, struct http_transfer *transfer) {
  if (transfer->may_open)
    return true;
  transfer->may_open = turns->opens_left > 0;
  transfer->opens = !transfer->may_open;
  turns->opens_left -= transfer->may_open;
  return transfer->may_open;
}
