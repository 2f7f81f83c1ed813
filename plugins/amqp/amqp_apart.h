/* SPDX-License-Identifier: MIT
 *
 * amqp_apart.h - a second connection of a sink, for messages that may end the one they are on.
 *
 * A broker that answers a message with connection.close ends what all routes have under way, and does not say which
 * message it means. So what was unconfirmed on a connection that ended like that goes again over this one, with nothing
 * else on it. A message that ends it twice is the one, and is refused as a row; the others are decided as usual. What a
 * route sends after one of its messages has ended this connection goes here too, for ten minutes: so one that has many
 * of the kind, or goes on writing them, costs the other routes their connection once. Between two endings its messages
 * rest for up to two seconds, and those of the other routes go.
 *
 * A connection that ends in another way, or cannot be made, names nobody: what was on it is lost as on the other one,
 * and what waits is handed back. It exists while there is something to go over it, or may be.
 *
 * Driver's thread, except amqp_conn_wakeup() on its connection; no lock.
 */
#ifndef AMQP_APART_H
#define AMQP_APART_H

#include "amqp_conn.h"
#include "amqp_pub.h"
#include "amqp_queue.h"

enum { AMQP_APART_ROUTES = 64 }; /* whose messages have ended it; of more, those that did so first are forgotten */

struct amqp_apart_user {
  /* Publishes a task on the channel, or completes it where it is none for AMQP; false = not now. */
  bool (*publish)(void *ctx, struct amqp_pub *pub, const struct duebox_task *task, int64_t now_us);
  /* Completes a task. */
  void (*report)(void *ctx, const struct duebox_task *task, enum amqp_event event, int code, const char *detail);
};

struct amqp_apart_route {
  uint64_t key;
  int64_t until_us; /* its messages go over this connection */
  int64_t rest_us;  /* how long the last rest was, and when it ends */
  int64_t rested_us;
};

struct amqp_apart {
  struct amqp_conn conn;
  struct amqp_pub pub; /* one message at a time */
  struct amqp_queue queue;
  struct amqp_waiting out; /* what the message on it was while it waited */
  struct amqp_apart_route routes[AMQP_APART_ROUTES];
  uint32_t route_count;
  int64_t pumped_us;    /* when it was last looked for what may go */
  int64_t looked_us;    /* when it was last looked for what has waited for too long */
  int64_t unblocked_us; /* when the last alarm of the broker ended */
  int64_t most_us;      /* how long a message waits here, and for its confirm: confirm_timeout */
  const struct duebox_host *host;
  const struct amqp_apart_user *user;
  void *ctx;
};

/* Makes room for `size` tasks; no I/O. amqp_apart_free() is safe in both cases. The caller keeps its reference to
 * target. */
bool amqp_apart_init(struct amqp_apart *apart, struct amqp_target *target, const struct duebox_host *host,
                     uint32_t size, const struct amqp_apart_user *user, void *ctx, struct duebox_error *err)
    __attribute__((warn_unused_result));
void amqp_apart_free(struct amqp_apart *apart);

/* Whether what the route sends goes this way now. */
bool amqp_apart_takes(const struct amqp_apart *apart, const char *route, int64_t now_us);

/* Puts a task to those that wait; suspect: it has left before, over the other connection. false = full. */
bool amqp_apart_put(struct amqp_apart *apart, const struct duebox_task *task, bool suspect, int64_t now_us);

/* Takes what is open on a channel whose connection was ended over one of its messages; suspect: these had left before,
 * too. What the host has taken back is completed. */
void amqp_apart_take_over(struct amqp_apart *apart, struct amqp_pub *pub, bool suspect, const char *reason);

/* Takes those that had left and wait to go alone over the connection that ended. */
void amqp_apart_take_over_waiting(struct amqp_apart *apart, struct amqp_queue *queue);

/* Does what can be done now, without waiting. */
void amqp_apart_poll(struct amqp_apart *apart);
/* When amqp_apart_poll() has something to do of itself, monotonic. */
int64_t amqp_apart_next(const struct amqp_apart *apart);

/* Tasks that are not completed. */
uint32_t amqp_apart_open(const struct amqp_apart *apart);
/* Hands back what waits. */
void amqp_apart_recall(struct amqp_apart *apart);
/* Completes all, and says goodbye to the broker. */
void amqp_apart_stop(struct amqp_apart *apart, int64_t deadline_us);

#endif
