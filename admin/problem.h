/* SPDX-License-Identifier: MIT
 *
 * admin/problem.h - every error that the API answers with, as RFC 9457 problem+json.
 *
 * `type` is urn:duebox:problem:<code>; `code` repeats the last part for programs. Both are part of the contract: codes
 * are added, never renamed. `detail` is for people and may change.
 */
#ifndef ADMIN_PROBLEM_H
#define ADMIN_PROBLEM_H

#include "admin/http.h"
#include "core/base/err.h"

/* PROBLEM(symbol, status, code, title) */
#define PROBLEMS(PROBLEM)                                                                                              \
  PROBLEM(BAD_REQUEST, 400, "bad_request", "The request cannot be understood")                                         \
  PROBLEM(BAD_RECORD, 400, "bad_record", "The result record cannot be understood")                                     \
  PROBLEM(MISMATCH, 400, "mismatch", "The result record belongs to another attempt than its URL")                      \
  PROBLEM(UNAUTHORIZED, 401, "unauthorized", "A valid token is needed")                                                \
  PROBLEM(FORBIDDEN, 403, "forbidden", "Not allowed")                                                                  \
  PROBLEM(HOST, 403, "host", "Unknown host name")                                                                      \
  PROBLEM(ORIGIN, 403, "origin", "Request from another origin")                                                        \
  PROBLEM(READ_ONLY, 403, "read_only", "This listener is read-only")                                                   \
  PROBLEM(NOT_FOUND, 404, "not_found", "Nothing is here")                                                              \
  PROBLEM(METHOD, 405, "method_not_allowed", "Wrong method")                                                           \
  PROBLEM(AMBIGUOUS, 409, "ambiguous", "The id names two tasks")                                                       \
  PROBLEM(IN_FLIGHT, 409, "in_flight", "The task is on its way out")                                                   \
  PROBLEM(STATE, 409, "state", "The task's state does not allow it")                                                   \
  PROBLEM(STALE, 409, "stale", "The result is of an older attempt")                                                    \
  PROBLEM(LATE, 409, "late", "The task has ended already")                                                             \
  PROBLEM(UNSENT, 409, "unsent", "The attempt was never handed out")                                                   \
  PROBLEM(TOO_LARGE, 413, "too_large", "The body is too large")                                                        \
  PROBLEM(MEDIA_TYPE, 415, "media_type", "The body must be JSON")                                                      \
  PROBLEM(OUTBOX, 421, "outbox", "This daemon works on another outbox")                                                \
  PROBLEM(ELSEWHERE, 421, "elsewhere", "Another instance holds this task")                                             \
  PROBLEM(CONFIG, 422, "config", "The configuration was refused")                                                      \
  PROBLEM(HEADERS, 431, "headers_too_large", "The request headers are too large")                                      \
  PROBLEM(INTERNAL, 500, "internal", "duebox failed")                                                                  \
  PROBLEM(REFUSED, 500, "refused", "The database refuses what would be written")                                       \
  PROBLEM(RIGHTS, 500, "rights", "The daemon's database user lacks a right")                                           \
  PROBLEM(BUSY, 503, "busy", "Too many requests wait")                                                                 \
  PROBLEM(DATABASE, 503, "database", "The database cannot do it now")                                                  \
  PROBLEM(LOCKED, 503, "locked", "Another transaction holds the row")                                                  \
  PROBLEM(UNRECORDED, 503, "unrecorded", "It is not recorded yet whether the attempt was handed out")                  \
  PROBLEM(NOT_READY, 503, "not_ready", "Not ready")                                                                    \
  PROBLEM(STOPPING, 503, "stopping", "The daemon is stopping")

enum problem {
#define PROBLEM(symbol, status, code, title) PROBLEM_##symbol,
  PROBLEMS(PROBLEM)
#undef PROBLEM
};

/* Which one a failure of the database is: one that the same request may not meet again, a right that is missing, or a
 * statement that the server refuses from everybody. */
enum problem problem_of_database(const struct err *err);
/* Makes the response that problem. detail is text of any origin. */
void respond_problem(struct response *response, enum problem problem, const char *detail, ...) PRINTF(3, 4);
/* The same with the member `problems`, a list that the response takes over; NULL = without. */
void respond_problem_list(struct response *response, enum problem problem, json_t *list, const char *detail);

#endif
