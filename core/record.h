/* SPDX-License-Identifier: MIT
 *
 * core/record.h - what a consumer answers, from text to a struct. Pure.
 *
 * The format is a public contract (docs/CONSUMERS.md), and this is its one reader: for records
 * from a broker, bodies of HTTP responses, callbacks, the API and the command line. What counts is the status. Where it
 * is intelligible the record is taken, whatever else is wrong with it: a member that cannot be used is left out, and
 * `flaw` says why. Unknown members are ignored, so that consumers may say more.
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

/* What is known of an answer's task by the way it came. All zeros: nothing, the record must say it. The answer to a
 * call is about that call, so what it says of id and attempt is not read, unless that is binding. */
struct record_road {
  const char *message_id; /* of the call, the callback URL or the correlation id; NULL = not known */
  uint32_t attempt;       /* of the call or the callback URL; 0 = not known */
  uint64_t row;           /* of the callback URL, which proves that the attempt left; 0 = not known */
  uint64_t version;       /* of the row, as it was sent (task_version()); 0 = not known */
  uint32_t lane;          /* callback_lane() of its route, of the callback URL; 0 = not known */
  const char *entry;      /* of results, that it was read from; NULL = it came by a way that proves more */
  bool binding;           /* the record must not name another task or attempt (callback URL) */
  bool current_only;      /* it counts only while that attempt is the current one (callback URL) */
  size_t checkpoint_max;  /* bytes of a checkpoint, see record_limit_checkpoint(); 0 = any */
  size_t full_len;        /* bytes of a record of which only the beginning was kept; 0 = it is whole */
};

/* Texts are NUL-terminated, hold no NUL inside and are valid UTF-8; NULL where absent. */
struct result_record {
  char message_id[RECORD_ID_MAX + 1]; /* printable ASCII */
  uint32_t attempt;                   /* 0 = not said: the current one */
  enum result_status status;
  uint64_t row;     /* the task's, and no other's; 0 = not known */
  uint64_t version; /* of the row, as it was sent; 0 = not known */
  uint32_t lane;    /* callback_lane() of the route that it was sent by; 0 = not known */
  bool current_only;
  bool cannot_wait;  /* until it is recorded what was sent: there is no room; set by the inbox */
  bool too_soon;     /* its attempt was not due when it was met; set by the rules, and kept from one try to the next */
  bool is_awaited;   /* somebody waits for the verdict; set by the inbox, and by who settles it himself */
  const char *entry; /* of the road */
  int64_t retry_in_ms; /* -1 = no wish */
  int64_t extend_ms;   /* -1 = no wish */
  double progress;     /* 0..1, -1 = none */
  const char *error_class, *error_message, *error_stack;
  const char *checkpoint;
  size_t checkpoint_len;
  const char *result_json; /* the text of `result` exactly as it was written, so large numbers lose nothing */
  size_t result_json_len;
  const char *flaw; /* what else is wrong with it; NULL = nothing. error_class is RECORD_BROKEN or RECORD_CHECKPOINT */
  char *memory;     /* one allocation for all texts; result_record_free() */
};

#define RECORD_BROKEN "answer.broken"
#define RECORD_CHECKPOINT "answer.checkpoint_too_large"

/* err->code: there is a status of ours, and another one as well, or it may be that of something within the record. */
enum { RECORD_DOUBTFUL = 2 };

/* Whether it may be the id of a task: 1 to RECORD_ID_MAX characters of printable ASCII without spaces. */
bool record_is_id(const char *id, size_t len);

/* Reads a record. False: no status can be made out, or not of which task it is; *out needs no free then. A success
 * without flaw is silent about err. */
MUSTCHECK bool result_record_parse(const char *text, size_t len, const struct record_road *road,
                                   struct result_record *out, struct err *err);

/* Leaves a checkpoint out that has more bytes than that, which is a flaw of the record: each attempt carries it. */
void record_limit_checkpoint(struct result_record *record, size_t most);

/* Frees what the record holds; a record of zeros, or one freed before, is fine. */
void result_record_free(struct result_record *record);

/* "done", "retry", "fail", "progress" */
const char *result_status_text(enum result_status status);
/* Why a result of that status is stale. current_only: it came to a callback URL. */
const char *result_stale_text(enum result_status status, bool current_only);
/* Why it is of an attempt that has no result. too_soon: as in struct result_record. */
static inline const char *result_unsent_text(bool too_soon) {
  return too_soon
             ? "this attempt is not due yet, so no result of it counts: it was not handed out, or the task was put "
               "off since, and is sent again"
             : "this attempt was never handed out";
}

#endif
