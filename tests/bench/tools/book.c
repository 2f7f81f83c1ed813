/* SPDX-License-Identifier: MIT */
#include "book.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DUE_TEXT = 26, SECOND_US = 1000000 };

static void *zeroed(uint64_t count, size_t size) {
  void *made = calloc(count + 1, size);
  if (!made) {
    fprintf(stderr, "book: no memory for %" PRIu64 " tasks\n", count);
    exit(1);
  }
  return made;
}

void book_open(struct book *book, uint64_t first, uint64_t count) {
  *book = (struct book){.first = first, .count = count, .seen = zeroed(count / 64, sizeof *book->seen)};
}

void book_keep_times(struct book *book) { book->times = zeroed(book->count, sizeof *book->times); }

void book_close(struct book *book) {
  free(book->seen);
  free(book->times);
}

int64_t book_now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * SECOND_US + now.tv_nsec / 1000;
}

static int digits(const char *text, int count) {
  int value = 0;
  for (int i = 0; i < count; i++)
    value = value * 10 + (text[i] - '0');
  return value;
}

int64_t book_parse_due(const char *text, size_t len) {
  static const char form[] = "0000-00-00 00:00:00.000000";
  if (len < DUE_TEXT)
    return 0;
  for (size_t i = 0; i < DUE_TEXT; i++) {
    bool fits = form[i] == '0' ? text[i] >= '0' && text[i] <= '9' : text[i] == form[i] || (i == 10 && text[i] == 'T');
    if (!fits)
      return 0;
  }
  struct tm tm = {.tm_year = digits(text, 4) - 1900,
                  .tm_mon = digits(text + 5, 2) - 1,
                  .tm_mday = digits(text + 8, 2),
                  .tm_hour = digits(text + 11, 2),
                  .tm_min = digits(text + 14, 2),
                  .tm_sec = digits(text + 17, 2)};
  return (int64_t)timegm(&tm) * SECOND_US + digits(text + 20, 6);
}

/* A decimal number and the space after it; false when there is none. */
static bool take_number(const char **at, const char *end, uint64_t *value) {
  const char *start = *at;
  for (*value = 0; *at < end && **at >= '0' && **at <= '9'; (*at)++)
    *value = *value * 10 + (uint64_t)(**at - '0');
  if (*at == start || *at == end || **at != ' ')
    return false;
  (*at)++;
  return true;
}

void book_arrive(struct book *book, const char *payload, size_t len, int64_t due_us, int64_t now_us) {
  const char *at = payload, *end = payload + len;
  uint64_t number, moment;
  if (!take_number(&at, end, &number) || !take_number(&at, end, &moment) || number < book->first ||
      number - book->first >= book->count) {
    book->strangers++;
    return;
  }
  uint64_t place = number - book->first, bit = UINT64_C(1) << place % 64;
  bool fresh = !(book->seen[place / 64] & bit);
  book->distinct += fresh;
  if (fresh && book->times)
    book->times[place] = now_us;
  book->seen[place / 64] |= bit;
  book->early += due_us > now_us;
  if (book->arrivals++ == 0)
    book->began_us = now_us;
  book->ended_us = now_us;
  histogram_add(&book->lateness, now_us - (moment ? (int64_t)moment : due_us));
}

void book_print(const struct book *book, FILE *out) {
  fprintf(out,
          "{\"expected\": %" PRIu64 ", \"arrivals\": %" PRIu64 ", \"distinct\": %" PRIu64 ", \"strangers\": %" PRIu64
          ", \"early\": %" PRIu64 ", \"began_us\": %" PRId64 ", \"ended_us\": %" PRId64 ", \"lateness\": ",
          book->count, book->arrivals, book->distinct, book->strangers, book->early, book->began_us, book->ended_us);
  histogram_print(&book->lateness, out);
  for (uint64_t i = 0; book->times && i < book->count; i++)
    fprintf(out, "%s%" PRId64, i ? ", " : ", \"times_us\": [", book->times[i]);
  fputs(book->times ? "]}\n" : "}\n", out);
}
