/* SPDX-License-Identifier: MIT
 *
 * duebox/outcome.h - what became of one attempt.
 *
 * A plugin reports exactly one outcome for each task it accepted. It says what happened and how far the trouble
 * reaches; whether and when there is another attempt is the host's decision alone.
 */
#ifndef DUEBOX_OUTCOME_H
#define DUEBOX_OUTCOME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum duebox_outcome_class {
  DUEBOX_DELIVERED = 1, /* the broker or endpoint confirmed it: ack, delivery report, 2xx */
  DUEBOX_REJECTED,      /* this task can never succeed here (too large, malformed): no retry */
  DUEBOX_RETRY,         /* it failed now and may succeed later: counts as a failure */
  DUEBOX_UNAVAILABLE,   /* the destination is down and nothing was sent: no attempt is burnt */
  DUEBOX_UNKNOWN,       /* possibly sent, no confirmation came: counts as a failure unless it is `blameless` */
  DUEBOX_GONE,          /* the destination says it is closed for good (HTTP 410): the route, or its target, is paused */
};

/* How far the trouble of UNAVAILABLE reaches, and that of GONE and RETRY with SCOPE_TARGET; ignored otherwise. */
enum duebox_scope {
  DUEBOX_SCOPE_ROUTE = 0, /* this route only, e.g. a refused connection to its host, a right that is missing */
  DUEBOX_SCOPE_INSTANCE,  /* everything behind this plugin instance, e.g. the broker is down */
  DUEBOX_SCOPE_TARGET,    /* since 1.1: the topic, key or URL of this task only (DUEBOX_OPT_TARGET); where that holds no
                             placeholder, the route. RETRY, and UNKNOWN that is `blameless`: the destination's failure
                             rather than the task's, so that retry_after_ms holds back other tasks too, and many in a
                             row suspend it */
};

/* What the consumer said, where the protocol carries an answer (HTTP response, in-process handler). */
enum duebox_answer {
  DUEBOX_ANSWER_NONE = 0, /* the protocol has no answer: Kafka, AMQP */
  DUEBOX_ANSWER_DONE,     /* the consumer has done the work: 2xx without a record */
  DUEBOX_ANSWER_LATER,    /* the consumer took it and will answer later: 202, 409, 425. Only where a later answer has a
                           * way: it was told a place (reply_to), or duebox_task_result_awaited() */
  DUEBOX_ANSWER_RECORD,   /* `record` holds a result record (docs/CONSUMERS.md) */
};

struct duebox_outcome {
  size_t struct_size; /* sizeof(struct duebox_outcome) as the plugin was compiled */
  enum duebox_outcome_class cls;
  enum duebox_scope scope;
  enum duebox_answer answer;
  int64_t retry_after_ms;  /* the destination's own wish, -1 when it has none; at most the route's give_up counts, or 30
                            * days without one */
  const char *error_class; /* short stable word such as "kafka.msg_size_too_large", or NULL; at most 63 bytes kept.
                            * With DELIVERED: something is wrong with the answer, which changes nothing */
  const char *message;     /* text for people, or NULL; at most 4095 bytes kept */
  const char *record;      /* what the consumer wrote, or NULL; copied by the host before complete() returns.
                            * ANSWER_RECORD: a result record; where no status can be made out in it, or it is empty,
                            * the attempt has failed, with `message` as its text. ANSWER_DONE, ANSWER_LATER: the host
                            * reads it, and where it is a result record that counts instead; any other text means
                            * nothing. A record that says progress is done where no later answer has a way */
  size_t record_len;
  /* Since 1.3 */
  bool blameless;  /* UNKNOWN: the task had no part in it, as when a connection broke over another one: the attempt
                    * counts, for a copy may have arrived, and a failure does not */
  uint32_t unused; /* 0. An older plugin has padding here, which its struct_size covers */
  /* Since 1.10 */
  bool recalled; /* UNAVAILABLE: only because the host has taken it back (recall), and no byte of it has left: it says
                  * nothing of the destination, and the task may be handed over again at once */
};

/* ms: retry_after_ms, which the list cannot set once more: compilers warn of what is initialised twice. */
#define DUEBOX_OUTCOME_AFTER(ms, ...)                                                                                  \
  ((struct duebox_outcome){.struct_size = sizeof(struct duebox_outcome), .retry_after_ms = (ms), __VA_ARGS__})

#define DUEBOX_OUTCOME(...) DUEBOX_OUTCOME_AFTER(-1, __VA_ARGS__)

#endif
