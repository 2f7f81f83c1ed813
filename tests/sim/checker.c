/* SPDX-License-Identifier: MIT */
#include "checker.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"

static char verdict[512];

static const char *broken(const char *promise, const char *fmt, ...) PRINTF(2, 3);
static const char *broken(const char *promise, const char *fmt, ...) {
  va_list args;
  int used = snprintf(verdict, sizeof verdict, "%s: ", promise);
  va_start(args, fmt);
  (void)vsnprintf(verdict + used, sizeof verdict - (size_t)used, fmt, args);
  va_end(args);
  return verdict;
}

/* What the journal says of one task. */
struct history {
  const struct journal_entry *inserted, *last;
  const struct journal_entry *ended; /* by duebox, and not taken back since */
  bool gone;                         /* deleted by somebody, or lost by the database itself */
};

static struct history history_of(const struct table *db, const char *message_id) {
  struct history history = {0};
  for (size_t i = 0; i < db->journal_count; i++) {
    const struct journal_entry *entry = &db->journal[i];
    if (entry->kind == JOURNAL_SERVER || strcmp(entry->message_id, message_id) != 0)
      continue;
    history.last = entry;
    switch (entry->kind) {
    case JOURNAL_INSERTED:
      history.inserted = entry;
      break;
    case JOURNAL_ENDED:
      history.ended = entry;
      break;
    case JOURNAL_DELETED:
    case JOURNAL_LOST:
      history.gone = true;
      break;
    case JOURNAL_BACK:
      history.ended = NULL;
      history.gone = false;
      break;
    case JOURNAL_CHANGED:
    case JOURNAL_SERVER:
      break;
    }
  }
  return history;
}

/* The earliest that any version of the row that was committed by then was due; INT64_MAX = there was none. */
static int64_t earliest_due(const struct table *db, const struct message *message) {
  int64_t due = INT64_MAX;
  for (size_t i = 0; i < db->journal_count; i++) {
    const struct journal_entry *entry = &db->journal[i];
    if (entry->kind != JOURNAL_SERVER && strcmp(entry->message_id, message->message_id) == 0 &&
        entry->at_us <= message->submitted_us && entry->due_us < due)
      due = entry->due_us;
  }
  return due;
}

/* --- each message --- */

/* Whether some version of the row was for the host that sent it, or for any. */
static bool fits_host(const struct table *db, const struct message *message) {
  for (size_t i = 0; i < db->journal_count; i++) {
    const struct journal_entry *entry = &db->journal[i];
    if (entry->kind != JOURNAL_SERVER && strcmp(entry->message_id, message->message_id) == 0 &&
        entry->at_us <= message->submitted_us && (!entry->host[0] || strcmp(entry->host, message->host) == 0))
      return true;
  }
  return false;
}

/* From the last look at a task to when it leaves, in an unlucky order of threads. */
enum { EXPIRED_US = 3 * 1000 * 1000 };

/* When all versions of the row had expired that were committed by then; INT64_MAX = one does not. */
static int64_t latest_expiry(const struct table *db, const struct message *message) {
  int64_t expires = INT64_MIN;
  for (size_t i = 0; i < db->journal_count; i++) {
    const struct journal_entry *entry = &db->journal[i];
    if (entry->kind != JOURNAL_SERVER && strcmp(entry->message_id, message->message_id) == 0 &&
        entry->at_us <= message->submitted_us)
      expires = later(expires, entry->expires_us == TIME_NULL ? INT64_MAX - EXPIRED_US : entry->expires_us);
  }
  return expires;
}

static const char *judge_message(const struct table *db, const struct run_facts *facts, const struct message *message) {
  int64_t due = earliest_due(db, message);
  if (due == INT64_MAX)
    return broken("P2", "%s was handed over at %.6f and was never committed before", message->message_id,
                  (double)message->submitted_us / 1e6);
  if (message->clock_us < due)
    return broken("P3", "%s attempt %u was handed over %" PRId64 " us before it was due", message->message_id,
                  message->attempt, due - message->clock_us);
  if (!facts->stood_still && message->clock_us > latest_expiry(db, message) + EXPIRED_US)
    return broken("expiry", "%s was handed over at %.6f, long after it had expired", message->message_id,
                  (double)message->submitted_us / 1e6);
  if (!fits_host(db, message))
    return broken("bound", "%s was handed over by %s at %.6f and was never bound to it", message->message_id,
                  message->host, (double)message->submitted_us / 1e6);
  return NULL;
}

/* --- each task --- */

static unsigned copies_of(const struct broker *broker, const char *message_id, unsigned *excuses) {
  unsigned copies = 0;
  *excuses = 0;
  for (size_t i = 0; i < broker->message_count; i++) {
    const struct message *message = &broker->messages[i];
    if (strcmp(message->message_id, message_id) != 0)
      continue;
    copies += message->arrived;
    *excuses += message->outcome == DUEBOX_UNKNOWN || message->slow;
  }
  return copies;
}

/* Whether a record says that of the task. */
static bool says(const char *text, const char *message_id, const char *status) {
  char id[80], said[32];
  (void)snprintf(id, sizeof id, "\"%s\"", message_id);
  (void)snprintf(said, sizeof said, "\"status\": \"%s\"", status);
  return strstr(text, id) && strstr(text, said);
}

/* Those that were offered over HTTP or by hand. */
static unsigned offers_of(const struct broker *broker, const char *message_id, const char *status, int64_t until_us) {
  unsigned offers = 0;
  for (size_t i = 0; i < broker->said_count; i++)
    offers += broker->said[i].at_us <= until_us && says(broker->said[i].text, message_id, status);
  return offers;
}

static unsigned answers_of(const struct broker *broker, const char *message_id, const char *status, int64_t until_us) {
  unsigned answers = offers_of(broker, message_id, status, until_us);
  for (size_t i = 0; i < broker->record_count; i++)
    answers += broker->records[i].at_us <= until_us && says(broker->records[i].text, message_id, status);
  return answers;
}

/* Whether it was handed over, whatever became of that. */
static bool was_sent(const struct broker *broker, const char *message_id) {
  for (size_t i = 0; i < broker->message_count; i++)
    if (strcmp(broker->messages[i].message_id, message_id) == 0)
      return true;
  return false;
}

/* A change by UPDATE while a copy is out has it sent once more, as it is now. */
static unsigned changes_of(const struct table *db, const char *message_id) {
  unsigned changes = 0;
  for (size_t i = 0; i < db->journal_count; i++)
    changes += db->journal[i].kind == JOURNAL_CHANGED && db->journal[i].machine == 0 &&
               strcmp(db->journal[i].message_id, message_id) == 0;
  return changes;
}

static bool was_rejected(const struct broker *broker, const char *message_id) {
  for (size_t i = 0; i < broker->message_count; i++)
    if (broker->messages[i].outcome == DUEBOX_REJECTED && strcmp(broker->messages[i].message_id, message_id) == 0)
      return true;
  return false;
}

/* What can never be sent: see story_users.c. */
static bool is_poison(const struct journal_entry *inserted) { return inserted->message_id[0] == 'p'; }

/* Whether it ended as it may. */
static const char *judge_end(const struct table *db, const struct broker *broker, const struct run_facts *facts,
                             const struct journal_entry *inserted, const struct journal_entry *ended) {
  const char *id = inserted->message_id;
  uint32_t most = ended->max_attempts;
  int64_t early_us = facts->round_trip_us / 2 + (was_sent(broker, id) ? facts->longest_wait_us : 0);
  if (ended->to == TASK_EXPIRED && (ended->expires_us == TIME_NULL || ended->clock_us < ended->expires_us - early_us))
    return broken("P1", "%s had expired at %.6f, %" PRId64 " us before its time", id, (double)ended->at_us / 1e6,
                  ended->expires_us - ended->clock_us);
  if (most > 0 && ended->failures > most)
    return broken("P6", "%s has failed %u times and may %u times", id, ended->failures, most);
  if (ended->to != TASK_DEAD || facts->few_attempts || is_poison(inserted) || was_rejected(broker, id) ||
      answers_of(broker, id, "fail", ended->at_us) > 0 || (most > 0 && ended->failures >= most))
    return NULL;
  return broken("P1", "%s is dead after %u attempts and %u failures, for no reason", id, ended->attempt,
                ended->failures);
}

static const char *judge_task(const struct table *db, const struct broker *broker, const struct run_facts *facts,
                              const struct journal_entry *inserted) {
  struct history history = history_of(db, inserted->message_id);
  unsigned excuses, copies = copies_of(broker, inserted->message_id, &excuses);
  bool stays = facts->away && !facts->ordered; /* for ever, where others do not wait for it */
  if (!history.ended && !history.gone && !(stays && strcmp(history.last->host, facts->away) == 0))
    return broken("P1", "%s is still %s at the end of the run, attempt %u", inserted->message_id,
                  task_state_text(history.last->to), history.last->attempt);
  bool answers = broker->answers_for && strncmp(inserted->route, broker->answers_for, strlen(broker->answers_for)) == 0;
  if (history.ended && history.ended->to == TASK_DONE) {
    bool told = offers_of(broker, inserted->message_id, "done", history.ended->at_us) > 0;
    if (copies == 0 && !(told && was_sent(broker, inserted->message_id)))
      return broken("P1", "%s is done and never arrived", inserted->message_id);
    if (answers && answers_of(broker, inserted->message_id, "done", history.ended->at_us) == 0)
      return broken("P1", "%s is done and its consumer has not said so", inserted->message_id);
  }
  const char *wrong = history.ended ? judge_end(db, broker, facts, inserted, history.ended) : NULL;
  if (wrong)
    return wrong;
  unsigned changes = changes_of(db, inserted->message_id);
  if (is_poison(inserted) && copies > 0 && changes == 0)
    return broken("P1", "%s arrived, and can never be sent", inserted->message_id);
  if (history.ended && history.ended->to == TASK_DEAD && facts->clean)
    return broken("P1", "%s is dead in a run without a fault", inserted->message_id);
  if (facts->clean && copies != 1)
    return broken("P4", "%s arrived %u times in a run without a fault", inserted->message_id, copies);
  /* A task that is to be tried again by its consumer's or destination's own word is not in flight twice. */
  unsigned again = answers_of(broker, inserted->message_id, "retry", INT64_MAX) + history.last->failures;
  if (copies > 1 + facts->faults + excuses + again + changes)
    return broken("P4", "%s arrived %u times with %u faults, %u unknown outcomes, %u retries and %u changes",
                  inserted->message_id, copies, facts->faults, excuses, again, changes);
  return NULL;
}

/* Whether what tells of a daemon that died was lost with a server, or somebody has put the task off since. */
static bool is_forgotten(const struct table *db, const char *message_id) {
  int64_t due_us = INT64_MIN;
  for (size_t i = 0; i < db->journal_count; i++) {
    const struct journal_entry *entry = &db->journal[i];
    if (entry->kind == JOURNAL_SERVER)
      return true;
    if (strcmp(entry->message_id, message_id) != 0)
      continue;
    if (entry->kind == JOURNAL_CHANGED && entry->event == TASK_EVENTS && entry->due_us > due_us)
      return true;
    due_us = entry->due_us;
  }
  return false;
}

/* A task that was cancelled, and of which nobody said that it may have been sent, has never been. */
static const char *judge_cancelled(const struct table *db, const struct broker *broker,
                                   const struct journal_entry *ended) {
  if (ended->to != TASK_CANCELLED || ended->attempt > 0 || ended->recoveries > 0 || ended->from == TASK_AWAITING ||
      ended->from == TASK_CLAIMED || is_forgotten(db, ended->message_id))
    return NULL;
  for (size_t i = 0; i < broker->message_count; i++)
    if (broker->messages[i].arrived && strcmp(broker->messages[i].message_id, ended->message_id) == 0)
      return broken("cancel", "%s was cancelled at %.6f, not sent as it was said, and was handed over at %.6f",
                    ended->message_id, (double)ended->at_us / 1e6, (double)broker->messages[i].submitted_us / 1e6);
  return NULL;
}

/* It ends once, unless a server or somebody brings it back. */
static const char *judge_ends(const struct table *db) {
  for (size_t i = 0; i < db->journal_count; i++) {
    const struct journal_entry *one = &db->journal[i];
    if (one->kind != JOURNAL_ENDED)
      continue;
    for (size_t j = i + 1; j < db->journal_count; j++) {
      const struct journal_entry *other = &db->journal[j];
      if (other->kind == JOURNAL_SERVER || (other->kind != JOURNAL_ENDED && other->kind != JOURNAL_DELETED &&
                                            strcmp(one->message_id, other->message_id) == 0))
        break;
      if (other->kind == JOURNAL_ENDED && strcmp(one->message_id, other->message_id) == 0)
        return broken("P1", "%s has ended twice", one->message_id);
    }
  }
  return NULL;
}

/* --- progress --- */

/* The last time in (since, since + still] at which a message of the route left or was confirmed; INT64_MIN = there is
 * none. */
static int64_t last_sign(const struct broker *broker, const char *route, int64_t since_us, int64_t still_us) {
  int64_t last = INT64_MIN;
  for (size_t i = 0; i < broker->message_count; i++) {
    const struct message *message = &broker->messages[i];
    const int64_t signs[] = {message->submitted_us, message->confirms_us};
    for (int k = 0; k < 2; k++)
      if (strcmp(message->route, route) == 0 && signs[k] > since_us && signs[k] <= since_us + still_us)
        last = later(last, signs[k]);
  }
  return last;
}

static const char *judge_progress(const struct broker *broker, const struct run_facts *facts,
                                  const struct journal_entry *inserted) {
  int64_t sent_us = INT64_MAX, since_us = inserted->at_us + later(0, inserted->due_us - inserted->clock_us);
  for (size_t i = broker->message_count; i-- > 0;)
    if (strcmp(broker->messages[i].message_id, inserted->message_id) == 0)
      sent_us = broker->messages[i].submitted_us;
  since_us = later(since_us, facts->quiet_us);
  while (sent_us > since_us + facts->still_us) {
    int64_t sign_us = last_sign(broker, inserted->route, since_us, facts->still_us);
    if (sign_us == INT64_MIN)
      return broken("P8", "%s could have left at %.6f, and nothing of %s did for %" PRId64 " ms", inserted->message_id,
                    (double)since_us / 1e6, inserted->route, facts->still_us / 1000);
    since_us = sign_us;
  }
  return NULL;
}

/* --- order keys --- */

/* When the task was over first: a failover may have brought it back since, as it was before. One that has expired is
 * over when its time is: it leaves no more, and nobody waits for that to be written. */
static int64_t first_over_us(const struct table *db, const char *message_id) {
  const unsigned over = 1u << JOURNAL_ENDED | 1u << JOURNAL_DELETED | 1u << JOURNAL_LOST;
  for (size_t i = 0; i < db->journal_count; i++) {
    const struct journal_entry *entry = &db->journal[i];
    if (over >> entry->kind & 1u && strcmp(entry->message_id, message_id) == 0)
      return entry->to == TASK_EXPIRED ? earlier(entry->at_us, entry->at_us + entry->expires_us - entry->clock_us)
                                       : entry->at_us;
  }
  return INT64_MAX;
}

/* Its consumer has it, whatever became of the call. */
static int64_t first_answer_us(const struct broker *broker, const char *message_id) {
  char id[80];
  (void)snprintf(id, sizeof id, "\"%s\"", message_id);
  for (size_t i = 0; i < broker->record_count; i++)
    if (strstr(broker->records[i].text, id))
      return broker->records[i].at_us;
  return INT64_MAX;
}

/* B must not leave before the broker has A, or A is over. */
static const char *judge_pair(const struct table *db, const struct broker *broker, const struct journal_entry *a,
                              const struct journal_entry *b) {
  int64_t over = first_over_us(db, a->message_id);
  for (size_t i = 0; i < broker->message_count; i++) {
    const struct message *message = &broker->messages[i];
    if (strcmp(message->message_id, a->message_id) == 0 && message->outcome == DUEBOX_DELIVERED &&
        message->confirms_us < over)
      over = message->confirms_us;
  }
  over = earlier(over, first_answer_us(broker, a->message_id));
  for (size_t i = 0; i < broker->message_count; i++) {
    const struct message *message = &broker->messages[i];
    if (strcmp(message->message_id, b->message_id) == 0 && message->submitted_us < over)
      return broken("order", "%s was handed over at %.6f, before %s, which came first, was over at %.6f", b->message_id,
                    (double)message->submitted_us / 1e6, a->message_id, (double)over / 1e6);
  }
  return NULL;
}

/* When duebox first wrote into the row: a daemon has met it by then. */
static int64_t met_us(const struct table *db, const char *message_id, unsigned states) {
  for (size_t i = 0; i < db->journal_count; i++) {
    const struct journal_entry *entry = &db->journal[i];
    if (entry->kind == JOURNAL_CHANGED && entry->machine > 0 && states & TASK_BIT(entry->to) &&
        strcmp(entry->message_id, message_id) == 0)
      return entry->at_us;
  }
  return INT64_MAX;
}

/* When its turn came: it was claimed, was given back or asked for another place in its turn, or left. */
static int64_t left_us(const struct table *db, const struct broker *broker, const char *message_id) {
  int64_t left = met_us(db, message_id, TASK_BIT(TASK_CLAIMED));
  for (size_t i = 0; i < db->journal_count; i++) {
    const struct journal_entry *entry = &db->journal[i];
    if (entry->kind == JOURNAL_CHANGED && entry->machine > 0 && entry->from == TASK_SCHEDULED &&
        entry->to == TASK_SCHEDULED && entry->at_us < left && strcmp(entry->message_id, message_id) == 0)
      left = entry->at_us;
  }
  for (size_t i = 0; i < broker->message_count; i++)
    if (strcmp(broker->messages[i].message_id, message_id) == 0 && broker->messages[i].submitted_us < left)
      left = broker->messages[i].submitted_us;
  return left;
}

/* The order key of a task stands behind the dot in its message id. One of the higher priority that is due later is
 * certain to go first only once a daemon has met it. */
static bool goes_before(const struct table *db, const struct broker *broker, const struct journal_entry *a,
                        const struct journal_entry *b) {
  const char *one = strchr(a->message_id, '.'), *other = strchr(b->message_id, '.');
  if (!one || !other || strcmp(one, other) != 0 || strcmp(a->route, b->route) != 0)
    return false;
  bool visible = a->at_us <= b->at_us; /* to whoever meets the other one */
  if (a->priority != b->priority)
    return a->priority > b->priority && ((visible && a->due_us <= b->due_us) ||
                                         met_us(db, a->message_id, UINT_MAX) < left_us(db, broker, b->message_id));
  return visible && (a->due_us < b->due_us || (a->due_us == b->due_us && a->id < b->id));
}

const char *checker_judge(const struct table *db, const struct broker *broker, const struct run_facts *facts) {
  const char *wrong = NULL;
  for (size_t i = 0; i < broker->message_count && !wrong; i++)
    wrong = judge_message(db, facts, &broker->messages[i]);
  for (size_t i = 0; i < db->journal_count && !wrong; i++)
    if (db->journal[i].kind == JOURNAL_INSERTED)
      wrong = judge_task(db, broker, facts, &db->journal[i]);
  if (!wrong)
    wrong = judge_ends(db);
  for (size_t i = 0; i < db->journal_count && !wrong && facts->told; i++)
    if (db->journal[i].kind == JOURNAL_ENDED)
      wrong = judge_cancelled(db, broker, &db->journal[i]);
  for (size_t i = 0; i < db->journal_count && !wrong && facts->still_us; i++)
    if (db->journal[i].kind == JOURNAL_INSERTED)
      wrong = judge_progress(broker, facts, &db->journal[i]);
  for (size_t i = 0; i < db->journal_count && !wrong && facts->ordered; i++)
    for (size_t j = 0; j < db->journal_count && !wrong; j++)
      if (db->journal[i].kind == JOURNAL_INSERTED && db->journal[j].kind == JOURNAL_INSERTED) {
        if (goes_before(db, broker, &db->journal[i], &db->journal[j]))
          wrong = judge_pair(db, broker, &db->journal[i], &db->journal[j]);
      }
  return wrong;
}

/* --- isolation --- */

static int64_t first_sent_us(const struct broker *broker, const char *message_id) {
  for (size_t i = 0; i < broker->message_count; i++)
    if (strcmp(broker->messages[i].message_id, message_id) == 0)
      return broker->messages[i].submitted_us;
  return INT64_MAX;
}

/* The task that has waited longest is the evidence. One with a dot in its message id may wait for others. */
const char *checker_judge_isolation(const struct table *db, const struct broker *broker,
                                    const struct run_facts *facts) {
  const char *wrong = NULL;
  const struct journal_entry *worst = NULL;
  int64_t longest_us = facts->bound_us, left_us = 0;
  for (size_t i = 0; i < broker->message_count && !wrong; i++)
    wrong = judge_message(db, facts, &broker->messages[i]);
  for (size_t i = 0; i < db->journal_count && !wrong; i++) {
    const struct journal_entry *entry = &db->journal[i];
    if (entry->kind != JOURNAL_INSERTED || strcmp(entry->route, facts->good) != 0 || strchr(entry->message_id, '.'))
      continue;
    int64_t since_us = later(entry->at_us + later(0, entry->due_us - entry->clock_us), facts->quiet_us);
    int64_t sent_us = earlier(first_sent_us(broker, entry->message_id), facts->end_us);
    if (sent_us - since_us > longest_us) {
      worst = entry;
      longest_us = sent_us - since_us;
      left_us = sent_us;
    }
  }
  if (worst)
    return broken("P8", "%s of %s waited for %" PRId64 " ms, until %.6f%s", worst->message_id, worst->route,
                  longest_us / 1000, (double)left_us / 1e6, left_us == facts->end_us ? " and beyond" : "");
  return wrong;
}
