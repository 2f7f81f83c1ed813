/* SPDX-License-Identifier: MIT */
#include "core/flight.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/leave.h"
#include "core/base/utf8.h"

enum { ERROR_CLASS_MAX = 63, MESSAGE_MAX = 4095 };

void flight_list_add(struct flight_list *list, struct flight *flight) {
  flight->next = NULL;
  if (list->tail)
    list->tail->next = flight;
  else
    list->head = flight;
  list->tail = flight;
  list->count++;
}

void flight_list_join(struct flight_list *list, struct flight_list *more) {
  if (!more->head)
    return;
  if (list->tail)
    list->tail->next = more->head;
  else
    list->head = more->head;
  list->tail = more->tail;
  list->count += more->count;
  *more = (struct flight_list){0};
}

struct flight *flight_list_pop(struct flight_list *list) {
  struct flight *flight = list->head;
  if (flight) {
    list->head = flight->next;
    if (!list->head)
      list->tail = NULL;
    list->count--;
    flight->next = NULL;
  }
  return flight;
}

static bool grow(struct flight_table *table) {
  uint32_t number = table->slots / FLIGHT_CHUNK;
  if (number == FLIGHT_CHUNKS)
    return false;
  struct flight *chunk = calloc(FLIGHT_CHUNK, sizeof *chunk);
  if (!chunk)
    return false;
  for (uint32_t i = FLIGHT_CHUNK; i-- > 0;) {
    chunk[i].index = table->slots + i;
    chunk[i].next = table->free_slots;
    table->free_slots = &chunk[i];
  }
  atomic_store_explicit(&table->chunk[number], chunk, memory_order_release);
  table->slots += FLIGHT_CHUNK;
  return true;
}

/* uthash takes the lower bits. */
static unsigned hash_of(uint64_t id) { return (unsigned)(hash_number(id) >> 32); }

static void enter_id(struct flight_table *table, struct flight *flight) {
  HASH_ADD_BYHASHVALUE(by_id, table->by_id, id, sizeof flight->id, hash_of(flight->id), flight);
}

/* The first one with that id, whose twins are behind it. */
static struct flight *find_id(const struct flight_table *table, uint64_t id) {
  struct flight *flight;
  HASH_FIND_BYHASHVALUE(by_id, table->by_id, &id, sizeof id, hash_of(id), flight);
  return flight;
}

struct flight *flight_take(struct flight_table *table, struct task *task) {
  if (!table->free_slots && !grow(table))
    return NULL;
  struct flight *flight = table->free_slots;
  flight->id = task->id;
  struct flight *first = find_id(table, task->id);
  if (first) {
    flight->twin = first->twin;
    first->twin = flight;
  } else {
    enter_id(table, flight);
    if (!flight->by_id.tbl)
      return NULL; /* uthash found no memory */
  }
  table->free_slots = flight->next;
  flight->next = NULL;
  flight->task = task;
  return flight;
}

/* A twin takes the place of the flight that was found by the id. */
static void forget_id(struct flight_table *table, struct flight *flight) {
  struct flight *first = find_id(table, flight->id), *twin = flight->twin;
  if (first == flight) {
    HASH_DELETE(by_id, table->by_id, flight);
    if (twin)
      enter_id(table, twin);
    return;
  }
  while (first && first->twin != flight)
    first = first->twin;
  if (first)
    first->twin = twin;
}

void flight_give_back(struct flight_table *table, struct flight *flight) {
  forget_id(table, flight);
  if (flight->leaked)
    leave_behind(flight->task->batch);
  else
    task_release(flight->task);
  free(flight->text);
  /* Not the generation: a hung plugin may come back late and ask for it. */
  memset((char *)flight + offsetof(struct flight, submitted), 0, sizeof *flight - offsetof(struct flight, submitted));
  flight->next = table->free_slots;
  table->free_slots = flight;
}

struct flight *flight_by_id(const struct flight_table *table, uint64_t id) {
  struct flight *flight = find_id(table, id);
  while (flight && flight->over)
    flight = flight->twin;
  return flight;
}

struct flight *flight_first(const struct flight_table *table) {
  return table->by_id;
}

struct flight *flight_after(const struct flight_table *table, const struct flight *flight) {
  return flight->twin ? flight->twin : find_id(table, flight->id)->by_id.next;
}

static bool is_of(const struct flight *flight, const struct task *task) {
  const struct duebox_bytes *a = &flight->task->message_id, *b = &task->message_id;
  return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

struct flight *flight_of(const struct flight_table *table, const struct task *task) {
  struct flight *flight = find_id(table, task->id);
  while (flight && (flight->over || !is_of(flight, task)))
    flight = flight->twin;
  return flight;
}

uint64_t flight_open(struct flight *flight) {
  unsigned generation = atomic_fetch_add_explicit(&flight->generation, 1, memory_order_release) + 1;
  return (uint64_t)generation << 32 | flight->index;
}

struct flight *flight_complete(struct flight_table *table, uint64_t token) {
  uint32_t index = (uint32_t)token;
  unsigned generation = (unsigned)(token >> 32);
  if (index / FLIGHT_CHUNK >= FLIGHT_CHUNKS || generation % 2 == 0)
    return NULL;
  struct flight *chunk = atomic_load_explicit(&table->chunk[index / FLIGHT_CHUNK], memory_order_acquire);
  if (!chunk)
    return NULL;
  struct flight *flight = &chunk[index % FLIGHT_CHUNK];
  bool won = atomic_compare_exchange_strong_explicit(&flight->generation, &generation, generation + 1,
                                                     memory_order_acq_rel, memory_order_relaxed);
  return won ? flight : NULL;
}

uint64_t flight_token(const struct flight *flight) {
  atomic_uint *generation = (atomic_uint *)(uintptr_t)&flight->generation;
  unsigned now = atomic_load_explicit(generation, memory_order_acquire);
  return now % 2 ? (uint64_t)now << 32 | flight->index : 0;
}

/* Copies text and a NUL to *end, moves *end behind it and returns where the copy stands. */
static char *copy_text(char **end, const char *text, size_t len) {
  char *copy = *end;
  memcpy(copy, text, len);
  copy[len] = '\0';
  *end += len + 1;
  return copy;
}

bool flight_own_time_is_up(const struct flight *flight, int64_t route_timeout_ms) {
  uint32_t own_ms = flight->task->timeout_ms;
  return own_ms && own_ms < route_timeout_ms && flight->completed_us - flight->handed_us >= (int64_t)own_ms * 1000;
}

/* How much of it counts: a plugin that is older than a field does not set it. */
static size_t size_known(const struct duebox_outcome *outcome) {
  if (outcome->struct_size >= sizeof *outcome)
    return sizeof *outcome;
  if (outcome->struct_size >= offsetof(struct duebox_outcome, recalled))
    return offsetof(struct duebox_outcome, unused);
  return offsetof(struct duebox_outcome, blameless);
}

void flight_set_outcome(struct flight *flight, const struct duebox_outcome *outcome) {
  memcpy(memset(&flight->outcome, 0, sizeof flight->outcome), outcome, size_known(outcome));
  flight->outcome.error_class = flight->outcome.message = flight->outcome.record = NULL;
  flight->outcome.record_len = 0;
  size_t class_len = outcome->error_class ? strnlen(outcome->error_class, ERROR_CLASS_MAX) : 0;
  size_t message_len = outcome->message ? strnlen(outcome->message, MESSAGE_MAX) : 0;
  size_t record_len = outcome->record ? outcome->record_len : 0;
  if (class_len + message_len + record_len == 0)
    return;
  char *end = flight->text = malloc(class_len + message_len + record_len + 3);
  if (!end && record_len && flight->outcome.answer == DUEBOX_ANSWER_DONE)
    flight->outcome.answer = DUEBOX_ANSWER_RECORD; /* which nobody can read: not done */
  if (!end)
    return;
  if (class_len)
    flight->outcome.error_class = copy_text(&end, outcome->error_class, class_len);
  if (message_len) {
    char *message = copy_text(&end, outcome->message, message_len);
    utf8_make_printable(message, "\n\t");
    flight->outcome.message = message;
  }
  if (record_len) {
    flight->outcome.record = copy_text(&end, outcome->record, record_len);
    flight->outcome.record_len = record_len;
  }
}

void flight_table_free(struct flight_table *table) {
  HASH_CLEAR(by_id, table->by_id);
  for (uint32_t i = 0; i * FLIGHT_CHUNK < table->slots; i++)
    free(atomic_load(&table->chunk[i]));
  table->slots = 0;
}

struct rules_task flight_facts(const struct flight *flight) {
  const struct task *task = flight->task;
  return (struct rules_task){
      .id = task->id,
      .message_id = task->message_id,
      .shard = task->shard,
      .state = task->state,
      .attempt_row = task->attempt,
      .attempt_now = task->attempt_now,
      .failures = task->failures,
      .recoveries = task->recoveries,
      .max_attempts = task->max_attempts,
      .timeout_ms = task->timeout_ms,
      .due_us = task->due_us,
      .asked_due_us = task->asked_due_us,
      .expires_us = task->expires_us,
      .probe = flight->probe && !flight->in_order, /* which nobody may overtake */
      .answer_comes = task->view.reply_to || task->view.result_awaited,
  };
}
