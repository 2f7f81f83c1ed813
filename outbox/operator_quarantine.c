/* SPDX-License-Identifier: MIT
 *
 * outbox/operator_quarantine.c - quarantined result records for people: list, show, forget.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/utf8.h"
#include "outbox/db_error.h"
#include "outbox/operator_impl.h"

enum { COLUMNS = 16 };

struct whole {
  row_fn *row;
  void *ctx;
};

/* A body that is shown in part ends with a whole character: else a text would be taken for bytes that are none. */
static bool end_with_a_character(void *ctx, const struct field *fields, size_t count) {
  const struct whole *whole = ctx;
  struct field copy[COLUMNS];
  struct field *body = NULL;
  int64_t length = 0;
  for (size_t i = 0; i < count && i < COLUMNS; i++) {
    copy[i] = fields[i];
    if (strcmp(fields[i].name, "body") == 0)
      body = &copy[i];
    else if (strcmp(fields[i].name, "length") == 0)
      length = fields[i].number;
  }
  if (body && !body->null && length > (int64_t)body->text.len)
    body->text.len = utf8_whole(body->text.data, body->text.len);
  return whole->row(whole->ctx, copy, count < COLUMNS ? count : COLUMNS);
}

enum store_status op_quarantine(void *self, uint64_t id, uint64_t limit, uint64_t body_cap, row_fn *row, void *ctx,
                                struct err *err) {
  static const char what[] = "listing quarantined results";
  struct db_result result;
  bool ok = op_query(self, opsql_quarantine,
                     ARGS(UNSIGNED("id", id), UNSIGNED("limit", limit ? limit : INT64_MAX), UNSIGNED("cap", body_cap)),
                     what, &result, err) &&
            op_rows(&result, end_with_a_character, &(struct whole){row, ctx}, what, err);
  return ok ? STORE_OK : op_status(err);
}

struct forget {
  uint64_t id;
  int64_t before_us;
  const char *actor, *reason;
  uint64_t forgotten;
};

static bool forget_body(struct outbox_operator *op, void *ctx, struct err *err) {
  static const char what[] = "forgetting quarantined results";
  struct forget *forget = ctx;
  char filter[48];
  uint64_t audit_id;
  if (!op_change(op, opsql_quarantine_forget, ARGS(UNSIGNED("id", forget->id), TIME("before", forget->before_us)), what,
                 &forget->forgotten, err))
    return false;
  if (forget->id)
    snprintf(filter, sizeof filter, "quarantine %" PRIu64, forget->id);
  else
    snprintf(filter, sizeof filter, "quarantine, by age");
  return forget->forgotten == 0 ||
         op_audit(op, "purge", forget->actor, forget->reason, filter, forget->forgotten, NULL, &audit_id, err);
}

enum store_status op_quarantine_forget(void *self, uint64_t id, int64_t before_us, const char *actor,
                                       const char *reason, uint64_t *forgotten, struct err *err) {
  struct forget forget = {.id = id, .before_us = before_us, .actor = actor, .reason = reason};
  enum store_status status = op_transaction(self, forget_body, &forget, err);
  *forgotten = status == STORE_OK ? forget.forgotten : 0;
  return status;
}
