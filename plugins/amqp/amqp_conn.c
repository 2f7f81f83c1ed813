/* SPDX-License-Identifier: MIT */
#include "amqp_conn.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "amqp_encode.h"

enum {
  BACKOFF_MIN_US = 100000,
  BACKOFF_MAX_US = 10000000,
  FRAMES_PER_POLL = 4096, /* then the driver gets its turn, whatever comes in */
  RESERVE_MAX = 8192,     /* of the send buffer: for control frames and the kernel's own bookkeeping */
  GATHERED_MAX = 65536,   /* then they are sent; larger frames are sent by themselves */
  KEPT_US = 3000000,      /* inside one call of the library that waits for nothing, or for little */
  LOOK_US = 10000,        /* for more room than poll() tells of */
  LEAVE_US = 1000000,     /* for the broker to end a connection that is left */
};

int64_t amqp_now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

bool amqp_conn_init(struct amqp_conn *conn, struct amqp_target *target, const struct duebox_host *host,
                    const struct amqp_conn_user *user, void *ctx, struct duebox_error *err) {
  *conn = (struct amqp_conn){
      .fd = -1, .target = target, .host = host, .user = user, .ctx = ctx, .backoff_us = BACKOFF_MIN_US};
  pthread_mutex_init(&conn->lock, NULL);
  conn->random = ((uint64_t)amqp_now_us() ^ (uint64_t)(uintptr_t)conn) | 1;
  conn->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  conn->gathered = malloc(GATHERED_MAX);
  if (!conn->gathered) {
    snprintf(err->text, sizeof err->text, "out of memory for a connection");
    return false;
  }
  if (conn->wake_fd >= 0)
    return true;
  snprintf(err->text, sizeof err->text, "cannot make an eventfd: %s; is the limit of open files reached?",
           strerror(errno));
  return false;
}

void amqp_conn_start(struct amqp_conn *conn) {
  conn->state = AMQP_CONN_DOWN;
  conn->retry_at_us = amqp_now_us();
}

bool amqp_conn_usable(const struct amqp_conn *conn) {
  return conn->state == AMQP_CONN_UP && !conn->failed && !conn->leave_by_us;
}

static void end_call(struct amqp_conn *conn) {
  pthread_mutex_lock(&conn->lock);
  if (atomic_load(&conn->inside) != 0) {
    atomic_store(&conn->ended, true);
    (void)shutdown(conn->fd, SHUT_RDWR);
  }
  pthread_mutex_unlock(&conn->lock);
}

void amqp_conn_wakeup(struct amqp_conn *conn) {
  (void)eventfd_write(conn->wake_fd, 1);
  int64_t since = atomic_load_explicit(&conn->inside, memory_order_relaxed);
  if (since == 0)
    return;
  int64_t now = amqp_now_us();
  if (since == 1)
    (void)atomic_compare_exchange_strong(&conn->inside, &since, now);
  else if (now - since > KEPT_US)
    end_call(conn);
}

static void enter(struct amqp_conn *conn) { atomic_store_explicit(&conn->inside, 1, memory_order_relaxed); }
static void leave(struct amqp_conn *conn) { atomic_store_explicit(&conn->inside, 0, memory_order_release); }

void amqp_conn_fail(struct amqp_conn *conn, const char *fmt, ...) {
  if (conn->failed)
    return;
  va_list args;
  va_start(args, fmt);
  vsnprintf(conn->reason, sizeof conn->reason, fmt, args);
  va_end(args);
  conn->failed = true;
}

/* ---- room in the socket --------------------------------------------------------------------------------------- */

static size_t reserve(size_t send_buffer) { return send_buffer / 8 < RESERVE_MAX ? send_buffer / 8 : RESERVE_MAX; }

/* An empty buffer takes anything: what does not fit goes out as fast as the network takes it. */
static size_t kernel_room(const struct amqp_conn *conn, size_t wanted) {
  uint32_t info[SK_MEMINFO_VARS] = {0};
  socklen_t len = sizeof info;
  if (getsockopt(conn->fd, SOL_SOCKET, SO_MEMINFO, info, &len) != 0)
    return 0; /* the socket is closed: the next read says why */
  size_t size = info[SK_MEMINFO_SNDBUF];
  size_t used = info[SK_MEMINFO_WMEM_QUEUED];
  size_t room = size > used + reserve(size) ? size - used - reserve(size) : 0;
  return used == 0 && room < wanted ? wanted : room;
}

static void on_send_error(struct amqp_conn *conn, const char *why) {
  conn->unheard = !atomic_load(&conn->ended) && !conn->user->reads; /* a source could acknowledge nothing that comes */
  if (atomic_load(&conn->ended))
    amqp_conn_fail(conn, "the broker read nothing of a frame for some seconds");
  else
    amqp_conn_fail(conn, "sending to the broker failed: %s", why);
}

/* There is room for them: they were only gathered where amqp_conn_has_room() said so, so this does not wait, but for
 * what an empty buffer was given beyond its size. */
static void send_gathered(struct amqp_conn *conn) {
  size_t sent = 0;
  enter(conn);
  while (sent < conn->gathered_len && amqp_conn_usable(conn)) {
    ssize_t n = send(conn->fd, conn->gathered + sent, conn->gathered_len - sent, MSG_NOSIGNAL);
    if (n >= 0) {
      sent += (size_t)n;
    } else if (errno == EAGAIN) {
      struct pollfd writable = {.fd = conn->fd, .events = POLLOUT};
      (void)poll(&writable, 1, -1);
    } else if (errno != EINTR) {
      on_send_error(conn, strerror(errno));
    }
  }
  leave(conn);
  conn->gathered_len = 0;
}

/* Puts a frame to those that leave together; false when it has to be sent by itself. */
static bool gather(struct amqp_conn *conn, const amqp_frame_t *frame) {
  if (!conn->gathers)
    return false;
  for (int try = 0; try < 2; try++) {
    size_t len = amqp_encode_frame(frame, conn->gathered + conn->gathered_len, GATHERED_MAX - conn->gathered_len);
    conn->gathered_len += len;
    if (len)
      return true;
    send_gathered(conn);
  }
  return false;
}

bool amqp_conn_has_room(struct amqp_conn *conn, size_t bytes) {
  if (conn->room < bytes) {
    send_gathered(conn); /* the kernel does not know of them */
    conn->room = kernel_room(conn, bytes);
    bool full = conn->room<bytes, large = bytes> amqp_conn_piece(conn);
    conn->want_write |= full && !large;
    if (full && large)
      conn->look_at_us = amqp_now_us() + LOOK_US;
  }
  return conn->room >= bytes;
}

/* poll() calls a socket writable when a third of its buffer is free. A piece must stay below that, or waiting for room
 * would spin. */
size_t amqp_conn_piece(const struct amqp_conn *conn) {
  size_t piece = conn->send_buffer / 3 - reserve(conn->send_buffer);
  size_t frame = (size_t)amqp_get_frame_max(conn->link);
  return piece < frame ? piece : frame;
}

void amqp_conn_cork(struct amqp_conn *conn, bool on) {
  int value = on;
  if (conn->fd < 0)
    return;
  send_gathered(conn);
  conn->gathers = on && !conn->target->tls;
  (void)setsockopt(conn->fd, IPPROTO_TCP, TCP_CORK, &value, sizeof value);
}

/* ---- sending -------------------------------------------------------------------------------------------------- */

bool amqp_conn_send(struct amqp_conn *conn, const amqp_frame_t *frame, size_t size) {
  if (!amqp_conn_usable(conn))
    return false;
  if (conn->deaf && !amqp_conn_has_room(conn, size)) /* where the library has to wait it reads, and must not any more */
    amqp_conn_fail(conn, "the broker takes no more of what is sent");
  else if (!gather(conn, frame)) {
    enter(conn);
    int status = amqp_send_frame(conn->link, frame);
    leave(conn);
    if (status != AMQP_STATUS_OK)
      on_send_error(conn, amqp_error_string2(status));
  }
  if (conn->failed)
    return false;
  conn->room = conn->room > size ? conn->room - size : 0;
  return true;
}

bool amqp_conn_send_method(struct amqp_conn *conn, amqp_channel_t channel, amqp_method_number_t id, void *method) {
  amqp_frame_t frame = {.frame_type = AMQP_FRAME_METHOD, .channel = channel};
  frame.payload.method.id = id;
  frame.payload.method.decoded = method;
  return amqp_conn_send(conn, &frame, AMQP_CONN_METHOD_SIZE);
}

/* ---- coming up and going down --------------------------------------------------------------------------------- */

static uint64_t next_random(struct amqp_conn *conn) {
  conn->random ^= conn->random << 13;
  conn->random ^= conn->random >> 7;
  conn->random ^= conn->random << 17;
  return conn->random;
}

/* The next attempt comes after half to all of the back-off, which doubles. */
static void back_off(struct amqp_conn *conn, int64_t now_us) {
  int64_t half = conn->backoff_us / 2;
  conn->retry_at_us = now_us + half + (int64_t)(next_random(conn) % (uint64_t)half);
  conn->backoff_us = conn->backoff_us * 2 > BACKOFF_MAX_US ? BACKOFF_MAX_US : conn->backoff_us * 2;
  conn->state = AMQP_CONN_DOWN;
}

void amqp_conn_retry_soon(struct amqp_conn *conn) {
  conn->backoff_us = BACKOFF_MIN_US;
  back_off(conn, amqp_now_us());
}

static void say_down(struct amqp_conn *conn) {
  if (conn->user->aside)
    return;
  if (conn->refused && conn->user->reads)
    conn->host->unread(conn->host->ctx, conn->reason);
  else
    conn->host->health(conn->host->ctx, false, conn->reason);
  conn->host->log(conn->host->ctx, DUEBOX_LOG_WARN, "AMQP-DOWN", "%s; trying again, at least every %d s", conn->reason,
                  BACKOFF_MAX_US / 1000000);
  conn->said_down = true;
}

void amqp_conn_works(struct amqp_conn *conn) {
  if (conn->said_down)
    conn->host->log(conn->host->ctx, DUEBOX_LOG_INFO, "AMQP-UP", "connected to %s:%d again", conn->target->host,
                    conn->target->port);
  conn->said_down = false;
}

/* fd is the link's, -1 without one. */
static void set_link(struct amqp_conn *conn, amqp_connection_state_t link) {
  pthread_mutex_lock(&conn->lock);
  if (conn->link && !link)
    amqp_destroy_connection(conn->link);
  conn->link = link;
  conn->fd = link ? amqp_get_sockfd(link) : -1;
  pthread_mutex_unlock(&conn->lock);
}

static void drop_link(struct amqp_conn *conn) {
  set_link(conn, NULL);
  atomic_store(&conn->ended, false);
  conn->blocked = conn->failed = conn->unheard = conn->want_write = conn->more_input = conn->deaf = false;
  conn->room = conn->gathered_len = 0;
  conn->look_at_us = conn->leave_by_us = 0;
  conn->gathers = false;
}

static void come_up(struct amqp_conn *conn, int64_t now_us) {
  int size = 0;
  socklen_t len = sizeof size;
  conn->state = AMQP_CONN_UP;
  conn->up_since_us = now_us;
  conn->next_beat_us = now_us;
  conn->more_input = true;
  conn->closed = 0;
  (void)getsockopt(conn->fd, SOL_SOCKET, SO_SNDBUF, &size, &len);
  conn->send_buffer = (size_t)size;
  if (!conn->user->aside &&
      amqp_get_frame_max(conn->link) < conn->target->frame_max) /* amqp_max_checkpoint() goes by the latter */
    conn->host->log(
        conn->host->ctx, DUEBOX_LOG_WARN, "AMQP-FRAME-MAX",
        "the broker takes frames of %d bytes, frame_max is %d: set it to that, or a checkpoint may be stored "
        "that no message can carry",
        amqp_get_frame_max(conn->link), conn->target->frame_max);
  conn->user->up(conn->ctx);
}

static void go_down(struct amqp_conn *conn, int64_t now_us) {
  char reason[sizeof conn->reason];
  bool left = conn->leave_by_us != 0;
  memcpy(reason, conn->reason, sizeof reason);
  drop_link(conn);
  /* A connection that held for a while starts the back-off from the beginning; one that breaks at once does not, unless
   * it was to end. */
  if (left || now_us - conn->up_since_us > BACKOFF_MAX_US)
    conn->backoff_us = BACKOFF_MIN_US;
  back_off(conn, now_us);
  if (left)
    conn->retry_at_us = now_us; /* nothing is wrong with the broker */
  else
    say_down(conn);
  conn->user->down(conn->ctx, reason);
}

static void fail_attempt(struct amqp_conn *conn, int64_t now_us) {
  back_off(conn, now_us);
  say_down(conn);
  if (conn->user->barred)
    conn->user->barred(conn->ctx, conn->reason);
}

static void take_attempt(struct amqp_conn *conn, int64_t now_us) {
  struct amqp_connect_failure failure = {.text = ""};
  set_link(conn, amqp_connect_finish(conn->attempt, &failure));
  conn->attempt = NULL;
  conn->refused = failure.refused;
  if (conn->link) {
    come_up(conn, now_us);
    return;
  }
  memcpy(conn->reason, failure.text, sizeof conn->reason);
  fail_attempt(conn, now_us);
}

static void advance(struct amqp_conn *conn, int64_t now_us) {
  if (conn->state == AMQP_CONN_DOWN && now_us >= conn->retry_at_us) {
    conn->attempt = amqp_connect_start(conn->target, conn->wake_fd);
    if (conn->attempt) {
      conn->state = AMQP_CONN_CONNECTING;
    } else {
      snprintf(conn->reason, sizeof conn->reason, "cannot start a thread to connect; is the limit of threads reached?");
      fail_attempt(conn, now_us);
    }
  } else if (conn->state == AMQP_CONN_CONNECTING && amqp_connect_ended(conn->attempt)) {
    take_attempt(conn, now_us);
  }
}

/* ---- receiving ------------------------------------------------------------------------------------------------ */

static void on_close(struct amqp_conn *conn, const amqp_connection_close_t *close) {
  amqp_connection_close_ok_t ok = {0};
  (void)amqp_conn_send_method(conn, 0, AMQP_CONNECTION_CLOSE_OK_METHOD, &ok);
  conn->closed = close->reply_code;
  conn->failed = conn->unheard = false; /* that this answer could not be sent is not the reason */
  amqp_conn_fail(conn, "the broker closed the connection: %u %.*s", close->reply_code, (int)close->reply_text.len,
                 (const char *)close->reply_text.bytes);
}

static void on_blocked(struct amqp_conn *conn, const amqp_connection_blocked_t *blocked) {
  snprintf(conn->reason, sizeof conn->reason,
           "the broker takes no messages (connection.blocked): %.*s; free memory or disk space there",
           (int)blocked->reason.len, (const char *)blocked->reason.bytes);
  conn->blocked = true;
  conn->user->blocked(conn->ctx, true, conn->reason);
}

static void on_control(struct amqp_conn *conn, const amqp_frame_t *frame) {
  if (frame->frame_type != AMQP_FRAME_METHOD)
    return;
  const amqp_method_t *method = &frame->payload.method;
  switch (method->id) {
  case AMQP_CONNECTION_CLOSE_METHOD:
    on_close(conn, method->decoded);
    break;
  case AMQP_CONNECTION_CLOSE_OK_METHOD:
    amqp_conn_fail(conn, "closed");
    break;
  case AMQP_CONNECTION_BLOCKED_METHOD:
    on_blocked(conn, method->decoded);
    break;
  case AMQP_CONNECTION_UNBLOCKED_METHOD:
    conn->blocked = false;
    conn->user->blocked(conn->ctx, false, NULL);
    break;
  default:
    break;
  }
}

static void on_read_error(struct amqp_conn *conn, int status) {
  if (atomic_load(&conn->ended))
    amqp_conn_fail(conn, "the broker wrote without a pause and without a frame, except perhaps heartbeats");
  else if (status == AMQP_STATUS_HEARTBEAT_TIMEOUT)
    amqp_conn_fail(conn, "the broker was silent for two heartbeats (%d s each)", amqp_get_heartbeat(conn->link));
  else if (status == AMQP_STATUS_BAD_AMQP_DATA && conn->user->unreadable && conn->user->unreadable(conn->ctx))
    conn->deaf = true;
  else
    amqp_conn_fail(conn, "reading from the broker failed: %s", amqp_error_string2(status));
}

/* Takes frames until there are none. The library sends and checks heartbeats in the same call. */
static void drain(struct amqp_conn *conn) {
  conn->more_input = true;
  for (int i = 0; i < FRAMES_PER_POLL && !conn->failed && !conn->paused; i++) {
    amqp_frame_t frame;
    struct timeval nothing = {0, 0};
    enter(conn);
    int status = amqp_simple_wait_frame_noblock(conn->link, &frame, &nothing);
    leave(conn);
    if (status == AMQP_STATUS_TIMEOUT) {
      conn->more_input = false;
      return;
    }
    if (status != AMQP_STATUS_OK) {
      conn->more_input = false;
      on_read_error(conn, status);
      return;
    }
    if (frame.frame_type == AMQP_FRAME_HEADER && frame.payload.properties.class_id != AMQP_BASIC_CLASS)
      /* The library decodes those of other classes too, into structs that end before the properties of a message do. */
      amqp_conn_fail(conn, "the broker sent a content header of class %u, which has no content",
                     frame.payload.properties.class_id);
    else if (frame.channel == 0)
      on_control(conn, &frame);
    else if (frame.channel <= conn->user->channels)
      conn->user->frame(conn->ctx, &frame);
    else /* AMQP 0-9-1, 4.2.3: channel error. The library keeps memory for every number that it has seen. */
      amqp_conn_fail(conn, "the broker sent something on channel %u, which was never opened", frame.channel);
    amqp_maybe_release_buffers_on_channel(conn->link, frame.channel);
  }
}

/* Nothing can be written any more. What the broker has confirmed before, and why it hung up, is there to be read. */
static void hear_last_words(struct amqp_conn *conn) {
  char reason[sizeof conn->reason];
  memcpy(reason, conn->reason, sizeof reason);
  conn->failed = false;
  drain(conn);
  conn->failed = true;
  if (conn->closed == 0)
    memcpy(conn->reason, reason, sizeof reason);
}

/* So that the broker's end is seen, and closing the socket does not reset the connection: that could cost what the
 * broker has not read yet. Encrypted or not, it is of no use. */
static void discard(struct amqp_conn *conn) {
  char waste[16384];
  ssize_t n = 1;
  for (int i = 0; i < FRAMES_PER_POLL && n > 0; i++)
    n = recv(conn->fd, waste, sizeof waste, MSG_DONTWAIT);
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) ||
      (conn->leave_by_us && amqp_now_us() >= conn->leave_by_us))
    amqp_conn_fail(conn, "the broker closed the connection");
}

static bool listens(const struct amqp_conn *conn) { return !conn->paused && !conn->deaf; }

static void beat(struct amqp_conn *conn, int64_t now_us) {
  conn->next_beat_us = now_us + (int64_t)amqp_get_heartbeat(conn->link) * 500000;
  if (amqp_get_heartbeat(conn->link) <= 0)
    conn->next_beat_us = INT64_MAX;
  amqp_frame_t frame = {.frame_type = AMQP_FRAME_HEARTBEAT, .channel = 0};
  if (!listens(conn))
    (void)amqp_conn_send(conn, &frame, AMQP_CONN_FRAME_OVERHEAD);
}

void amqp_conn_pause(struct amqp_conn *conn, bool paused) { conn->paused = paused; }

/* ---- the driver ----------------------------------------------------------------------------------------------- */

static int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

static int wait_ms(const struct amqp_conn *conn, int timeout_ms, int64_t wake_at_us, int64_t now_us) {
  int64_t until = earlier(now_us + (int64_t)timeout_ms * 1000, wake_at_us);
  if (conn->state == AMQP_CONN_DOWN)
    until = earlier(until, conn->retry_at_us);
  if (conn->state == AMQP_CONN_UP)
    until = earlier(until, conn->next_beat_us);
  if (conn->state == AMQP_CONN_UP && conn->look_at_us)
    until = earlier(until, conn->look_at_us);
  if (conn->leave_by_us)
    until = earlier(until, conn->leave_by_us);
  if (conn->failed || (conn->more_input && !conn->paused))
    return 0;
  int own = until > now_us ? (int)((until - now_us + 999) / 1000) : 0;
  return conn->beside ? wait_ms(conn->beside, own, INT64_MAX, now_us) : own;
}

static void watch(const struct amqp_conn *conn, struct pollfd fds[2]) {
  fds[0] = (struct pollfd){.fd = conn->wake_fd, .events = POLLIN};
  fds[1] = (struct pollfd){.fd = conn->fd};
  if (!conn->paused || conn->deaf)
    fds[1].events |= POLLIN;
  if (conn->want_write)
    fds[1].events |= POLLOUT;
}

/* Waits for the socket and for wakeup(); true when there is something to read. */
static bool wait_for_events(struct amqp_conn *conn, int timeout_ms) {
  struct pollfd fds[4];
  watch(conn, fds);
  if (conn->beside)
    watch(conn->beside, fds + 2);
  if (poll(fds, conn->beside ? 4 : 2, timeout_ms) <= 0)
    return false;
  eventfd_t ignored;
  if (fds[0].revents)
    (void)eventfd_read(conn->wake_fd, &ignored);
  if (conn->beside && fds[2].revents) /* nobody polls that one while it is IDLE */
    (void)eventfd_read(conn->beside->wake_fd, &ignored);
  if (fds[1].revents & POLLOUT)
    conn->want_write = false;
  if (conn->paused && fds[1].revents & (POLLERR | POLLHUP))
    amqp_conn_fail(conn, "the broker closed the connection");
  return fds[1].revents & (POLLIN | POLLERR | POLLHUP);
}

void amqp_conn_poll(struct amqp_conn *conn, int timeout_ms, int64_t wake_at_us) {
  int64_t now = amqp_now_us();
  advance(conn, now);
  bool readable = wait_for_events(conn, wait_ms(conn, timeout_ms, wake_at_us, now));
  now = amqp_now_us();
  if (now >= conn->look_at_us)
    conn->look_at_us = 0;
  advance(conn, now);
  if (amqp_conn_usable(conn)) {
    bool due = now >= conn->next_beat_us;
    if (due)
      beat(conn, now);
    if (listens(conn) && (readable || due || conn->more_input || amqp_frames_enqueued(conn->link)))
      drain(conn);
  }
  if (conn->state == AMQP_CONN_UP && conn->unheard)
    hear_last_words(conn);
  if (conn->deaf && !conn->failed)
    discard(conn);
  if (conn->state == AMQP_CONN_UP && conn->failed)
    go_down(conn, amqp_now_us());
}

/* ---- the end ---------------------------------------------------------------------------------------------------- */

/* Where the answer cannot be read, the broker is to end the connection itself, when it has read everything before. */
static bool say_goodbye(struct amqp_conn *conn) {
  amqp_connection_close_t close = {.reply_code = AMQP_REPLY_SUCCESS, .reply_text = amqp_cstring_bytes("goodbye")};
  amqp_conn_cork(conn, false);
  bool sent = amqp_conn_send_method(conn, 0, AMQP_CONNECTION_CLOSE_METHOD, &close);
  if (conn->deaf)
    (void)shutdown(conn->fd, SHUT_WR);
  return sent;
}

void amqp_conn_leave(struct amqp_conn *conn) {
  if (say_goodbye(conn))
    conn->leave_by_us = amqp_now_us() + LEAVE_US;
}

static void ignore_event(void *ctx) { (void)ctx; }
static void ignore_frame(void *ctx, const amqp_frame_t *frame) { (void)ctx, (void)frame; }
static void ignore_reason(void *ctx, const char *reason) { (void)ctx, (void)reason; }
static void ignore_alarm(void *ctx, bool blocked, const char *reason) { (void)ctx, (void)blocked, (void)reason; }

/* Once the broker has answered, it has read everything before: an acknowledgement sent a moment ago is not lost in a
 * reset of the connection. */
void amqp_conn_shutdown(struct amqp_conn *conn, int64_t deadline_us) {
  static const struct amqp_conn_user nobody = {.up = ignore_event,
                                               .down = ignore_reason,
                                               .frame = ignore_frame,
                                               .blocked = ignore_alarm,
                                               .channels = UINT16_MAX};
  conn->user = &nobody;
  bool parting = conn->leave_by_us || (amqp_conn_usable(conn) && say_goodbye(conn));
  conn->paused = false;
  for (int64_t now = amqp_now_us(); parting && !conn->failed && now < deadline_us; now = amqp_now_us()) {
    if (conn->deaf)
      discard(conn);
    else
      drain(conn);
    if (!conn->failed)
      (void)wait_for_events(conn, (int)((deadline_us - now + 999) / 1000));
  }
  if (conn->attempt)
    amqp_connect_abandon(conn->attempt);
  conn->attempt = NULL;
  drop_link(conn);
  conn->state = AMQP_CONN_IDLE;
}

void amqp_conn_free(struct amqp_conn *conn) {
  if (!conn->target)
    return; /* never initialised */
  if (conn->attempt)
    amqp_connect_abandon(conn->attempt);
  conn->attempt = NULL;
  drop_link(conn);
  if (conn->wake_fd >= 0)
    close(conn->wake_fd);
  conn->wake_fd = -1;
  pthread_mutex_destroy(&conn->lock);
  free(conn->gathered);
  conn->gathered = NULL;
  amqp_target_unref(conn->target);
  conn->target = NULL;
}
