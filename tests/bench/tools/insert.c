/* SPDX-License-Identifier: MIT
 *
 * tests/bench/tools/insert.c - an application that inserts tasks that are due at once, one transaction each, at moments
 * that are fixed beforehand.
 *
 *   insert SOCKET DATABASE ROUTE PRIORITY FIRST COUNT PER_SECOND SIZE
 *
 * The moment stands in the payload (book.h), so whatever makes the INSERT late counts as lateness of its task. Prints a
 * histogram of the time from the moment to the answer to COMMIT, the application's own share, and when each was
 * answered.
 */
#include <mysql.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "book.h"

enum { SIZE_MAX_BYTES = 65536, STATEMENT = SIZE_MAX_BYTES + 512, START_US = 100000, SECOND_US = 1000000 };

struct load {
  MYSQL *mysql;
  const char *route;
  unsigned long priority, first, count, per_second, size;
  int64_t *committed_us; /* when each COMMIT was answered */
  struct histogram took;
  char statement[STATEMENT];
};

static _Noreturn void fail(const char *why) {
  fprintf(stderr, "insert: %s\n", why);
  exit(1);
}

static void wait_until(int64_t moment_us) {
  const struct timespec until = {.tv_sec = moment_us / SECOND_US, .tv_nsec = moment_us % SECOND_US * 1000};
  while (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL) != 0)
    ;
}

static void insert_one(struct load *load, unsigned long number, int64_t moment_us) {
  char *statement = load->statement;
  int len = snprintf(statement, STATEMENT,
                     "INSERT INTO outbox (route, priority, task_key, payload) VALUES ('%s', %lu, 'key-%lu', '",
                     load->route, load->priority, number);
  int begin = len;
  len += snprintf(statement + len, STATEMENT - (size_t)len, "%lu %lld ", number, (long long)moment_us);
  while ((unsigned long)(len - begin) < load->size)
    statement[len++] = 'x';
  memcpy(statement + len, "')", 2);
  wait_until(moment_us);
  if (mysql_real_query(load->mysql, statement, (unsigned long)len + 2) != 0)
    fail(mysql_error(load->mysql));
  load->committed_us[number - load->first] = book_now_us();
  histogram_add(&load->took, load->committed_us[number - load->first] - moment_us);
}

int main(int argc, char **argv) {
  static struct load load; /* large */
  if (argc != 9)
    fail("usage: insert SOCKET DATABASE ROUTE PRIORITY FIRST COUNT PER_SECOND SIZE");
  load.route = argv[3];
  unsigned long *const numbers[] = {&load.priority, &load.first, &load.count, &load.per_second, &load.size};
  for (int i = 0; i < 5; i++)
    *numbers[i] = strtoul(argv[4 + i], NULL, 10);
  if (load.count < 1 || load.per_second < 1 || load.size > SIZE_MAX_BYTES)
    fail("COUNT and PER_SECOND are at least 1, SIZE at most 65536");
  load.mysql = mysql_init(NULL);
  load.committed_us = calloc(load.count, sizeof *load.committed_us);
  if (!load.mysql || !load.committed_us || !mysql_real_connect(load.mysql, NULL, "root", NULL, argv[2], 0, argv[1], 0))
    fail(load.mysql ? mysql_error(load.mysql) : "out of memory");
  int64_t start_us = book_now_us() + START_US;
  for (unsigned long i = 0; i < load.count; i++)
    insert_one(&load, load.first + i, start_us + (int64_t)(i * SECOND_US / load.per_second));
  printf("{\"took\": ");
  histogram_print(&load.took, stdout);
  for (unsigned long i = 0; i < load.count; i++)
    printf("%s%lld", i ? ", " : ", \"committed_us\": [", (long long)load.committed_us[i]);
  printf("]}\n");
  mysql_close(load.mysql);
  free(load.committed_us);
  return 0;
}
