/* SPDX-License-Identifier: MIT
 *
 * core/record.h - what a consumer answers, from JSON text to a struct. Pure.
 *
 * The format is a public contract (docs: "What a consumer answers"). Known members are strictly typed and may come
 * once; null stands for an absent optional one; unknown members are ignored, so that consumers may say more.
 */
#ifndef CORE_RECORD_H
#define CORE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/attr.h"
#include "core/base/err.h"

enum { RECORD_ID_MAX = 64 };

enum result_status { RESULT_DONE, RESULT_RETRY, RESULT_FAIL, RESULT_PROGRESS };

/* Texts are NUL-terminated, hold no NUL inside and are valid UTF-8; NULL where absent. */
struct result_record {
  char message_id[RECORD_ID_MAX + 1]; /* printable ASCII */
  uint32_t attempt;                   /* >= 1 */
  enum result_status status;
  int64_t retry_in_ms; /* -1 = no wish */
  int64_t extend_ms;   /* -1 = no wish */
  double progress;     /* 0..1, -1 = none */
  const char *error_class, *error_message, *error_stack;
  const char *checkpoint;
  size_t checkpoint_len;
  const char *result_json; /* the text of `result` exactly as it was written, so large numbers lose nothing */
  size_t result_json_len;
  char *memory; /* one allocation for all texts; result_record_free() */
};

/* Parses a record that says for itself which task it is of. On failure *out needs no free. */
MUSTCHECK bool result_record_parse(const char *text, size_t len, struct result_record *out, struct err *err);

/* Parses the record in an answer to a call: id and attempt may be absent, and must be these if they are there. */
MUSTCHECK bool result_record_parse_answer(const char *text, size_t len, const char *message_id, uint32_t attempt,
                                          struct result_record *out, struct err *err);

/* Frees what the record holds; a record of zeros, or one freed before, is fine. */
void result_record_free(struct result_record *record);

/* "done", "retry", "fail", "progress" */
const char *result_status_text(enum result_status status);

#endif
