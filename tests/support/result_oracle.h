/* SPDX-License-Identifier: MIT
 *
 * tests/support/result_oracle.h - what becomes of a result record, by the sentences of docs/CONSUMERS.md: written from
 * them, and not from the rules, which it judges.
 */
#ifndef TESTS_SUPPORT_RESULT_ORACLE_H
#define TESTS_SUPPORT_RESULT_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/config.h"
#include "core/store.h"

static const struct duebox_option source_options[] = {{.name = "queue", .type = DUEBOX_OPT_STRING}, {.name = NULL}};
static const struct duebox_plugin broker = {.name = "broker", .source_options = source_options};
static const struct duebox_plugin caller = {.name = "caller", .capabilities = DUEBOX_CAP_ANSWERS};
static struct plugin_config rabbit = {.name = "rabbit", .module = &broker};
static struct plugin_config hooks = {.name = "hooks", .module = &caller};
static const char *const ours = "ours", *const theirs = "theirs";
static const char *const listed[] = {"hook"};
static struct source_config sources[] = {
    {"rabbit#1", &rabbit, &ours, {0}}, {"rabbit#2", &rabbit, &theirs, {0}}, {"rabbit#3", &rabbit, &ours, {listed, 1}}};

enum road { OWN_QUEUE, OTHER_QUEUE, API, CALLBACK, CALLBACK_OF_VERSION, CALLBACK_OF_ANOTHER, ROADS };
enum word { DONE, RETRY, FAIL, PROGRESS, LONGER, WORDS };
enum destination { BROKER, HOOK, UNKNOWN_ROUTE, DESTINATIONS };

static const uint32_t attempts_of_rows[] = {0, 1, 2};
static const uint32_t attempts_of_records[] = {0, 1, 2, 3, UINT32_MAX};

/* One combination. */
struct meeting {
  unsigned state, row_attempt, change, bound, due, road, attempt, word, to, expects, recorded, crowded, early, awaited;
};
/* What is so of a meeting, in the words of the documents. */
struct facts {
  uint32_t counted, named; /* how many attempts the row counts, which one the record names */
  bool known, hook, expects, ended, waits, on_a_road, proves, to_come;
};

static inline struct facts facts_of(const struct meeting *m) {
  struct facts f = {.counted = attempts_of_rows[m->row_attempt],
                    .named = attempts_of_records[m->attempt],
                    .known = m->to != UNKNOWN_ROUTE,
                    .hook = m->to == HOOK,
                    .expects = m->to != UNKNOWN_ROUTE && m->expects,
                    .ended = m->state >= TASK_DONE,
                    .waits = m->state == TASK_SCHEDULED || m->state == TASK_HELD || m->state == TASK_BLOCKED,
                    .on_a_road = m->road == OWN_QUEUE || m->road == OTHER_QUEUE,
                    .proves = m->road >= CALLBACK};
  f.to_come = f.named == f.counted + 1 && m->state == TASK_SCHEDULED; /* it may be out, from a daemon's memory */
  return f;
}

/* "On another road than its route's a record changes nothing, and goes to the quarantine. Where the route expects no
 * result, a record on its road waits until the call or the sending is over: it counts if that said that the result
 * comes later, and ends no task before." "..: on the topic or queue that the message named": which is not known of one
 * that is on its way. RESULT_APPLIED: it may count as far as the road goes. */
static inline enum result_fate by_the_road(const struct meeting *m, const struct facts *f) {
  bool out = f->to_come || (m->state == TASK_CLAIMED && f->named == f->counted);
  if (!f->on_a_road)
    return RESULT_APPLIED;
  if (m->road == OTHER_QUEUE && f->known)
    return out && !f->hook && !m->crowded ? RESULT_BUSY : RESULT_MISROUTED;
  if (f->expects || f->ended || m->state == TASK_AWAITING || f->named > f->counted)
    return RESULT_APPLIED;
  if (m->state == TASK_CLAIMED)
    return RESULT_BUSY;
  return f->hook || !f->known ? RESULT_APPLIED : RESULT_MISROUTED;
}

/* "An attempt that was never handed out has no result: the task is not due yet, is held, or waits for its turn. Such a
 * record goes to the quarantine, of a task that is due, or that somebody changed and may have put off while it was out,
 * after two minutes .. at once where the attempt is not due" and somebody waits to hear it. A callback's URL proves
 * that its attempt left. */
static inline enum result_fate of_no_attempt_yet(const struct meeting *m, const struct facts *f) {
  if (!f->to_come)
    return RESULT_ORPHAN;
  if (f->proves)
    return RESULT_APPLIED;
  if (m->bound || (!m->due && (m->awaited || m->change != CHANGE_SINCE_SENT)))
    return RESULT_ORPHAN;
  if (!f->known)
    return RESULT_BUSY;
  return m->due && m->crowded && f->expects && !m->recorded ? RESULT_APPLIED : RESULT_BUSY;
}

/* "A late success counts .. Not where that attempt may have had another content", and what was changed while it was out
 * is known to who sent it. */
static inline enum result_fate by_the_content(const struct meeting *m, const struct facts *f) {
  bool out = f->named > f->counted || m->state == TASK_CLAIMED;
  if (m->word == PROGRESS || m->word == LONGER || m->road == CALLBACK_OF_VERSION)
    return RESULT_APPLIED;
  if (f->named < f->counted)
    return m->change == CHANGE_NONE ? RESULT_APPLIED : RESULT_STALE;
  if (m->change != CHANGE_SINCE_SENT || m->state == TASK_AWAITING)
    return RESULT_APPLIED;
  return out ? RESULT_BUSY : RESULT_STALE;
}

static inline enum result_fate says_the_document(const struct meeting *m) {
  const struct facts f = facts_of(m);
  enum result_fate road = by_the_road(m, &f), fate;
  bool failure = m->word != DONE;
  if (road == RESULT_MISROUTED)
    return road;
  if (f.ended || m->road == CALLBACK_OF_ANOTHER) /* "a later task that uses the message id again has other URLs" */
    return RESULT_LATE;
  if (f.named == 0)
    return RESULT_ORPHAN;
  if (f.named > f.counted && (fate = of_no_attempt_yet(m, &f)) != RESULT_APPLIED)
    return fate;
  if (road == RESULT_BUSY)
    return road;
  /* Publishing sets the deadline that is to be put off. */
  if (m->word == LONGER && m->state == TASK_CLAIMED && f.named == f.counted && f.on_a_road && !m->crowded)
    return RESULT_BUSY;
  /* "The URL is good .. while that attempt is the current one"; "Whatever else an earlier attempt says is stale" */
  if (f.named < f.counted && (f.proves || failure))
    return RESULT_STALE;
  /* "The first result of an attempt counts. A second one .. changes nothing", and a time-out was its end, too. */
  if (f.named == f.counted && f.waits && failure)
    return RESULT_DUPLICATE;
  return by_the_content(m, &f);
}

/* "One that came before its attempt was due does not end that attempt when it has left by then." */
static inline enum result_fate with_what_came_early(const struct meeting *m, enum result_fate fate) {
  return fate == RESULT_APPLIED && m->early ? RESULT_ORPHAN : fate;
}

static const enum result_status statuses[] = {[DONE] = RESULT_DONE,
                                              [RETRY] = RESULT_RETRY,
                                              [FAIL] = RESULT_FAIL,
                                              [PROGRESS] = RESULT_PROGRESS,
                                              [LONGER] = RESULT_PROGRESS};
static const char *const route_names[] = {[BROKER] = "mail", [HOOK] = "hook", [UNKNOWN_ROUTE] = "else"};

/* The entry of results that it came from; NULL = none. */
static inline const char *entry_of(const struct meeting *m) {
  return m->road == OTHER_QUEUE ? "rabbit#2" : m->road != OWN_QUEUE ? NULL : m->to == HOOK ? "rabbit#3" : "rabbit#1";
}

#endif
