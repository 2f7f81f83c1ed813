/* SPDX-License-Identifier: MIT
 *
 * tests/bench/tools/pulse.c - how late this machine lets anybody be: the yardstick for lateness in tests/bench/run.
 *
 *   pulse SOCKET DATABASE SECONDS
 *
 * A hundred times a second it sleeps until a moment that it knew beforehand, and then reads a row by its key, the least
 * that a scheduler of rows in a database must do before it hands one over. It prints how long after the moment it woke,
 * and how long after it the answer was there. What is late here is late by the machine's load, not by duebox.
 */
#include <mysql.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PER_SECOND = 100, SECONDS_MAX = 3600, SECOND_US = 1000000 };

static int64_t now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * SECOND_US + now.tv_nsec / 1000;
}

static void sleep_until(int64_t moment_us) {
  const struct timespec until = {.tv_sec = moment_us / SECOND_US, .tv_nsec = moment_us % SECOND_US * 1000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
    ;
}

static _Noreturn void die(const char *why) {
  fprintf(stderr, "pulse: %s\n", why);
  exit(1);
}

static void read_row(MYSQL *mysql) {
  static const char statement[] = "SELECT payload FROM outbox WHERE id = 0";
  if (mysql_real_query(mysql, statement, sizeof statement - 1) != 0)
    die(mysql_error(mysql));
  MYSQL_RES *result = mysql_store_result(mysql);
  if (!result)
    die(mysql_error(mysql));
  mysql_free_result(result);
}

static int by_number(const void *a, const void *b) {
  const int64_t *x = a, *y = b;
  return (*x > *y) - (*x < *y);
}

static void print_ranks(const char *name, int64_t *values, size_t count, const char *end) {
  qsort(values, count, sizeof *values, by_number);
  printf("\"%s_p50_ms\": %.2f, \"%s_p99_ms\": %.2f, \"%s_max_ms\": %.2f%s", name, (double)values[count / 2] / 1000,
         name, (double)values[count * 99 / 100] / 1000, name, (double)values[count - 1] / 1000, end);
}

int main(int argc, char **argv) {
  long seconds = argc == 4 ? strtol(argv[3], NULL, 10) : 0;
  if (seconds < 1 || seconds > SECONDS_MAX)
    die("usage: pulse SOCKET DATABASE SECONDS");
  size_t count = (size_t)seconds * PER_SECOND;
  int64_t *woken = calloc(count, sizeof *woken), *answered = calloc(count, sizeof *answered);
  MYSQL *mysql = mysql_init(NULL);
  if (!woken || !answered || !mysql)
    die("out of memory");
  if (!mysql_real_connect(mysql, NULL, "root", NULL, argv[2], 0, argv[1], 0))
    die(mysql_error(mysql));
  int64_t start_us = now_us();
  size_t slept = 0;
  for (size_t i = 0; i < count; i++) {
    int64_t moment_us = start_us + (int64_t)(i + 1) * SECOND_US / PER_SECOND;
    if (now_us() < moment_us) { /* else a stall has eaten it: no sleep to judge, and read at once */
      sleep_until(moment_us);
      woken[slept++] = now_us() - moment_us;
    }
    read_row(mysql);
    answered[i] = now_us() - moment_us;
  }
  if (slept == 0)
    die("the machine stood still");
  printf("{");
  print_ranks("woken", woken, slept, ", ");
  print_ranks("answered", answered, count, "}\n");
  mysql_close(mysql);
  free(woken);
  free(answered);
  return 0;
}
