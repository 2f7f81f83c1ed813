/* SPDX-License-Identifier: MIT */
#include "outbox/halves.h"

enum {
  STEPS_MAX = 64,  /* four rows of a batch of 4096 and more, each some milliseconds on MariaDB */
  STEPS_ALONE = 4, /* that a row by itself counts for: it is tried in so many forms */
  REFUSED_MAX = 8, /* when so many are refused and none is done, the others will be too */
};

struct search {
  size_t count;
  unsigned steps, refused;
  bool any_done;
};

static bool all_refused(const struct search *search) { return search->refused >= REFUSED_MAX && !search->any_done; }

static enum store_status alone(const struct halves *halves, size_t at, struct search *search, struct err *err) {
  bool done = false;
  if (search->steps < STEPS_ALONE || all_refused(search)) {
    halves->mark_left(halves->call, at, 1, all_refused(search) ? LEFT_REFUSED : LEFT_UNTRIED);
    return STORE_OK;
  }
  search->steps -= STEPS_ALONE;
  enum store_status status = halves->alone(halves->call, at, search->count - at - 1, &done, err);
  search->any_done = search->any_done || done;
  search->refused += status == STORE_OK && !done;
  return status;
}

static enum store_status run(const struct halves *halves, size_t first, size_t count, struct search *search,
                             struct err *err);

/* All of them have met a lock. */
static enum store_status first_of_all(const struct halves *halves, size_t first, size_t count, struct search *search,
                                      struct err *err) {
  enum stopped stopped = STOPPED_NOT;
  enum store_status status = halves->at_once(halves->call, first, 1, &stopped, err);
  search->any_done = search->any_done || (status == STORE_OK && stopped == STOPPED_NOT);
  if (stopped == STOPPED_REFUSED)
    status = alone(halves, first, search, err);
  if (status != STORE_OK)
    return status;
  if (stopped == STOPPED_LOCKED || search->steps == 0) {
    halves->mark_left(halves->call, first + 1, count - 1, LEFT_LOCKED);
    return STORE_OK;
  }
  search->steps--;
  return run(halves, first + 1, count - 1, search, err);
}

static enum store_status run(const struct halves *halves, size_t first, size_t count, struct search *search,
                             struct err *err) {
  enum stopped stopped = STOPPED_NOT;
  enum store_status status = halves->at_once(halves->call, first, count, &stopped, err);
  search->any_done = search->any_done || (status == STORE_OK && stopped == STOPPED_NOT);
  if (stopped == STOPPED_NOT || (stopped == STOPPED_LOCKED && count == 1))
    return status;
  if (stopped == STOPPED_LOCKED && halves->alike)
    return first_of_all(halves, first, count, search, err);
  if (stopped == STOPPED_REFUSED && count == 1)
    return alone(halves, first, search, err);
  if (search->steps == 0 || all_refused(search)) {
    halves->mark_left(halves->call, first, count,
                      all_refused(search)          ? LEFT_REFUSED
                      : stopped == STOPPED_REFUSED ? LEFT_UNTRIED
                                                   : LEFT_LOCKED);
    return STORE_OK;
  }
  search->steps--;
  size_t half = count / 2;
  status = run(halves, first, half, search, err);
  /* The first half is done: the second says what it met when it is given again. */
  if (status == STORE_OK && run(halves, first + half, count - half, search, err) != STORE_OK)
    halves->mark_left(halves->call, first + half, count - half, LEFT_LOCKED);
  return status;
}

enum store_status halves_run(const struct halves *halves, size_t count, struct err *err) {
  return run(halves, 0, count, &(struct search){.count = count, .steps = STEPS_MAX}, err);
}
