/* SPDX-License-Identifier: MIT */
#include "cli/intervene.h"

#include <duebox/link.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

#include "cli/daemon.h"
#include "cli/interrupt.h"
#include "cli/intervene_internal.h"
#include "cli/times.h"
#include "core/base/clock.h"

enum {
  ROUNDS = 3,
  NAME_CAP = sizeof "message_id:" + STORE_ID_MAX + STORE_WIDER,
  TOGETHER = 64, /* tasks in one request, as docs/openapi.yaml has it */
  ANSWER_TIMEOUT_MS = 15000,
  HAND_OVER_US = 15 * 1000 * 1000, /* as an answer is waited for */
  LOCKS_US = 2 * 1000 * 1000, /* for all locks that a command meets: most go soon, and the others are passed over */
  LOCKS_PAUSE_US = 100 * 1000,
  HTTP_OK = 200,
  HTTP_UNAUTHORIZED = 401,
  HTTP_FORBIDDEN = 403,
  HTTP_NOT_FOUND = 404,
  HTTP_CONFLICT = 409,
  HTTP_MISDIRECTED = 421,
  HTTP_UNAVAILABLE = 503
};

bool intervener_new(const struct operator* op, const struct admin_config *admin, struct intervener **out,
                    struct err *err) {
  *out = calloc(1, sizeof **out);
  if (!*out)
    return err_set(err, EX_OSERR, "out of memory");
  (*out)->op = op;
  if (daemon_client_new(admin, op, &(*out)->client, err))
    return true;
  intervener_free(out);
  return false;
}

void intervener_free(struct intervener **intervener) {
  if (!*intervener)
    return;
  daemon_client_free(&(*intervener)->client);
  free(*intervener);
  *intervener = NULL;
}

static bool learn_owner(struct intervener *in, uint8_t shard, struct err *err) {
  if (in->known[shard])
    return true;
  const struct shard_owner before = in->owners[shard];
  enum store_status status = in->op->ops->owner(in->op->self, shard, &in->owners[shard], err);
  in->known[shard] = status == STORE_OK;
  bool same = in->owners[shard].alive && strcmp(before.instance, in->owners[shard].instance) == 0;
  in->lives[shard] &= same;
  in->bare[shard] &= same;
  in->singly[shard] &= same;
  return status == STORE_OK || intervene_store_failed(status, err);
}

uint64_t intervener_asked(const struct intervener *in) { return in->asked; }

static bool undecided(const struct task_target *target) { return target->outcome == CHANGE_OUTCOMES; }

/* --- shards that nobody holds --- */

static bool change_directly(struct intervener *in, const struct task_change *change, struct task_target *targets,
                            size_t count, struct audit_span *audit, struct err *err) {
  struct task_target *chosen = calloc(count, sizeof *chosen);
  size_t *places = calloc(count, sizeof *places), n = 0;
  bool ok = chosen && places;
  if (!ok)
    err_set(err, EX_OSERR, "out of memory");
  for (size_t i = 0; ok && i < count; i++) {
    if (!undecided(&targets[i]))
      continue;
    ok = learn_owner(in, targets[i].shard, err);
    if (ok && !in->owners[targets[i].shard].alive) {
      places[n] = i;
      chosen[n++] = targets[i];
    }
  }
  if (ok && n > 0) {
    struct audit_span written;
    enum store_status status = in->op->ops->change(in->op->self, change, chosen, n, &written, err);
    ok = status == STORE_OK || intervene_store_failed(status, err);
    audit_span_add(audit, written);
  }
  for (size_t i = 0; ok && i < n; i++) {
    targets[places[i]] = chosen[i];
    if (chosen[i].outcome == CHANGE_LOCKED)
      in->waited_us = LOCKS_US;             /* it has been waited for */
    if (chosen[i].outcome == CHANGE_HELD) { /* somebody has taken it since we looked */
      targets[places[i]].outcome = CHANGE_OUTCOMES;
      in->known[chosen[i].shard] = false;
    }
  }
  free(chosen);
  free(places);
  return ok;
}

/* --- shards that a daemon holds --- */

/* JSON text, to free(); NULL when it is not UTF-8. ids: of many, NULL = the path names one. */
static char *request_body(const struct task_change *change, json_t *ids) {
  json_t *body = json_pack("{s:s, s:s}", "actor", change->actor, "reason", change->reason);
  if (body && change->verb == CHANGE_RESCHEDULE) {
    char due[TIME_TEXT_MAX];
    rfc3339_print(change->due_us, due);
    json_object_set_new(body, "due_at", json_string(due));
  }
  if (body && ids)
    json_object_set_new(body, "filter", json_string(change->filter));
  if (body && ids)
    json_object_set(body, "ids", ids);
  char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
  json_decref(body);
  return text;
}

/* --- addresses that lead to another daemon --- */

static bool is_loopback(const char *url) {
  const char *host = strstr(url, "://");
  host = host ? host + 3 : url;
  return duebox_link_is_local(host, *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/"));
}

/* Behind what went wrong at an address that may be right on the daemon's machine alone. */
static const char *loopback_note(const struct shard_owner *owner) {
  return is_loopback(owner->admin_url)
             ? " (an address of loopback leads each machine to itself: where the daemon runs on another one, give the "
               "command there, or set its admin.url to an address that leads to it from everywhere)"
             : "";
}

/* The daemon that answered does not hold the shard. Where its owner has died, or gives it to another, the table soon
 * says so; where it renews its lease, it lives, and is asked once more: then its address leads to another daemon. */
static bool await_owner(struct intervener *in, const struct task_target *target, struct err *err) {
  const struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};
  const struct shard_owner *owner = &in->owners[target->shard], before = *owner;
  if (in->lives[target->shard])
    return err_set(
        err, EX_UNAVAILABLE,
        "task %llu: the daemon %s on %s holds its shard, and at its address %s another daemon of this outbox "
        "answers; nothing was changed. Each daemon needs an admin.url that leads to it alone%s",
        (unsigned long long)target->id, owner->instance, owner->host, owner->admin_url, loopback_note(owner));
  for (int64_t until_us = clock_mono_us() + HAND_OVER_US; clock_mono_us() < until_us; nanosleep(&pause, NULL)) {
    in->known[target->shard] = false;
    if (!learn_owner(in, target->shard, err))
      return false;
    in->lives[target->shard] = owner->alive && owner->lease_us > before.lease_us;
    if (!owner->alive || in->lives[target->shard] || strcmp(owner->instance, before.instance) != 0)
      return true;
  }
  return err_set(err, EX_TEMPFAIL,
                 "task %llu: another daemon answers for %s on %s, which holds its shard and does not renew its lease; "
                 "nothing was changed, try again when the lease is over",
                 (unsigned long long)target->id, owner->instance, owner->host);
}

/* Whether a message id by itself names this task and no other, in a path too. */
static bool is_plain(const char *id) {
  return strncmp(id, "id:", 3) != 0 && strncmp(id, "message_id:", 11) != 0 && strspn(id, ".") != strlen(id);
}

/* It says that there is no such task. */
static bool meet_missing(struct intervener *in, struct task_target *target, struct err *err) {
  const struct shard_owner *owner = &in->owners[target->shard];
  struct task_target now;
  bool found;
  if (!intervene_read_again(in, target, &now, &found, err))
    return false;
  if (!found || !task_state_living(now.state)) {
    target->outcome = CHANGE_NOT_FOUND;
    return true;
  }
  if (in->bare[target->shard] || !is_plain(target->message_id))
    return err_set(
        err, EX_UNAVAILABLE,
        "task %llu: the daemon %s at %s does not know it, though its row is there; nothing was changed. It may "
        "be of a version before: start it anew",
        (unsigned long long)target->id, owner->instance, owner->admin_url);
  in->bare[target->shard] = true; /* it is asked once more */
  return true;
}

static bool take_answer(struct intervener *in, const struct task_change *change, const struct daemon_answer *answer,
                        struct task_target *target, struct err *err) {
  const struct shard_owner *owner = &in->owners[target->shard];
  unsigned long long id = target->id;
  const json_t *said;
  switch (answer->status) {
  case HTTP_OK:
    said = json_object_get(answer->body, "maybe_sent"); /* a version before says it of less, or nothing */
    target->maybe_sent = target->maybe_sent || json_is_true(said);
    return intervene_verify(in, change, target, err);
  case HTTP_NOT_FOUND:
    return meet_missing(in, target, err);
  case HTTP_CONFLICT:
    if (strcmp(answer->code, "ambiguous") == 0) /* it has no message id to ask by */
      return err_set(err, EX_DATAERR, "task %llu: the daemon at %s does not change it: %s", id, owner->admin_url,
                     answer->detail);
    target->outcome = strcmp(answer->code, "in_flight") == 0 ? CHANGE_IN_FLIGHT : CHANGE_STATE;
    return true;
  case HTTP_MISDIRECTED:
    return await_owner(in, target, err);
  case HTTP_UNAUTHORIZED:
  case HTTP_FORBIDDEN:
    return err_set(err, EX_NOPERM,
                   "task %llu: the daemon at %s refuses: %s; nothing was changed. admin.token_file must hold the "
                   "daemon's token%s",
                   id, owner->admin_url, answer->detail, loopback_note(owner));
  case HTTP_UNAVAILABLE:
    if (strcmp(answer->code, "locked") == 0) {
      in->waited_us = LOCKS_US; /* the daemon has tried for as long */
      target->outcome = CHANGE_LOCKED;
      return true;
    }
    /* fall through */
  default:
    if (strcmp(answer->code, "refused") == 0) {
      snprintf(target->refused, sizeof target->refused, "%.*s", OPERATOR_REFUSED_MAX - 1, answer->detail);
      target->outcome = CHANGE_REFUSED;
      return true;
    }
    if (strcmp(answer->code, "rights") == 0)
      return err_set(err, EX_NOPERM, "task %llu: the daemon at %s lacks a right, and nothing was changed: %s", id,
                     owner->admin_url, answer->detail);
    return err_set(err, EX_UNAVAILABLE, "task %llu: the daemon at %s cannot do it now: %s", id, owner->admin_url,
                   answer->detail);
  }
}

static bool refuse_unreached(const struct daemon_answer *answer, const struct shard_owner *owner, unsigned long long id,
                             struct err *err) {
  size_t len = strlen(err->text);
  if (answer->status == DAEMON_NEVER_SENT)
    snprintf(err->text + len, sizeof err->text - len, "%s", loopback_note(owner));
  return err_wrap(err, "task %llu: the daemon %s on %s holds its shard and %s; nothing was changed", id,
                  owner->instance, owner->host,
                  answer->status == DAEMON_UNNAMED ? "was not asked" : "cannot be reached");
}

/* What a daemon is asked by: another task may have the row's id by then, so that is the last resort. */
static void put_name(const struct task_target *target, bool bare, char name[NAME_CAP]) {
  if (target->nameless)
    snprintf(name, NAME_CAP, "id:%llu", (unsigned long long)target->id);
  else
    snprintf(name, NAME_CAP, "%s%s", bare ? "" : "message_id:", target->message_id);
}

static bool ask_owner(struct intervener *in, const struct task_change *change, struct task_target *target,
                      struct err *err) {
  const struct shard_owner *owner = &in->owners[target->shard];
  unsigned long long id = target->id;
  if (!owner->admin_url[0])
    return err_set(err, EX_UNAVAILABLE,
                   "task %llu: the daemon %s on %s holds its shard and has no HTTP listener; nothing was changed. Set "
                   "admin.listen there, or stop it first",
                   id, owner->instance, owner->host[0] ? owner->host : "an unknown host");
  char path[256];
  struct daemon_answer answer;
  char name[NAME_CAP];
  put_name(target, in->bare[target->shard] && is_plain(target->message_id), name);
  char *message_id = daemon_segment(name);
  snprintf(path, sizeof path, "/api/v1/tasks/%s/%s", message_id ? message_id : "",
           change->verb == CHANGE_CANCEL ? "cancel" : "reschedule");
  free(message_id);
  char *body = request_body(change, NULL);
  if (!body)
    return err_set(err, EX_DATAERR, "--reason is not UTF-8");
  bool answered = daemon_ask(in->client, owner->admin_url, path, DAEMON_TASK, body, ANSWER_TIMEOUT_MS, &answer, err);
  free(body);
  bool ok;
  if (answered)
    ok = take_answer(in, change, &answer, target, err);
  else if (answer.status < 0)
    ok = refuse_unreached(&answer, owner, id, err);
  else
    ok = intervene_look_again(in, change, target, err);
  in->asked += ok && target->outcome == CHANGE_DONE;
  json_decref(answer.body);
  return ok;
}

/* --- many of one shard in one request --- */

/* Tasks of one shard, by their place among the targets. */
struct together {
  struct task_target *targets;
  size_t at[TOGETHER], count;
  size_t next;    /* where the next request begins, */
  bool some_stay; /* unless the server refuses one of these: then none was changed */
};

static const char *const changing[] = {[CHANGE_CANCEL] = "cancel", [CHANGE_RESCHEDULE] = "reschedule"};

/* Those whose rows show what the daemon says; the others are looked at one by one. */
static void verify_together(struct intervener *in, const struct task_change *change, const struct together *some,
                            const bool *said) {
  char names[TOGETHER][32];
  const char *ids[TOGETHER];
  struct task_target now[TOGETHER];
  struct task_filter filter = {.ids = ids, .exact_ids = true};
  size_t count = 0;
  struct err ignored;
  for (size_t i = 0; i < some->count; i++)
    if (said[i]) {
      snprintf(names[filter.id_count], sizeof names[0], "id:%llu", (unsigned long long)some->targets[some->at[i]].id);
      ids[filter.id_count] = names[filter.id_count];
      filter.id_count++;
    }
  bool living = change->verb == CHANGE_RESCHEDULE;
  if (filter.id_count == 0 || in->op->ops->targets(in->op->self, &filter, living, OLDEST_FIRST, NULL, now, TOGETHER,
                                                   &count, &ignored) != STORE_OK)
    return;
  for (size_t i = 0; i < some->count; i++)
    for (size_t k = 0; said[i] && k < count; k++) {
      struct task_target *target = &some->targets[some->at[i]];
      if (now[k].id != target->id || strcmp(now[k].message_id, target->message_id) != 0 ||
          intervene_is_unchanged(change, target, &now[k]))
        continue;
      target->maybe_sent = target->maybe_sent || now[k].maybe_sent;
      target->outcome = CHANGE_DONE;
    }
}

/* What a daemon says of each; NULL: no answer came, though the request may have. */
static bool take_answers(struct intervener *in, const struct task_change *change, const struct daemon_answer *answer,
                         struct together *some, struct err *err) {
  const json_t *tasks = answer ? json_object_get(answer->body, "tasks") : NULL;
  bool said[TOGETHER] = {false};
  for (size_t i = 0; i < some->count; i++) {
    const json_t *task = json_array_get(tasks, i);
    const char *outcome = json_string_value(json_object_get(task, "outcome"));
    struct task_target *target = &some->targets[some->at[i]];
    outcome = outcome ? outcome : "";
    said[i] = !answer || strcmp(outcome, "done") == 0;
    if (answer && said[i])
      target->maybe_sent = target->maybe_sent || json_is_true(json_object_get(task, "maybe_sent"));
    else if (strcmp(outcome, "in_flight") == 0)
      target->outcome = CHANGE_IN_FLIGHT;
    else if (strcmp(outcome, "state") == 0)
      target->outcome = CHANGE_STATE;
    else if (strcmp(outcome, "locked") == 0)
      target->outcome = CHANGE_LOCKED;
    else if (strcmp(outcome, "left") == 0 && i > 0 && some->at[i] < some->next)
      some->next = some->at[i];
    else
      some->some_stay = some->some_stay || strcmp(outcome, "refused") == 0;
  }
  verify_together(in, change, some, said);
  bool ok = true;
  for (size_t i = 0; ok && i < some->count; i++) {
    struct task_target *target = &some->targets[some->at[i]];
    if (answer && said[i] && undecided(target))
      ok = intervene_verify(in, change, target, err);
    in->asked += said[i] && target->outcome == CHANGE_DONE;
  }
  return ok;
}

/* No answer came: of those whose rows do not show it nobody knows, and asking again for one of them would wait as long.
 */
static bool all_known(const struct intervener *in, const struct together *some, const struct err *why,
                      struct err *err) {
  const struct task_target *first = NULL;
  char others[48] = "";
  size_t unknown = 0;
  for (size_t i = 0; i < some->count; i++) {
    const struct task_target *target = &some->targets[some->at[i]];
    first = !first && undecided(target) ? target : first;
    unknown += undecided(target);
  }
  if (!first)
    return true;
  if (unknown > 1)
    snprintf(others, sizeof others, " and %zu other%s", unknown - 1, unknown > 2 ? "s" : "");
  return err_set(
      err, EX_UNAVAILABLE,
      "task %llu%s: the daemon %s did not answer (%.600s); whether it was carried out is not known: look with "
      "`duebox task show id:%llu` and repeat it",
      (unsigned long long)first->id, others, in->owners[first->shard].instance, why->text,
      (unsigned long long)first->id);
}

/* Asks the owner of their shard. What is not decided then is asked for singly, which says more of it: false only where
 * what is said to be done cannot be seen, or no answer came. */
static bool ask_together(struct intervener *in, const struct task_change *change, struct together *some, uint8_t shard,
                         struct err *err) {
  const struct shard_owner *owner = &in->owners[shard];
  char path[64], name[NAME_CAP];
  struct daemon_answer answer = {0};
  struct err why;
  json_t *ids = json_array();
  for (size_t i = 0; i < some->count; i++) {
    put_name(&some->targets[some->at[i]], false, name);
    json_array_append_new(ids, json_string(name));
  }
  snprintf(path, sizeof path, "/api/v1/tasks/%s", changing[change->verb]);
  char *body = request_body(change, ids);
  json_decref(ids);
  bool answered =
      body && daemon_ask(in->client, owner->admin_url, path, DAEMON_TASKS, body, ANSWER_TIMEOUT_MS, &answer, &why);
  free(body);
  bool whole =
      answered && answer.status == HTTP_OK && json_array_size(json_object_get(answer.body, "tasks")) == some->count;
  bool doubt = body && !whole && (answer.status == 0 || answer.status == HTTP_OK), ok = true;
  in->singly[shard] = in->singly[shard] || !whole;
  if (whole || doubt)
    ok = take_answers(in, change, whole ? &answer : NULL, some, err);
  if (ok && doubt && !answered)
    ok = all_known(in, some, &why, err);
  if (answered)
    json_decref(answer.body);
  return ok;
}

/* Those of one shard from `from` on that are not decided and have not been asked for, as many as go into a request. */
static void gather(struct task_target *targets, size_t count, size_t from, uint8_t shard, size_t most,
                   struct together *some) {
  *some = (struct together){.targets = targets};
  for (size_t i = from; i < count && some->count < most; i++)
    if (undecided(&targets[i]) && targets[i].shard == shard)
      some->at[some->count++] = i;
  some->next = some->count ? some->at[some->count - 1] + 1 : count;
}

/* Where one is refused, all of its request stay: the next has half as many, and twice as many after one without. What
 * is alone is left for ask_owner(), for which a daemon waits longer where it is locked: once. */
static bool ask_shard(struct intervener *in, const struct task_change *change, struct task_target *targets,
                      size_t count, uint8_t shard, struct err *err) {
  for (size_t from = 0; !in->singly[shard] && !interrupt_caught();) {
    struct together some;
    size_t most = in->together && in->together < TOGETHER ? in->together : TOGETHER;
    gather(targets, count, from, shard, most, &some);
    if (some.count == 0)
      return true;
    if (some.count == 1 && in->waited_us == 0) {
      if (!ask_owner(in, change, &targets[some.at[0]], err))
        return false;
    } else if (!ask_together(in, change, &some, shard, err)) {
      return false;
    }
    in->together = some.some_stay ? (some.count + 1) / 2 : 2 * most;
    if (!some.some_stay || some.count == 1)
      from = some.next;
  }
  return true;
}

static bool ask_owners_together(struct intervener *in, const struct task_change *change, struct task_target *targets,
                                size_t count, struct err *err) {
  bool asked[STORE_SHARDS_MAX] = {false};
  for (size_t i = 0; (count > 1 || in->waited_us) && i < count; i++) {
    uint8_t shard = targets[i].shard;
    if (!undecided(&targets[i]) || asked[shard])
      continue;
    asked[shard] = true;
    if (!learn_owner(in, shard, err))
      return false;
    const struct shard_owner *owner = &in->owners[shard];
    if (owner->alive && owner->admin_url[0] && !ask_shard(in, change, targets, count, shard, err))
      return false;
  }
  return true;
}

static bool ask_owners(struct intervener *in, const struct task_change *change, struct task_target *targets,
                       size_t count, struct err *err) {
  for (size_t i = 0; i < count; i++) {
    if (!undecided(&targets[i]))
      continue;
    if (interrupt_caught())
      return interrupt_say(err);
    if (!learn_owner(in, targets[i].shard, err))
      return false;
    if (in->owners[targets[i].shard].alive && !ask_owner(in, change, &targets[i], err))
      return false;
  }
  return true;
}

static size_t count_undecided(const struct task_target *targets, size_t count) {
  size_t left = 0;
  for (size_t i = 0; i < count; i++)
    left += undecided(&targets[i]);
  return left;
}

/* What was read a moment ago decides where it cannot be rescheduled: nobody is asked about thousands that await their
 * results. One that is on its way out may be about to await its result, and can be cancelled then: its daemon knows. */
static void judge(const struct intervener *in, const struct task_change *change, struct task_target *target) {
  bool decides = change->verb == CHANGE_RESCHEDULE || target->misfit;
  target->outcome = decides ? in->op->ops->judge(change, target) : CHANGE_DONE;
  if (target->outcome == CHANGE_DONE)
    target->outcome = CHANGE_OUTCOMES;
}

static bool decide(struct intervener *in, const struct task_change *change, struct task_target *targets, size_t count,
                   struct audit_span *audit, struct err *err) {
  size_t left = count_undecided(targets, count);
  for (int round = 0; round < ROUNDS && left > 0; round++) {
    if (!change_directly(in, change, targets, count, audit, err) ||
        !ask_owners_together(in, change, targets, count, err) || !ask_owners(in, change, targets, count, err))
      return false;
    left = count_undecided(targets, count);
  }
  return left == 0 || err_set(err, EX_TEMPFAIL,
                              "the shards of %zu tasks change hands just now; nothing was changed for "
                              "them, try again in a few seconds",
                              left);
}

/* Makes those that were locked undecided again. */
static size_t forget_locked(struct task_target *targets, size_t count) {
  size_t locked = 0;
  for (size_t i = 0; i < count; i++)
    if (targets[i].outcome == CHANGE_LOCKED) {
      targets[i].outcome = CHANGE_OUTCOMES;
      locked++;
    }
  return locked;
}

bool intervene(struct intervener *in, const struct task_change *change, struct task_target *targets, size_t count,
               struct audit_span *audit, struct err *err) {
  const struct timespec pause = {.tv_nsec = LOCKS_PAUSE_US * 1000};
  *audit = (struct audit_span){0};
  for (size_t i = 0; i < count; i++)
    judge(in, change, &targets[i]);
  bool ok = decide(in, change, targets, count, audit, err);
  while (ok && in->waited_us < LOCKS_US && !interrupt_caught() && forget_locked(targets, count) > 0) {
    int64_t began_us = clock_mono_us();
    nanosleep(&pause, NULL);
    ok = decide(in, change, targets, count, audit, err);
    in->waited_us += clock_mono_us() - began_us;
  }
  return ok;
}
