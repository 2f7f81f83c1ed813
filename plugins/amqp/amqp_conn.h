/* SPDX-License-Identifier: MIT
 *
 * amqp_conn.h - one connection to a broker, kept alive: connect, heartbeats, alarms, reconnect with back-off.
 *
 * Owns the connection of rabbitmq-c and its socket. Knows nothing of publishing or consuming: frames of the channels go
 * to the user. Everything runs on the driver's thread except amqp_conn_wakeup(), which has a lock with it that is
 * taken when a connection comes and goes (amqp_connect.h has another).
 *
 * rabbitmq-c's calls that send would wait without limit for a broker that does not read. So nothing is sent unless
 * amqp_conn_has_room() says that the kernel takes it at once; small control frames live on a reserve that is never
 * given to messages.
 *
 * A failure is noted where it is seen (amqp_conn_fail) and acted on in one place, at the end of amqp_conn_poll(): the
 * user's down() is never called from inside a call of the user.
 */
#ifndef AMQP_CONN_H
#define AMQP_CONN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duebox/plugin.h>

#include "amqp_connect.h"
#include "amqp_target.h"
#include "amqp_vendor.h"

enum amqp_conn_state {
  AMQP_CONN_IDLE = 0,   /* not started, or shut down: nobody connects */
  AMQP_CONN_DOWN,       /* waiting for the next attempt */
  AMQP_CONN_CONNECTING, /* an attempt is under way on its thread */
  AMQP_CONN_UP,         /* logged in */
};

/* What the connection tells its user, always from inside amqp_conn_poll(). */
struct amqp_conn_user {
  amqp_channel_t channels; /* it opens 1 to this; a frame of another one ends the connection */
  bool reads;              /* a source: a broker that does not let it in leaves it unread */
  bool aside;              /* beside the connection by which the host knows the instance: says nothing of its health */
  void (*up)(void *ctx);
  void (*down)(void *ctx, const char *reason);   /* everything open on it is undefined; the channels are gone */
  void (*barred)(void *ctx, const char *reason); /* an attempt has failed; may be NULL */
  void (*frame)(void *ctx, const amqp_frame_t *frame);
  /* The next frame cannot be decoded. True: the user ends with amqp_conn_leave() what it has begun, and hears of no
   * other frame; false, or NULL: the connection has failed. */
  bool (*unreadable)(void *ctx);
  void (*blocked)(void *ctx, bool blocked, const char *reason); /* an alarm of the broker began or ended */
};

struct amqp_conn {
  enum amqp_conn_state state;
  amqp_connection_state_t link;
  int fd;
  int wake_fd;
  struct amqp_target *target;
  const struct duebox_host *host;
  const struct amqp_conn_user *user;
  void *ctx;
  struct amqp_connect *attempt;
  const struct amqp_conn *beside; /* another one of the same driver: what happens to it ends a wait, too. NULL = none */

  int64_t retry_at_us; /* DOWN: when to try again */
  int64_t backoff_us;
  int64_t up_since_us;
  int64_t next_beat_us; /* when the library must be called again for the heartbeats */
  uint64_t random;

  char *gathered; /* frames that are not sent yet; they leave together, before anything else does */
  size_t gathered_len;
  bool gathers; /* from now on: corked, and not encrypted */

  size_t send_buffer; /* the socket's, when the connection came up */
  size_t room;        /* how much may be sent before the kernel is asked again */
  bool want_write;    /* somebody waits for room */
  bool paused;        /* do not read: the user has no place for what comes */
  bool more_input;    /* the library may hold input that the socket does not show any more */
  bool deaf;          /* the library has lost its place in the input: what comes is thrown away, and sending goes on */
  bool blocked;       /* the broker said connection.blocked: reason says why */
  bool failed;        /* reason says why; the connection is not used any more */
  bool unheard;       /* it has failed while sending, and what the broker said before is not read */
  int closed;         /* the reply code of the connection.close by which the broker ended it last; 0 = it sent none */
  bool refused;       /* the last attempt ended by the broker's answer */
  bool said_down;     /* it did not work when it was last tried */

  int64_t leave_by_us; /* deaf, and goodbye is said: when not to wait for the broker's end any longer; 0 = it is not */
  int64_t look_at_us;  /* when to ask for more room than want_write tells of; 0 = nobody does */

  /* The library skips heartbeats inside one call, as long as there are any, and sends a frame whole: 0 = the driver is
   * not in it; 1 = it is, and nobody has noticed; else since when (monotonic) somebody has. */
  _Atomic int64_t inside;
  atomic_bool ended;    /* by amqp_conn_wakeup(), because of that */
  pthread_mutex_t lock; /* of fd, for a wakeup() */
  char reason[512];
};

int64_t amqp_now_us(void); /* CLOCK_MONOTONIC */

/* Makes the eventfd; no I/O. amqp_conn_free() is safe in both cases. Takes over the caller's reference to target. */
bool amqp_conn_init(struct amqp_conn *conn, struct amqp_target *target, const struct duebox_host *host,
                    const struct amqp_conn_user *user, void *ctx, struct duebox_error *err)
    __attribute__((warn_unused_result));

/* From now on it connects, and connects again. */
void amqp_conn_start(struct amqp_conn *conn);

/* Waits at most timeout_ms, and not beyond wake_at_us (monotonic), for something to happen, and handles it. */
void amqp_conn_poll(struct amqp_conn *conn, int timeout_ms, int64_t wake_at_us);

/* Ends the driver's wait, and a connection whose other end keeps it inside the library: when a second wakeup() finds it
 * in the same call, seconds after the first. Any thread. */
void amqp_conn_wakeup(struct amqp_conn *conn);

/* Its user has had an answer on a channel: the outage before is over. A broker that only lets us in ends none. */
void amqp_conn_works(struct amqp_conn *conn);

/* For down(): it works, but for what its user sent. The waits between attempts begin anew. */
void amqp_conn_retry_soon(struct amqp_conn *conn);

/* Whether it is logged in and has neither failed nor been left since. */
bool amqp_conn_usable(const struct amqp_conn *conn);

/* Whether `bytes` can be sent without waiting. When not, the next poll ends as soon as there is room again; for more
 * than a piece, soon. */
bool amqp_conn_has_room(struct amqp_conn *conn, size_t bytes);

/* How much to ask room for at once at most: poll() tells when this much is free. */
size_t amqp_conn_piece(const struct amqp_conn *conn);

enum {
  AMQP_CONN_FRAME_OVERHEAD = 64, /* what a frame, and the TLS record around it, needs beside its content */
  AMQP_CONN_METHOD_SIZE = 640,   /* more than any method takes that is sent here: two short strings and change */
};

/* Sends one frame that takes at most `size` bytes on the wire; false = the connection has failed. */
bool amqp_conn_send(struct amqp_conn *conn, const amqp_frame_t *frame, size_t size);
bool amqp_conn_send_method(struct amqp_conn *conn, amqp_channel_t channel, amqp_method_number_t id, void *method);

/* Holds small frames back until uncorked, so that a burst takes few system calls and travels in full segments. */
void amqp_conn_cork(struct amqp_conn *conn, bool on);

/* Stops (or resumes) reading; heartbeats go on. */
void amqp_conn_pause(struct amqp_conn *conn, bool paused);

/* Notes that the connection cannot be used any more; the first reason counts. */
void amqp_conn_fail(struct amqp_conn *conn, const char *fmt, ...) DUEBOX_PRINTF(2, 3);

/* Ends a connection on which nothing can be read any more, after all that was sent, and makes it anew. It is no outage:
 * nobody is told of one. */
void amqp_conn_leave(struct amqp_conn *conn);

/* Says goodbye to the broker and waits for its answer, at most until deadline_us. The user hears nothing any more.
 * Afterwards it is IDLE. */
void amqp_conn_shutdown(struct amqp_conn *conn, int64_t deadline_us);

void amqp_conn_free(struct amqp_conn *conn); /* never blocks */

#endif
