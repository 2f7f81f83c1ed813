/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/fuzz_record.c - result records of consumers. What is accepted keeps the promises of core/record.h.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct result_record *r) {
  size_t id = strlen(r->message_id);
  if (id < 1 || id > RECORD_ID_MAX || r->attempt < 1 || (unsigned)r->status > RESULT_PROGRESS)
    abort();
  if (r->retry_in_ms < -1 || r->extend_ms < -1 || r->progress > 1 || (r->progress < 0 && r->progress > -1))
    abort();
  if (r->checkpoint && strlen(r->checkpoint) != r->checkpoint_len)
    abort();
  if (r->result_json && strlen(r->result_json) != r->result_json_len)
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct result_record record;
  struct err err = {0};
  if (result_record_parse((const char *)data, size, &record, &err)) {
    check(&record);
    result_record_free(&record);
  } else if (!err.text[0]) {
    abort();
  }
  if (result_record_parse_answer((const char *)data, size, "m-1", 2, &record, &err)) {
    check(&record);
    if (strcmp(record.message_id, "m-1") != 0 || record.attempt != 2)
      abort();
    result_record_free(&record);
  }
  return 0;
}
