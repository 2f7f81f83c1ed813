/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/fuzz_record.c - result records of consumers. What is accepted keeps the promises of core/record.h.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok) {
  if (!ok)
    abort();
}

static void check(const struct result_record *r, const struct record_road *road) {
  size_t id = strlen(r->message_id);
  require(id >= 1 && id <= RECORD_ID_MAX && (unsigned)r->status <= RESULT_PROGRESS);
  require(r->retry_in_ms >= -1 && r->extend_ms >= -1 && r->progress <= 1 && (r->progress >= 0 || r->progress <= -1));
  require(!r->checkpoint || strlen(r->checkpoint) == r->checkpoint_len);
  require(!r->result_json || strlen(r->result_json) == r->result_json_len);
  require(!r->flaw || (r->error_class && r->error_message && r->flaw[0]));
  require(!road->checkpoint_max || r->checkpoint_len <= road->checkpoint_max);
  if (road->attempt)
    require(strcmp(r->message_id, road->message_id) == 0 && r->attempt == road->attempt);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const struct record_road roads[] = {{0},
                                             {.message_id = "m-1", .checkpoint_max = 4},
                                             {.message_id = "m-1", .attempt = 2},
                                             {.message_id = "m-1", .attempt = 2, .binding = true}};
  bool taken[ARRAY_LEN(roads)], of_another = false;
  for (size_t i = 0; i < ARRAY_LEN(roads); i++) {
    struct result_record record;
    struct err err = {0};
    taken[i] = result_record_parse((const char *)data, size, &roads[i], &record, &err);
    if (taken[i])
      check(&record, &roads[i]);
    else
      require(err.text[0] && !record.memory);
    if (taken[i] && i == 0)
      of_another = strcmp(record.message_id, "m-1") != 0;
    result_record_free(&record);
  }
  /* A message id that is known by other means is never in the way, unless a guess from broken text says another one.
   * What binds may be; and a response may hold the status of something else, which is a status only where a record must
   * be. */
  require(!taken[0] || taken[1] || of_another);
  return 0;
}
