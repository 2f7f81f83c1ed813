/* SPDX-License-Identifier: MIT
 *
 * tests/bench/tools/book.h - the ledger of a measurement: which tasks arrived, how often, how late.
 *
 * Each task of tests/bench has a payload that begins with "<number> <moment> ": its number among those of one load, and
 * the moment (microseconds since 1970) against which its lateness is measured, 0 for its due time. Lateness is thus
 * measured from the moment that was intended before the load began, however late the load itself was: no coordinated
 * omission. One thread.
 */
#ifndef TESTS_BENCH_BOOK_H
#define TESTS_BENCH_BOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "histogram.h"

struct book {
  uint64_t first, count;      /* the numbers that are expected: first to first + count - 1 */
  uint64_t arrivals;          /* copies with an expected number */
  uint64_t distinct;          /* expected numbers that were there */
  uint64_t strangers;         /* copies with another number, or none */
  uint64_t early;             /* copies before their due time */
  int64_t began_us, ended_us; /* first and last arrival, since 1970 */
  uint64_t *seen;             /* a bit for each expected number */
  int64_t *times;             /* when each first arrived, since 1970; NULL unless book_keep_times() was called */
  struct histogram lateness;
};

/* Ends the process with a text when memory is out; @param count may be 0: then everything is a stranger. */
void book_open(struct book *book, uint64_t first, uint64_t count);
/* Keeps the arrival of each expected task for book_print(). */
void book_keep_times(struct book *book);
void book_close(struct book *book);

/* One copy has arrived.
 * @param due_us  the due time that came with it, microseconds since 1970; 0 when none came, which is not early
 * @param now_us  when it arrived, microseconds since 1970 */
void book_arrive(struct book *book, const char *payload, size_t len, int64_t due_us, int64_t now_us);

/* Microseconds since 1970 of "2026-01-02T03:04:05.123456Z" or, with a space for the T, of an SQL text; 0 when it is
 * neither. */
int64_t book_parse_due(const char *text, size_t len);

int64_t book_now_us(void);

/* Prints one JSON object and a line feed. */
void book_print(const struct book *book, FILE *out);

#endif
