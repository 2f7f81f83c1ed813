/* SPDX-License-Identifier: MIT */
#include "outbox/schema_misfit.h"

#include <stdio.h>
#include <string.h>

#include "outbox/db_error.h"
#include "outbox/db_stmt.h"
#include "query.h"

#define WHAT "looking for the rows that a rule refuses"

enum { IDS = 4, IDS_SHOWN = 96 };

/* A part of the statement, not terminated. */
struct part {
  const char *at;
  size_t len;
};

/* What stands between this bracket and the one that closes it, texts in quotes passed over. len is 0 without one. */
static struct part in_brackets(const char *open) {
  unsigned depth = 0;
  char quote = '\0';
  for (const char *at = open; *at; at++) {
    if (quote)
      quote = *at == quote ? '\0' : quote;
    else if (*at == '\'' || *at == '`')
      quote = *at;
    else if (*at == '(')
      depth++;
    else if (*at == ')' && --depth == 0)
      return (struct part){open + 1, (size_t)(at - open - 1)};
  }
  return (struct part){open, 0};
}

/* Both servers name the rule in quotes: CONSTRAINT `name` failed for .., Check constraint 'name' is violated. */
static bool is_named(const struct err *err, struct part name) {
  char quoted[80];
  snprintf(quoted, sizeof quoted, "`%.*s`", (int)name.len, name.at);
  if (strstr(err->text, quoted))
    return true;
  snprintf(quoted, sizeof quoted, "'%.*s'", (int)name.len, name.at);
  return strstr(err->text, quoted) != NULL;
}

/* The CHECK that err names. */
static bool find_rule(const char *migration, const struct err *err, struct part *name, struct part *condition) {
  static const char constraint[] = "CONSTRAINT `", check[] = "` CHECK (";
  for (const char *at = migration; (at = strstr(at, constraint)) != NULL;) {
    at += sizeof constraint - 1;
    *name = (struct part){at, strcspn(at, "`")};
    if (strncmp(at + name->len, check, sizeof check - 1) != 0 || !is_named(err, *name))
      continue; /* DROP CONSTRAINT, or another one */
    *condition = in_brackets(at + name->len + sizeof check - 2);
    return condition->len > 0;
  }
  return false;
}

/* The condition on one line, as it goes into a message that people copy. */
static void put_condition(struct text *out, struct part condition) {
  bool blank = false;
  for (size_t i = 0; i < condition.len; i++) {
    bool is_blank = condition.at[i] == ' ' || condition.at[i] == '\n';
    if (!is_blank || !blank)
      text_add(out, is_blank ? " " : condition.at + i, 1);
    blank = is_blank;
  }
}

static bool count_rows(struct db_conn *conn, const struct text *condition, uint64_t *count, char ids[IDS_SHOWN]) {
  struct text script = {0};
  struct db_result result;
  struct db_row row;
  struct err unknown = {0};
  text_statement(&script, query_schema_misfits, conn->config->table,
                 ARGS(RAW("condition", *condition), UNSIGNED("ids", IDS)));
  bool ok = db_script(conn, &script, WHAT, &result, 1, &unknown);
  text_free(&script);
  if (!ok)
    return false;
  ok = db_next(&result, &row, 2) && db_u64(&row, 0, UINT64_MAX, count) && db_copy(&row, 1, ids, IDS_SHOWN);
  db_results_free(&result, 1);
  return ok;
}

bool schema_misfit_explain(struct db_conn *conn, const char *migration, struct err *err) {
  struct part name, found;
  struct text condition = {0};
  char ids[IDS_SHOWN];
  uint64_t count = 0;
  if (!db_error_is_check(err->code) || !find_rule(migration, err, &name, &found))
    return false;
  put_condition(&condition, found);
  bool counted = !condition.failed && count_rows(conn, &condition, &count, ids);
  if (counted && count == 0)
    err_set(err, DB_E_VALUE,
            "a client goes on writing rows that the rule %.*s of table %s refuses (%s): stop it, and run `duebox "
            "migrate` again",
            (int)name.len, name.at, conn->config->table, condition.data);
  else if (counted)
    err_set(err, DB_E_VALUE,
            "table %s has %llu rows that its rule %.*s refuses, with id %s%s: correct them with UPDATE, or DELETE "
            "them, and run `duebox migrate` again. All of them: SELECT * FROM `%s` WHERE NOT (%s)",
            conn->config->table, (unsigned long long)count, (int)name.len, name.at, ids, count > IDS ? " .." : "",
            conn->config->table, condition.data);
  text_free(&condition);
  return counted;
}
