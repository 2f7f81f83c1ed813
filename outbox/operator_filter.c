/* SPDX-License-Identifier: MIT */
#include "outbox/operator_filter.h"

#include <string.h>

static uint32_t table_states(enum operator_table table) { return table == TABLE_LIVING ? STATES_LIVING : STATES_FINAL; }

static uint32_t wanted_states(const struct task_filter *filter) {
  return filter->states ? filter->states : filter->id_count ? STATES_LIVING | STATES_FINAL : STATES_LIVING;
}

bool filter_touches(const struct task_filter *filter, enum operator_table table) {
  return (wanted_states(filter) & table_states(table)) != 0;
}

static void add_states(struct text *out, uint32_t states) {
  if (!states) {
    text_puts(out, "FALSE");
    return;
  }
  const char *separator = "state IN (";
  for (int i = 0; i < TASK_STATES; i++) {
    if (!(states & STATE_BIT(i)))
      continue;
    text_puts(out, separator);
    text_puts(out, "'");
    text_puts(out, task_state_text((enum task_state)i));
    text_puts(out, "'");
    separator = ", ";
  }
  text_puts(out, ")");
}

static void add_equal(struct text *out, const char *column, const char *value) {
  if (!value)
    return;
  text_puts(out, " AND ");
  text_puts(out, column);
  text_puts(out, " = ");
  text_sql(out, value, strlen(value));
}

/* The server ignores blanks at the end of texts that it compares, and the key "17 " is another one than "17". The index
 * is for the comparison, so the length is beside it. */
static void add_same(struct text *out, const char *column, const char *value) {
  if (!value)
    return;
  add_equal(out, column, value);
  text_puts(out, " AND LENGTH(");
  text_puts(out, column);
  text_puts(out, ") = ");
  text_u64(out, strlen(value));
}

/* What no route can be called the column is not even compared with: it is ASCII, and the server would refuse. */
static void add_route(struct text *out, const char *route) {
  if (route && !*message_id_or_none(route))
    text_puts(out, " AND FALSE");
  else
    add_equal(out, "route", route);
}

static void add_time(struct text *out, const char *condition, int64_t us) {
  if (!us)
    return;
  text_puts(out, " AND ");
  text_puts(out, condition);
  text_puts(out, " '");
  text_time(out, us);
  text_puts(out, "'");
}

static void add_message_id(struct text *out, const char *message_id, const char **separator) {
  if (!*message_id)
    return;
  text_puts(out, *separator);
  text_sql(out, message_id, strlen(message_id));
  *separator = ", ";
}

/* A client that has switched the CHECK off may insert message ids that are none: an empty one, or one that differs from
 * another by blanks at its end, which the server ignores where it compares. */
static void add_ids(struct text *out, const struct task_filter *filter) {
  const char *first = " AND (message_id IN (", *separator = first;
  for (size_t i = 0; i < filter->id_count; i++) {
    struct task_name name = task_name_of(filter->ids[i]);
    add_message_id(out, name.message_id, &separator);
    if (!filter->exact_ids)
      add_message_id(out, name.whole, &separator);
  }
  text_puts(out, separator == first ? " AND (FALSE" : ") AND message_id NOT LIKE '% '");
  bool rows = false;
  for (size_t i = 0; i < filter->id_count; i++) {
    struct task_name name = task_name_of(filter->ids[i]);
    if (name.is_row) {
      text_puts(out, rows ? ", " : " OR id IN (");
      text_u64(out, name.row);
      rows = true;
    }
  }
  text_puts(out, rows ? "))" : ")");
}

/* Of a living task: an explicit NULL means the default. The history has it as first asked for. */
#define DUE "COALESCE(due_at, " SQL_BY_DELAY("") ")"

void filter_sql(struct text *out, const struct task_filter *filter, enum operator_table table, uint64_t shards) {
  add_states(out, wanted_states(filter) & table_states(table));
  add_route(out, filter->route);
  if (filter->route && table == TABLE_LIVING) {
    text_puts(out, " AND shard IN (");
    text_shard_set(out, shards);
    text_puts(out, ")");
  }
  add_same(out, "task_key", filter->key);
  add_same(out, "error_class", filter->error_class);
  if (filter->priority) {
    text_puts(out, " AND priority = ");
    text_u64(out, filter->priority);
  }
  bool living = table == TABLE_LIVING;
  add_time(out, living ? DUE " <" : "due_at <", filter->due_before_us);
  add_time(out, living ? DUE " >=" : "due_at >=", filter->due_after_us);
  add_time(out, "created_at <", filter->created_before_us);
  add_time(out, "created_at >=", filter->created_after_us);
  if (filter->failed && table == TABLE_LIVING)
    text_puts(out, " AND failures > 0");
  if (filter->id_count)
    add_ids(out, filter);
  if (filter->where) {
    text_puts(out, " AND (");
    text_puts(out, filter->where);
    text_puts(out, "\n)"); /* a comment at the end of the condition must not swallow the bracket */
  }
}

const char *filter_index(const struct task_filter *filter, enum operator_table table, struct task_filter *part) {
  bool some_states = filter->states && (filter->states & table_states(table)) != table_states(table);
  if (filter->id_count) /* they have indexes of their own */
    return NULL;
  *part = (struct task_filter){.states = filter->states, .route = filter->route};
  if (table == TABLE_LIVING)
    return filter->route || some_states ? "FORCE INDEX (ix_next)" : NULL;
  if (filter->route)
    return "FORCE INDEX (ix_route_finished)";
  return some_states ? "FORCE INDEX (ix_state_finished)" : NULL;
}
