/* SPDX-License-Identifier: MIT */
#include "core/aside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Entries to be tried, in turn. */
struct aside_list {
  struct aside_entry *first, *last;
  size_t count;
};

struct aside_route {
  char name[STORE_ROUTE_MAX + 1];
  struct aside_list tried[ASIDE_KINDS];
  size_t count, bytes; /* with those behind */
  int64_t full_us;     /* monotonic: since when it has no room; 0 = it has */
  struct aside_route *next;
};

/* The route, made at the end of the turn when it has none aside yet. */
static struct aside_route *route_of(struct aside *aside, const char *name) {
  struct aside_route **at = &aside->routes;
  for (; *at; at = &(*at)->next)
    if (strcmp((*at)->name, name) == 0)
      return *at;
  struct aside_route *route = calloc(1, sizeof *route);
  if (route)
    snprintf(route->name, sizeof route->name, "%s", name);
  *at = route;
  return route;
}

static void drop_if_empty(struct aside *aside, struct aside_route *route) {
  struct aside_route **at = &aside->routes;
  if (route->count > 0)
    return;
  while (*at != route)
    at = &(*at)->next;
  *at = route->next;
  free(route);
}

static bool route_has_room(const struct aside_route *route, size_t bytes) {
  return route->count < ASIDE_PER_ROUTE && route->bytes + bytes <= ASIDE_BYTES_PER_ROUTE;
}

static bool all_have_room(const struct aside *aside, size_t bytes) {
  return aside->count < ASIDE_MAX && aside->bytes + bytes <= ASIDE_BYTES_MAX;
}

static bool has_room(const struct aside *aside, const struct aside_route *route, size_t bytes) {
  return route_has_room(route, bytes) && all_have_room(aside, bytes);
}

static void account(struct aside *aside, struct aside_route *route, struct aside_entry *entry, size_t bytes) {
  entry->route = route;
  entry->bytes = bytes;
  route->count++;
  aside->count++;
  route->bytes += bytes;
  aside->bytes += bytes;
}

static void note_room(struct aside *aside, struct aside_route *route) {
  if (route->count <= ASIDE_PER_ROUTE / 2 && route->bytes <= ASIDE_BYTES_PER_ROUTE / 2)
    route->full_us = 0;
  if (aside->count <= ASIDE_MAX / 2 && aside->bytes <= ASIDE_BYTES_MAX / 2)
    aside->full_us = 0;
}

bool aside_is_to_wait(struct aside *aside, const char *name, size_t bytes, int64_t now_us, int64_t patience_us) {
  struct aside_route *route = aside->routes;
  while (route && strcmp(route->name, name) != 0)
    route = route->next;
  bool full = route && !route_has_room(route, bytes);
  if ((!full && all_have_room(aside, bytes)) || bytes > ASIDE_BYTES_PER_ROUTE)
    return false;
  int64_t *full_us = full ? &route->full_us : &aside->full_us;
  if (*full_us == 0)
    *full_us = now_us;
  return now_us - *full_us < patience_us;
}

static void append(struct aside_list *list, struct aside_entry *entry) {
  entry->next = NULL;
  *(list->last ? &list->last->next : &list->first) = entry;
  list->last = entry;
  list->count++;
}

static struct aside_entry *take_first(struct aside_list *list) {
  struct aside_entry *entry = list->first;
  list->first = entry->next;
  if (!list->first)
    list->last = NULL;
  list->count--;
  return entry;
}

static void take_out(struct aside_list *list, const struct aside_entry *entry) {
  struct aside_entry **at = &list->first, *before = NULL;
  for (; *at != entry; at = &before->next)
    before = *at;
  *at = entry->next;
  if (list->last == entry)
    list->last = before;
  list->count--;
}

bool aside_put(struct aside *aside, struct aside_entry *entry, enum aside_kind kind, const char *name, const char *task,
               size_t bytes) {
  struct aside_route *route = route_of(aside, name);
  if (!route)
    return false;
  *entry = (struct aside_entry){.task = task, .kind = kind};
  bool room = has_room(aside, route, bytes);
  if (room)
    HASH_ADD_KEYPTR(hh, aside->by_task, task, strlen(task), entry);
  if (!room || !entry->hh.tbl) {
    drop_if_empty(aside, route);
    return false;
  }
  append(&route->tried[kind], entry);
  aside->tried[kind]++;
  account(aside, route, entry, bytes);
  return true;
}

void aside_turn_to(struct aside *aside, struct aside_entry *entry, enum aside_kind kind) {
  if (entry->kind == kind)
    return;
  take_out(&entry->route->tried[entry->kind], entry);
  aside->tried[entry->kind]--;
  entry->kind = kind;
  append(&entry->route->tried[kind], entry);
  aside->tried[kind]++;
}

struct aside_entry *aside_find(const struct aside *aside, const char *task) {
  struct aside_entry *entry;
  HASH_FIND(hh, aside->by_task, task, strlen(task), entry);
  return entry;
}

bool aside_follow(struct aside *aside, struct aside_entry *first, struct aside_entry *entry, const char *task,
                  size_t bytes) {
  if (!has_room(aside, first->route, bytes))
    return false;
  *entry = (struct aside_entry){.task = task};
  struct aside_entry *last = first;
  while (last->behind)
    last = last->behind;
  last->behind = entry;
  account(aside, first->route, entry, bytes);
  return true;
}

/* Another one is first the next time. */
static void go_last(struct aside *aside, struct aside_route *route) {
  struct aside_route **at = &aside->routes;
  while (*at != route)
    at = &(*at)->next;
  *at = route->next;
  while (*at)
    at = &(*at)->next;
  route->next = NULL;
  *at = route;
}

size_t aside_next_apart(struct aside *aside, struct aside_entry **out, size_t most) {
  struct aside_route *route = aside->routes;
  while (route && route->tried[ASIDE_APART].count == 0)
    route = route->next;
  if (!route)
    return 0;
  struct aside_list *list = &route->tried[ASIDE_APART];
  most = list->count < most ? list->count : most;
  for (size_t n = 0; n < most; n++)
    append(list, out[n] = take_first(list));
  go_last(aside, route);
  return most;
}

size_t aside_next(struct aside *aside, struct aside_entry **out, size_t most) {
  size_t n = 0;
  most = aside->tried[ASIDE_BUSY] < most ? aside->tried[ASIDE_BUSY] : most;
  /* Of each route as many as the next one, from the first that has its turn. */
  for (size_t round = 0; n < most; round++)
    for (struct aside_route *route = aside->routes; route && n < most; route = route->next) {
      struct aside_list *list = &route->tried[ASIDE_BUSY];
      if (round < list->count)
        append(list, out[n++] = take_first(list));
    }
  if (aside->routes)
    go_last(aside, aside->routes);
  return n;
}

void aside_remove(struct aside *aside, struct aside_entry *entry) {
  struct aside_route *route = entry->route;
  struct aside_list *list = &route->tried[entry->kind];
  struct aside_entry *next = entry->behind;
  if (entry->hh.tbl) /* else there was no memory for it */
    HASH_DELETE(hh, aside->by_task, entry);
  take_out(list, entry);
  aside->tried[entry->kind]--;
  route->count--;
  aside->count--;
  route->bytes -= entry->bytes;
  aside->bytes -= entry->bytes;
  note_room(aside, route);
  if (next) { /* it comes first: it has waited as long */
    next->kind = entry->kind;
    next->next = list->first;
    list->first = next;
    if (!list->last)
      list->last = next;
    list->count++;
    aside->tried[next->kind]++;
    HASH_ADD_KEYPTR(hh, aside->by_task, next->task, strlen(next->task), next);
  }
  drop_if_empty(aside, route);
}

struct aside_entry *aside_pop(struct aside *aside) {
  struct aside_route *route = aside->routes;
  if (!route)
    return NULL;
  struct aside_entry *entry = route->tried[route->tried[ASIDE_BUSY].count == 0].first;
  aside_remove(aside, entry);
  return entry;
}
