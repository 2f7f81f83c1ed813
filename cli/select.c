/* SPDX-License-Identifier: MIT */
#include "cli/select.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

static const enum option_id selecting[] = {SELECTION};

static bool selects(enum option_id id, bool priority_selects) {
  for (size_t i = 0; i < ARRAY_LEN(selecting); i++)
    if (selecting[i] == id)
      return true;
  return id == OPT_PRIORITY && priority_selects;
}

static bool word_bits(const char *word, size_t len, uint32_t *bits) {
  static const struct {
    const char *word;
    uint32_t bits;
  } groups[] = {{"living", STATES_LIVING}, {"final", STATES_FINAL}, {"all", STATES_LIVING | STATES_FINAL}};
  for (size_t i = 0; i < ARRAY_LEN(groups); i++)
    if (strlen(groups[i].word) == len && memcmp(groups[i].word, word, len) == 0) {
      *bits |= groups[i].bits;
      return true;
    }
  for (int i = 0; i < TASK_STATES; i++) {
    const char *state = task_state_text((enum task_state)i);
    if (strlen(state) == len && memcmp(state, word, len) == 0) {
      *bits |= STATE_BIT(i);
      return true;
    }
  }
  return false;
}

bool states_parse(const char *text, uint32_t *bits, struct err *err) {
  *bits = 0;
  for (const char *word = text;;) {
    size_t len = strcspn(word, ",");
    if (!word_bits(word, len, bits))
      return err_set(err, EX_USAGE, "--state: \"%.*s\" is no state; they are %s", (int)len, word,
                     option_rows[OPT_STATE].words);
    if (!word[len])
      return true;
    word += len + 1;
  }
}

static const enum option_id times[] = {OPT_DUE_BEFORE, OPT_DUE_AFTER, OPT_CREATED_BEFORE, OPT_CREATED_AFTER};

static int64_t *time_field(struct task_filter *filter, size_t i) {
  int64_t *const fields[] = {&filter->due_before_us, &filter->due_after_us, &filter->created_before_us,
                             &filter->created_after_us};
  return fields[i];
}

/* A filter takes 0 for no condition, and all tasks for one before 1970 that way; no task is from then. */
static int64_t since_1970(int64_t us) { return us > 0 ? us : 1; }

static bool read_times(const struct args *args, struct selection *out, struct err *err) {
  for (size_t i = 0; i < ARRAY_LEN(times); i++) {
    struct when when = {0};
    if (!args_when(args, times[i], &when, err))
      return false;
    *time_field(&out->filter, i) = when.given && !when.relative ? since_1970(when.us) : when.us;
    out->relative_times |= when.relative ? 1u << i : 0;
  }
  return true;
}

/* Puts the selecting words together again as they were typed; what does not fit ends with "...". */
static void put_words(const struct args *args, bool priority_selects, struct selection *out) {
  char *at = out->words, *end = out->words + sizeof out->words;
  for (int i = 0; i < args->operand_count && at < end; i++)
    at += snprintf(at, (size_t)(end - at), "%s%s", at == out->words ? "" : " ", args->operands[i]);
  for (size_t i = 0; i < args->given_count && at < end; i++)
    if (selects(args->given[i].id, priority_selects))
      at += snprintf(at, (size_t)(end - at), "%s--%s %s", at == out->words ? "" : " ",
                     option_rows[args->given[i].id].name, args->given[i].value);
  if (at >= end)
    memcpy(end - 4, "...", 4);
}

/* A span that ends before it begins holds no task, and something is mistaken. What counts from now and what does not
 * can only be compared by the database's clock: such a pair passes, and selects nothing. */
static bool check_spans(const struct args *args, struct selection *out, struct err *err) {
  for (size_t i = 0; i < ARRAY_LEN(times); i += 2) {
    bool relative = out->relative_times & 1u << i, same = relative == (bool)(out->relative_times & 2u << i);
    if (args_has(args, times[i]) && args_has(args, times[i + 1]) && same &&
        *time_field(&out->filter, i) <= *time_field(&out->filter, i + 1))
      return err_set(err, EX_USAGE, "--%s must be later than --%s: no task is between them", option_rows[times[i]].name,
                     option_rows[times[i + 1]].name);
  }
  return true;
}

bool select_read(const struct args *args, bool priority_selects, struct selection *out, struct err *err) {
  *out = (struct selection){0};
  struct task_filter *filter = &out->filter;
  filter->route = args_text(args, OPT_ROUTE);
  filter->key = args_text(args, OPT_KEY);
  filter->error_class = args_text(args, OPT_ERROR);
  filter->where = args_text(args, OPT_WHERE);
  filter->ids = (const char *const *)args->operands;
  filter->id_count = (size_t)args->operand_count;
  out->by_ids = args->operand_count > 0;
  for (size_t i = 0; i < args->given_count; i++)
    out->filtered |= selects(args->given[i].id, priority_selects);
  if (out->by_ids && out->filtered)
    return err_set(err, EX_USAGE, "give ids or filters, not both: an id names its task whatever a filter says");

  const char *states = args_text(args, OPT_STATE);
  out->states_given = states != NULL;
  if (states && !states_parse(states, &filter->states, err))
    return false;
  if (filter->where && !filter->where[strspn(filter->where, " \t\r\n")])
    return err_set(err, EX_USAGE, "--where: the condition is empty");
  int64_t priority = 0;
  if (priority_selects && !args_int(args, OPT_PRIORITY, 1, 9, &priority, err))
    return false;
  filter->priority = (uint8_t)priority;
  put_words(args, priority_selects, out);
  return read_times(args, out, err) && check_spans(args, out, err);
}

int select_open(struct cli *cli, struct selection *selection, const struct operator** op) {
  struct err err = {0};
  int64_t now_us;
  int code = cli_operator(cli, op);
  if (code || !selection->relative_times)
    return code;
  enum store_status status = (*op)->ops->now((*op)->self, &now_us, &err);
  if (status != STORE_OK)
    return cli_fail_store(status, &err);
  for (size_t i = 0; i < ARRAY_LEN(times); i++)
    if (selection->relative_times & 1u << i)
      *time_field(&selection->filter, i) = since_1970(now_us + *time_field(&selection->filter, i));
  selection->relative_times = 0;
  return EX_OK;
}

/* Of a statement that is otherwise known to be right, whatever the server refuses but a right or a table of ours. */
static bool is_of_condition(const struct selection *selection, enum store_status status, const struct err *err) {
  enum { NO_SUCH_TABLE = 1146, NO_TABLE_IN_ENGINE = 1932 };
  return selection->filter.where && status == STORE_REFUSED && cli_store_code(status, err) == EX_CONFIG &&
         err->code != NO_SUCH_TABLE && err->code != NO_TABLE_IN_ENGINE;
}

int select_fail(enum store_status status, const struct selection *selection, const struct err *err) {
  const char *end = strstr(err->text, " (error "); /* what follows is a cure for tables, not for conditions */
  if (end && is_of_condition(selection, status, err))
    return cli_fail(EX_USAGE, "--where: %.*s", (int)(end - err->text), err->text);
  return cli_fail_store(status, err);
}
