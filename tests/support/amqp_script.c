/* SPDX-License-Identifier: MIT */
#include "tests/support/amqp_script.h"

#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include "plugins/amqp/amqp_vendor.h"

enum { HEAD = 7, FRAME_MAX = 131072, MESSAGES = 20000, CHANNELS = 16, MOODS = 256 };

/* A message that is coming in on a channel. */
struct incoming {
  bool open;
  size_t missing;
  struct amqp_script_message message;
};

struct connection {
  struct amqp_script *script;
  struct connection *older;
  unsigned number;
  pthread_t thread;
  int fd; /* -1: it has ended */
  uint64_t next_tag[CHANNELS];
  struct incoming incoming[CHANNELS];
  size_t drop_len; /* one drop of the flood that is to follow; 0 = none */
  char drop[32];
};

struct amqp_script {
  int listener, port;
  pthread_t thread;
  pthread_mutex_t lock; /* everything below, and what belongs to a connection */
  pthread_cond_t mood_changed;
  struct connection *newest; /* kept until the end, each with its thread */
  unsigned turned_to;        /* the number of a connection; 0 = the newest */
  bool ending;
  enum amqp_script_mood moods[MOODS]; /* of connections by number; the first is of all beyond */
  uint16_t channel_max;
  unsigned connections, consumers, begun, goodbyes, acks, nacks, cancels, asked, readers, prefetch;
  bool exclusive, refuses_exclusive, rival; /* the last basic.consume; it refuses such; one comes with each */
  struct amqp_script_message messages[MESSAGES];
  size_t published;
  uint64_t flooded;
  char frame[FRAME_MAX];
};

static enum amqp_script_mood *mood_of(struct amqp_script *script, unsigned connection) {
  return &script->moods[connection < MOODS ? connection : 0];
}

static enum amqp_script_mood mood(const struct connection *peer) { return *mood_of(peer->script, peer->number); }

/* ---- sending; the lock is held ---------------------------------------------------------------------------------- */

static void write_all(struct connection *peer, const void *data, size_t len) {
  const char *at = data;
  while (len > 0 && peer->fd >= 0) {
    ssize_t n = send(peer->fd, at, len, MSG_NOSIGNAL);
    if (n <= 0)
      return; /* the plugin has closed: the test sees it */
    at += n;
    len -= (size_t)n;
  }
}

static void send_frame(struct connection *peer, uint8_t type, uint16_t channel, size_t len) {
  char *f = peer->script->frame;
  uint16_t channel_be = htons(channel);
  uint32_t len_be = htonl((uint32_t)len);
  f[0] = (char)type;
  memcpy(f + 1, &channel_be, 2);
  memcpy(f + 3, &len_be, 4);
  f[HEAD + len] = (char)AMQP_FRAME_END;
  write_all(peer, f, HEAD + len + 1);
}

static void send_method(struct connection *peer, uint16_t channel, uint32_t number, void *method) {
  uint32_t number_be = htonl(number);
  amqp_bytes_t room = {.len = FRAME_MAX - HEAD - 5, .bytes = peer->script->frame + HEAD + 4};
  memcpy(peer->script->frame + HEAD, &number_be, 4);
  int len = amqp_encode_method(number, method, room);
  if (len < 0)
    abort();
  send_frame(peer, AMQP_FRAME_METHOD, channel, (size_t)len + 4);
}

static void answer(struct connection *peer, uint16_t channel, uint32_t number) {
  union {
    amqp_connection_open_ok_t open;
    amqp_channel_open_ok_t channel_open;
    amqp_basic_consume_ok_t consume;
    char zero[64];
  } empty = {.zero = {0}};
  send_method(peer, channel, number, &empty);
}

static void close_channel(struct connection *peer, uint16_t channel, uint16_t code, const char *text) {
  amqp_channel_close_t close = {.reply_code = code, .reply_text = amqp_cstring_bytes(text), .class_id = 60};
  send_method(peer, channel, AMQP_CHANNEL_CLOSE_METHOD, &close);
}

static void begin_flood(struct connection *peer, const void *drop, size_t len) {
  memcpy(peer->drop, drop, len);
  peer->drop_len = len;
}

/* basic.ack: a frame that rabbitmq-c keeps for whoever asks for that channel. */
static void flood_channel(struct connection *peer, uint8_t channel) {
  char ack[] = {1, 0, (char)channel, 0, 0, 0, 13, 0, 60, 0, 80, 0, 0, 0, 0, 0, 0, 0, 1, 0, (char)AMQP_FRAME_END};
  begin_flood(peer, ack, sizeof(ack));
}

/* ---- receiving; the lock is held -------------------------------------------------------------------------------- */

static void start(struct connection *peer) {
  amqp_connection_start_t start = {.version_major = 0,
                                   .version_minor = 9,
                                   .mechanisms = amqp_cstring_bytes("PLAIN"),
                                   .locales = amqp_cstring_bytes("en_US")};
  if (mood(peer) == AMQP_SCRIPT_FLOOD_HELLO)
    begin_flood(peer, "\x16\3\3\0\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 21);
  else if (mood(peer) != AMQP_SCRIPT_NO_START)
    send_method(peer, 0, AMQP_CONNECTION_START_METHOD, &start);
  if (mood(peer) == AMQP_SCRIPT_FLOOD_HEARTBEATS)
    begin_flood(peer, "\x8\0\0\0\0\0\0\xce", 8);
}

/* Behind its number: 16 bits, queue, consumer tag, bits. */
static bool is_exclusive(const char *payload) {
  const unsigned char *at = (const unsigned char *)payload + 4 + 2;
  at += 1 + *at;
  at += 1 + *at;
  return *at & 4;
}

static void consume(struct connection *peer, uint16_t channel, const char *payload) {
  struct amqp_script *script = peer->script;
  script->exclusive = is_exclusive(payload);
  script->consumers++;
  if (script->rival)
    script->readers = 2;
  if (script->exclusive && script->refuses_exclusive)
    close_channel(peer, channel, 403, "ACCESS_REFUSED - queue 'answers' in vhost '/' in exclusive use");
  else
    answer(peer, channel, AMQP_BASIC_CONSUME_OK_METHOD);
}

static void tell_readers(struct connection *peer, uint16_t channel) {
  struct amqp_script *script = peer->script;
  amqp_queue_declare_ok_t ok = {.queue = amqp_cstring_bytes("answers"), .consumer_count = script->readers};
  script->asked++;
  send_method(peer, channel, AMQP_QUEUE_DECLARE_OK_METHOD, &ok);
}

static void on_channel_method(struct connection *peer, uint16_t channel, uint32_t number, const char *payload) {
  struct amqp_script *script = peer->script;
  switch (number) {
  case AMQP_CHANNEL_OPEN_METHOD:
    peer->next_tag[channel] = 1;
    peer->incoming[channel].open = false;
    if (mood(peer) == AMQP_SCRIPT_FLOOD_CHANNEL)
      flood_channel(peer, 7);
    else if (mood(peer) != AMQP_SCRIPT_NO_CHANNEL)
      answer(peer, channel, AMQP_CHANNEL_OPEN_OK_METHOD);
    break;
  case AMQP_CONFIRM_SELECT_METHOD:
    if (mood(peer) == AMQP_SCRIPT_REFUSE_CHANNEL)
      close_channel(peer, channel, 540, "NOT_IMPLEMENTED");
    else
      answer(peer, channel, AMQP_CONFIRM_SELECT_OK_METHOD);
    break;
  case AMQP_CHANNEL_CLOSE_METHOD:
    if (mood(peer) == AMQP_SCRIPT_CROSS_CLOSE)
      close_channel(peer, channel, 406, "PRECONDITION_FAILED");
    answer(peer, channel, AMQP_CHANNEL_CLOSE_OK_METHOD);
    break;
  case AMQP_BASIC_QOS_METHOD: /* behind its number: 32 bits */
    script->prefetch = (unsigned)(unsigned char)payload[8] << 8 | (unsigned char)payload[9];
    answer(peer, channel, AMQP_BASIC_QOS_OK_METHOD);
    break;
  case AMQP_BASIC_CONSUME_METHOD:
    consume(peer, channel, payload);
    break;
  case AMQP_BASIC_CANCEL_METHOD:
    script->cancels++;
    break;
  case AMQP_QUEUE_DECLARE_METHOD:
    tell_readers(peer, channel);
    break;
  case AMQP_BASIC_PUBLISH_METHOD:
    script->begun++;
    peer->incoming[channel] = (struct incoming){.open = true};
    peer->incoming[channel].message =
        (struct amqp_script_message){peer->number, channel, peer->next_tag[channel]++, "", 0};
    break;
  case AMQP_BASIC_ACK_METHOD:
    script->acks++;
    break;
  case AMQP_BASIC_NACK_METHOD:
    script->nacks++;
    break;
  default:
    break;
  }
}

static void on_method(struct connection *peer, uint16_t channel, uint32_t number, const char *payload) {
  struct amqp_script *script = peer->script;
  amqp_connection_tune_t tune = {.channel_max = mood(peer) == AMQP_SCRIPT_ONE_CHANNEL ? 1 : script->channel_max,
                                 .frame_max = FRAME_MAX,
                                 .heartbeat = 60};
  amqp_connection_close_t barred = {.reply_code = AMQP_NOT_ALLOWED,
                                    .reply_text = amqp_cstring_bytes("NOT_ALLOWED - connection limit is reached")};
  if (number == AMQP_CONNECTION_START_OK_METHOD)
    send_method(peer, 0, AMQP_CONNECTION_TUNE_METHOD, &tune);
  else if (number == AMQP_CONNECTION_OPEN_METHOD && mood(peer) == AMQP_SCRIPT_FLOOD_OPEN)
    flood_channel(peer, 1);
  else if (number == AMQP_CONNECTION_OPEN_METHOD && mood(peer) == AMQP_SCRIPT_NO_LOGIN)
    send_method(peer, 0, AMQP_CONNECTION_CLOSE_METHOD, &barred);
  else if (number == AMQP_CONNECTION_OPEN_METHOD)
    answer(peer, 0, AMQP_CONNECTION_OPEN_OK_METHOD);
  else if (number == AMQP_CONNECTION_CLOSE_METHOD)
    script->goodbyes++, answer(peer, 0, AMQP_CONNECTION_CLOSE_OK_METHOD);
  else if (channel > 0 && channel < CHANNELS)
    on_channel_method(peer, channel, number, payload);
}

static void keep_when_whole(struct connection *peer, struct incoming *in) {
  struct amqp_script *script = peer->script;
  if (!in->open || in->missing > 0)
    return;
  in->open = false;
  if (script->published == MESSAGES)
    abort();
  script->messages[script->published++] = in->message;
}

static void on_content(struct connection *peer, uint16_t channel, char *payload, size_t len) {
  struct incoming *in = &peer->incoming[channel];
  amqp_pool_t pool;
  void *decoded = NULL;
  uint64_t size_be;
  memcpy(&size_be, payload + 4, 8);
  in->message.len = in->missing = (size_t)be64toh(size_be);
  init_amqp_pool(&pool, 4096);
  amqp_bytes_t raw = {.len = len - 12, .bytes = payload + 12};
  if (amqp_decode_properties(AMQP_BASIC_CLASS, &pool, raw, &decoded) == 0) {
    const amqp_basic_properties_t *p = decoded;
    snprintf(in->message.id, sizeof(in->message.id), "%.*s", (int)p->message_id.len, (char *)p->message_id.bytes);
  }
  empty_amqp_pool(&pool);
  keep_when_whole(peer, in);
}

static void on_frame(struct connection *peer, uint8_t type, uint16_t channel, char *payload, size_t len) {
  uint32_t number_be;
  if (type == AMQP_FRAME_METHOD) {
    memcpy(&number_be, payload, 4);
    on_method(peer, channel, ntohl(number_be), payload);
  } else if (type == AMQP_FRAME_HEADER && channel < CHANNELS) {
    on_content(peer, channel, payload, len);
  } else if (type == AMQP_FRAME_BODY && channel < CHANNELS) {
    peer->incoming[channel].missing -= len;
    keep_when_whole(peer, &peer->incoming[channel]);
  }
}

/* ---- the thread ------------------------------------------------------------------------------------------------- */

static bool read_all(int fd, char *data, size_t len) {
  while (len > 0) {
    ssize_t n = recv(fd, data, len, 0);
    if (n <= 0)
      return false;
    data += n;
    len -= (size_t)n;
  }
  return true;
}

/* What was begun, as fast as the other end takes it, until the connection ends. */
static void flood(struct connection *peer) {
  char water[65536];
  if (peer->drop_len == 0)
    return;
  size_t drops = sizeof(water) / peer->drop_len;
  for (size_t i = 0; i < drops; i++)
    memcpy(water + i * peer->drop_len, peer->drop, peer->drop_len);
  uint64_t taken = 0;
  size_t len = drops * peer->drop_len;
  for (size_t at = 0;;) {
    struct pollfd ready = {.fd = peer->fd, .events = POLLOUT | POLLRDHUP};
    if (poll(&ready, 1, -1) <= 0 || ready.revents & (POLLRDHUP | POLLHUP | POLLERR))
      return;
    ssize_t n = send(peer->fd, water + at, len - at, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n <= 0)
      continue; /* poll() says why */
    at += (size_t)n;
    if (at == len)
      at = 0;
    taken += (uint64_t)n;
    pthread_mutex_lock(&peer->script->lock);
    if (taken > peer->script->flooded)
      peer->script->flooded = taken;
    pthread_mutex_unlock(&peer->script->lock);
  }
}

static void read_frames(struct connection *peer) {
  struct amqp_script *script = peer->script;
  char *in = malloc(FRAME_MAX);
  char head[HEAD];
  if (!in)
    abort();
  while (!peer->drop_len && read_all(peer->fd, head, HEAD)) {
    uint16_t channel_be;
    uint32_t len_be;
    memcpy(&channel_be, head + 1, 2);
    memcpy(&len_be, head + 3, 4);
    size_t len = ntohl(len_be);
    if (len >= FRAME_MAX || !read_all(peer->fd, in, len + 1))
      break;
    pthread_mutex_lock(&script->lock);
    on_frame(peer, (uint8_t)head[0], ntohs(channel_be), in, len);
    while (mood(peer) == AMQP_SCRIPT_NO_READ && !script->ending)
      pthread_cond_wait(&script->mood_changed, &script->lock);
    pthread_mutex_unlock(&script->lock);
  }
  free(in);
}

static void *serve(void *arg) {
  struct connection *peer = arg;
  struct amqp_script *script = peer->script;
  char protocol[8];
  pthread_mutex_lock(&script->lock);
  bool welcome = mood(peer) != AMQP_SCRIPT_HANG_UP;
  pthread_mutex_unlock(&script->lock);
  if (welcome && read_all(peer->fd, protocol, sizeof(protocol))) {
    pthread_mutex_lock(&script->lock);
    start(peer);
    pthread_mutex_unlock(&script->lock);
    read_frames(peer);
    flood(peer);
  }
  pthread_mutex_lock(&script->lock);
  close(peer->fd);
  peer->fd = -1;
  pthread_mutex_unlock(&script->lock);
  return NULL;
}

static void *run(void *arg) {
  struct amqp_script *script = arg;
  for (bool ending = false; !ending;) {
    int fd = accept(script->listener, NULL, NULL);
    pthread_mutex_lock(&script->lock);
    ending = script->ending;
    if (!ending && fd >= 0) {
      struct connection *peer = calloc(1, sizeof(*peer));
      if (!peer)
        abort();
      *peer = (struct connection){.script = script, .older = script->newest, .number = ++script->connections, .fd = fd};
      script->newest = peer;
      if (pthread_create(&peer->thread, NULL, serve, peer) != 0)
        abort();
    } else if (fd >= 0) {
      close(fd);
    }
    pthread_mutex_unlock(&script->lock);
  }
  return NULL;
}

struct amqp_script *amqp_script_start(void) {
  struct amqp_script *script = calloc(1, sizeof(*script));
  struct sockaddr_in address = {.sin_family = AF_INET};
  socklen_t len = sizeof(address);
  assert_non_null(script);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  script->channel_max = 2047;
  script->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(script->listener, (struct sockaddr *)&address, sizeof(address)), 0);
  assert_int_equal(listen(script->listener, 16), 0);
  assert_int_equal(getsockname(script->listener, (struct sockaddr *)&address, &len), 0);
  script->port = ntohs(address.sin_port);
  pthread_mutex_init(&script->lock, NULL);
  pthread_cond_init(&script->mood_changed, NULL);
  assert_int_equal(pthread_create(&script->thread, NULL, run, script), 0);
  return script;
}

void amqp_script_stop(struct amqp_script *script) {
  pthread_mutex_lock(&script->lock);
  script->ending = true;
  pthread_cond_broadcast(&script->mood_changed);
  for (struct connection *peer = script->newest; peer; peer = peer->older)
    if (peer->fd >= 0)
      shutdown(peer->fd, SHUT_RDWR);
  pthread_mutex_unlock(&script->lock);
  shutdown(script->listener, SHUT_RDWR); /* ends accept() */
  pthread_join(script->thread, NULL);
  for (struct connection *peer = script->newest, *older; peer; peer = older) {
    older = peer->older;
    pthread_join(peer->thread, NULL);
    free(peer);
  }
  close(script->listener);
  pthread_cond_destroy(&script->mood_changed);
  pthread_mutex_destroy(&script->lock);
  free(script);
}

int amqp_script_port(const struct amqp_script *script) { return script->port; }

/* ---- what tests ask and say ---------------------------------------------------------------------------------------
 */

#define LOCKED(statement)                                                                                              \
  do {                                                                                                                 \
    pthread_mutex_lock(&script->lock);                                                                                 \
    statement;                                                                                                         \
    pthread_mutex_unlock(&script->lock);                                                                               \
  } while (0)

void amqp_script_set_mood(struct amqp_script *script, enum amqp_script_mood mood) {
  LOCKED({
    for (unsigned i = 0; i < MOODS; i++)
      script->moods[i] = mood;
    pthread_cond_broadcast(&script->mood_changed);
  });
}

void amqp_script_set_mood_of(struct amqp_script *script, unsigned connection, enum amqp_script_mood mood) {
  LOCKED(*mood_of(script, connection) = mood; pthread_cond_broadcast(&script->mood_changed));
}

void amqp_script_turn_to(struct amqp_script *script, unsigned connection) { LOCKED(script->turned_to = connection); }

/* The lock is held. */
static struct connection *turned_to(const struct amqp_script *script) {
  struct connection *peer = script->newest;
  while (peer && script->turned_to && peer->number != script->turned_to)
    peer = peer->older;
  if (!peer)
    abort();
  return peer;
}

void amqp_script_set_channels(struct amqp_script *script, uint16_t most) { LOCKED(script->channel_max = most); }

void amqp_script_drop(struct amqp_script *script) {
  LOCKED(if (turned_to(script)->fd >= 0) shutdown(turned_to(script)->fd, SHUT_RDWR));
}

static unsigned count_now(struct amqp_script *script, const unsigned *count) {
  unsigned now;
  LOCKED(now = *count);
  return now;
}

unsigned amqp_script_open(struct amqp_script *script) {
  unsigned open = 0;
  LOCKED(for (const struct connection *peer = script->newest; peer; peer = peer->older) open += peer->fd >= 0);
  return open;
}

unsigned amqp_script_connections(struct amqp_script *script) { return count_now(script, &script->connections); }
unsigned amqp_script_consumers(struct amqp_script *script) { return count_now(script, &script->consumers); }
unsigned amqp_script_cancels(struct amqp_script *script) { return count_now(script, &script->cancels); }
unsigned amqp_script_prefetch(struct amqp_script *script) { return count_now(script, &script->prefetch); }
unsigned amqp_script_asked(struct amqp_script *script) { return count_now(script, &script->asked); }
void amqp_script_set_readers(struct amqp_script *script, unsigned readers) { LOCKED(script->readers = readers); }
void amqp_script_bring_rival(struct amqp_script *script) { LOCKED(script->rival = true); }
void amqp_script_refuse_exclusive(struct amqp_script *script) { LOCKED(script->refuses_exclusive = true); }

bool amqp_script_exclusive(struct amqp_script *script) {
  bool exclusive;
  LOCKED(exclusive = script->exclusive);
  return exclusive;
}

unsigned amqp_script_begun(struct amqp_script *script) { return count_now(script, &script->begun); }
unsigned amqp_script_goodbyes(struct amqp_script *script) { return count_now(script, &script->goodbyes); }
unsigned amqp_script_acks(struct amqp_script *script) { return count_now(script, &script->acks); }
unsigned amqp_script_nacks(struct amqp_script *script) { return count_now(script, &script->nacks); }

uint64_t amqp_script_flooded(struct amqp_script *script) {
  uint64_t bytes;
  LOCKED(bytes = script->flooded);
  return bytes;
}

size_t amqp_script_published(struct amqp_script *script) {
  size_t count;
  LOCKED(count = script->published);
  return count;
}

struct amqp_script_message amqp_script_message(struct amqp_script *script, size_t index) {
  struct amqp_script_message message;
  assert_true(index < amqp_script_published(script));
  LOCKED(message = script->messages[index]);
  return message;
}

void amqp_script_method(struct amqp_script *script, uint16_t channel, uint32_t number, void *method) {
  LOCKED(send_method(turned_to(script), channel, number, method));
}

static void send_header(struct connection *peer, uint16_t channel, const char *message_id, uint64_t body_size) {
  amqp_basic_properties_t p = {._flags = message_id ? AMQP_BASIC_MESSAGE_ID_FLAG : 0};
  p.message_id = message_id ? amqp_cstring_bytes(message_id) : amqp_empty_bytes;
  char *at = peer->script->frame + HEAD;
  uint16_t class_be = htons(AMQP_BASIC_CLASS);
  uint64_t size_be = htobe64(body_size);
  memcpy(at, &class_be, 2);
  memset(at + 2, 0, 2);
  memcpy(at + 4, &size_be, 8);
  amqp_bytes_t room = {.len = FRAME_MAX - HEAD - 13, .bytes = at + 12};
  int len = amqp_encode_properties(AMQP_BASIC_CLASS, &p, room);
  if (len < 0)
    abort();
  send_frame(peer, AMQP_FRAME_HEADER, channel, (size_t)len + 12);
}

void amqp_script_header(struct amqp_script *script, uint16_t channel, const char *message_id, uint64_t body_size) {
  LOCKED(send_header(turned_to(script), channel, message_id, body_size));
}

void amqp_script_body(struct amqp_script *script, uint16_t channel, const char *data, size_t len) {
  assert_true(len < FRAME_MAX - HEAD - 1);
  LOCKED(memcpy(script->frame + HEAD, data, len); send_frame(turned_to(script), AMQP_FRAME_BODY, channel, len));
}

void amqp_script_bytes(struct amqp_script *script, const void *data, size_t len) {
  LOCKED(write_all(turned_to(script), data, len));
}

void amqp_script_ack(struct amqp_script *script, uint16_t channel, uint64_t tag, bool multiple) {
  amqp_basic_ack_t ack = {.delivery_tag = tag, .multiple = multiple};
  amqp_script_method(script, channel, AMQP_BASIC_ACK_METHOD, &ack);
}

void amqp_script_nack(struct amqp_script *script, uint16_t channel, uint64_t tag, bool multiple) {
  amqp_basic_nack_t nack = {.delivery_tag = tag, .multiple = multiple};
  amqp_script_method(script, channel, AMQP_BASIC_NACK_METHOD, &nack);
}

void amqp_script_return(struct amqp_script *script, uint16_t channel, const char *message_id) {
  amqp_basic_return_t ret = {.reply_code = AMQP_NO_ROUTE,
                             .reply_text = amqp_cstring_bytes("NO_ROUTE"),
                             .exchange = amqp_cstring_bytes("e"),
                             .routing_key = amqp_cstring_bytes("k")};
  amqp_script_method(script, channel, AMQP_BASIC_RETURN_METHOD, &ret);
  amqp_script_header(script, channel, message_id, 2);
  amqp_script_body(script, channel, "{}", 2);
}

void amqp_script_close_channel(struct amqp_script *script, uint16_t channel, uint16_t code, const char *text) {
  LOCKED(close_channel(turned_to(script), channel, code, text));
}

void amqp_script_deliver(struct amqp_script *script, uint16_t channel, uint64_t tag) {
  amqp_basic_deliver_t deliver = {.consumer_tag = amqp_cstring_bytes("c"), .delivery_tag = tag};
  amqp_script_method(script, channel, AMQP_BASIC_DELIVER_METHOD, &deliver);
}
