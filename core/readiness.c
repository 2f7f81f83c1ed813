/* SPDX-License-Identifier: MIT */
#include "core/readiness.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/attr.h"

static void add(struct problem_list *list, const char *fmt, ...) PRINTF(2, 3);
static void add(struct problem_list *list, const char *fmt, ...) {
  va_list args;
  if (list->count == PROBLEMS_MAX)
    return;
  char *text = list->text[list->count];
  va_start(args, fmt);
  vsnprintf(text, PROBLEM_TEXT, fmt, args);
  va_end(args);
  list->own_len[list->count++] = strlen(text);
}

/* Puts a task, or what a destination has said, behind the last problem. */
static void add_particular(struct problem_list *list, const char *before, const char *what) {
  char *text = list->text[list->count - 1];
  size_t len = strlen(text);
  snprintf(text + len, PROBLEM_TEXT - len, "%s%s", before, what);
}

static void add_unowned(struct problem_list *list, uint64_t shards) {
  char names[PROBLEM_TEXT] = "";
  size_t used = 0;
  for (unsigned i = 0; i < 64 && used + sizeof ", 63" < sizeof names; i++)
    if (shards >> i & 1)
      used += (size_t)snprintf(names + used, sizeof names - used, "%s%u", used ? ", " : ": ", i);
  add(list, "not every shard has a living owner yet%.300s", names);
}

static long long seconds(int64_t us) { return (long long)(us / 1000000); }

bool readiness_db_up(const struct readiness *facts) { return facts->db_answers && facts->reading_us <= READY_STUCK_US; }

static void judge_shards(const struct readiness *facts, struct problem_list *out) {
  if (!facts->shards_spoken)
    add_unowned(out, facts->unowned);
  if (facts->unread_shards_us > READY_STUCK_US)
    add(out,
        "the table of shards could not be read for %lld s: none is taken over from a daemon that dies; see "
        "DUEBOX-SHARD-TROUBLE",
        seconds(facts->unread_shards_us));
  if (facts->unsafe > 0)
    add(out, "the leases of %u of our %u shards cannot be renewed in time: nothing of them is sent", facts->unsafe,
        facts->shards_ours);
}

void readiness_judge(const struct readiness *facts, struct problem_list *out) {
  *out = (struct problem_list){0};
  if (facts->failed)
    add(out, "%s", facts->failed);
  if (facts->stopping)
    add(out, "the daemon is stopping");
  if (facts->on_hold)
    add(out, "held: it was started with --hold, so nothing is sent");
  if (!facts->db_answers)
    add(out, "the database does not answer, or refuses us; the log says which");
  judge_shards(facts, out);
  if (facts->reading_us > READY_STUCK_US)
    add(out,
        "polling the table, or reading due tasks from it, has failed for %lld s; see DUEBOX-DB-TROUBLE or -REFUSED",
        seconds(facts->reading_us));
  if (facts->held_us > READY_STUCK_US) {
    add(out,
        "a due task of route %.64s could not be claimed for %lld s: another transaction holds its row or a gap of an "
        "index, or the claim is refused; see DUEBOX-CLAIM-HELD or -REFUSED",
        facts->held, seconds(facts->held_us));
    add_particular(out, "; it is task ", facts->held_task);
  }
  if (facts->settling_us > READY_STUCK_US)
    add(out, "outcomes have not been written for %lld s; see DUEBOX-SETTLE-WAIT in the log",
        seconds(facts->settling_us));
  if (facts->refused > 0)
    add(out, "the database refuses the outcomes of %lld tasks; the log says which (DUEBOX-SETTLE-REFUSED)",
        (long long)facts->refused);
  if (facts->locked_us > READY_STUCK_US)
    add(out,
        "a task that was sent could not be settled for %lld s: another transaction holds its row, or an entry of it in "
        "an index; see DUEBOX-SETTLE-LOCKED",
        seconds(facts->locked_us));
  if (facts->results_us > READY_STUCK_US)
    add(out, "results have waited for %lld s to be written; see DUEBOX-RESULTS-WAIT or -LATE in the log",
        seconds(facts->results_us));
  if (facts->stalled_us > READY_STUCK_US)
    add(out, "route %.64s is stalled: its destination has confirmed nothing for %lld s; see DUEBOX-ROUTE-STALLED",
        facts->stalled, seconds(facts->stalled_us));
  if (facts->full) {
    add(out,
        "route %.64s is full: none of its places has become free for %lld s, and due tasks wait; see DUEBOX-ROUTE-FULL",
        facts->full, seconds(facts->full_us));
    add_particular(out, "; for longest it is task ", facts->full_task);
  }
  if (facts->unread_us > READY_STUCK_US) {
    add(out, "results at %.64s have not been read for %lld s", facts->unread, seconds(facts->unread_us));
    add_particular(out, ": ", facts->unread_why);
  }
  if (facts->hung)
    add(out, "plugin instance %s gives no sign of life", facts->hung);
}

void readiness_conceal(struct problem_list *list) {
  for (size_t i = 0; i < list->count; i++)
    list->text[i][list->own_len[i]] = '\0';
}

void readiness_text(const struct problem_list *list, char *out, size_t cap) {
  size_t used = 0;
  out[0] = '\0';
  for (size_t i = 0; i < list->count && used < cap; i++) {
    int n = snprintf(out + used, cap - used, "%s%s", i ? "; " : "", list->text[i]);
    used += n > 0 ? (size_t)n : 0;
  }
}
