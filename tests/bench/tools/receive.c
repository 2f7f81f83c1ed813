/* SPDX-License-Identifier: MIT
 *
 * tests/bench/tools/receive.c - the consumer of the measurements, fast and quiet enough not to be what is measured.
 *
 *   receive kafka BROKERS TOPIC [--first N] [--count N] [--from-beginning] [--answer TOPIC] [--times]
 *   receive amqp  URL QUEUE     [--first N] [--count N]
 *   receive http  PORT          [--first N] [--count N]
 *
 * It says "ready", then "complete" when every expected task has arrived, and prints its book (book.h) as JSON when
 * standard input ends. With --answer, each Kafka record is answered with a result record that says "done". An HTTP
 * request is answered with 200. With --times, the book also says when each task arrived.
 */
#include "receive.h"

#include <getopt.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Noreturn void receive_fail(const char *what, const char *why) {
  fprintf(stderr, "receive: %s: %s\n", what, why);
  exit(1);
}

void receive_ready(void) {
  printf("ready\n");
  fflush(stdout);
}

void receive_one(struct receiver *receiver, const char *payload, size_t len, int64_t due_us) {
  struct book *book = &receiver->book;
  uint64_t before = book->distinct;
  receiver->last_us = book_now_us();
  book_arrive(book, payload, len, due_us, receiver->last_us);
  if (book->distinct == book->count && before < book->count) {
    printf("complete\n");
    fflush(stdout);
  }
}

bool receive_goes_on(const struct receiver *receiver) {
  return !atomic_load(&receiver->over) || book_now_us() - receiver->last_us < RECEIVE_IDLE_MS * 1000;
}

static void *watch_input(void *arg) {
  struct receiver *receiver = arg;
  char ignored[64];
  while (read(STDIN_FILENO, ignored, sizeof ignored) > 0)
    ;
  atomic_store(&receiver->over, true);
  return NULL;
}

static void parse(struct receiver *receiver, int argc, char **argv, uint64_t *first, uint64_t *count) {
  static const struct option names[] = {{"first", 1, NULL, 'f'},          {"count", 1, NULL, 'n'},
                                        {"from-beginning", 0, NULL, 'b'}, {"answer", 1, NULL, 'a'},
                                        {"times", 0, NULL, 't'},          {NULL, 0, NULL, 0}};
  for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
    if (c == 'f')
      *first = strtoull(optarg, NULL, 10);
    else if (c == 'n')
      *count = strtoull(optarg, NULL, 10);
    else if (c == 'b')
      receiver->from_beginning = true;
    else if (c == 'a')
      receiver->answer = optarg;
    else if (c == 't')
      receiver->times = true;
    else
      receive_fail("usage", "see the head of tests/bench/tools/receive.c");
  }
  if (argc - optind < 2)
    receive_fail("usage", "see the head of tests/bench/tools/receive.c");
  receiver->where = argv[optind + 1];
  receiver->what = argv[optind + 2]; /* NULL at the end of argv */
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(struct receiver *);
    bool needs_what;
  } ways[] = {{"kafka", receive_kafka, true}, {"amqp", receive_amqp, true}, {"http", receive_http, false}};
  struct receiver receiver = {.over = false};
  uint64_t first = 1, count = 0;
  pthread_t watch;
  parse(&receiver, argc, argv, &first, &count);
  book_open(&receiver.book, first, count);
  if (receiver.times)
    book_keep_times(&receiver.book);
  if (pthread_create(&watch, NULL, watch_input, &receiver) != 0)
    receive_fail("start", "no thread");
  for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
    if (strcmp(ways[i].name, argv[optind]) == 0 && (receiver.what || !ways[i].needs_what)) {
      ways[i].run(&receiver);
      pthread_join(watch, NULL);
      book_print(&receiver.book, stdout);
      book_close(&receiver.book);
      return 0;
    }
  }
  receive_fail("usage", "see the head of tests/bench/tools/receive.c");
}
