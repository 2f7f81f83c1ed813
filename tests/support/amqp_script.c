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

enum { HEAD = 7, FRAME_MAX = 131072, MESSAGES = 20000, CHANNELS = 16 };

/* A message that is coming in on a channel. */
struct incoming {
  bool open;
  size_t missing;
  struct amqp_script_message message;
};

struct amqp_script {
  int listener, port;
  pthread_t thread;
  pthread_mutex_t lock; /* everything below */
  pthread_cond_t mood_changed;
  int fd;
  bool ending;
  enum amqp_script_mood mood;
  uint16_t channel_max;
  unsigned connections, consumers, begun, goodbyes, acks, nacks, cancels, asked, readers;
  bool exclusive, refuses_exclusive, rival; /* the last basic.consume; it refuses such; one comes with each */
  uint64_t next_tag[CHANNELS];
  struct incoming incoming[CHANNELS];
  struct amqp_script_message messages[MESSAGES];
  size_t published;
  uint64_t flooded;
  size_t drop_len; /* one drop of the flood that is to follow; 0 = none */
  char drop[32];
  char frame[FRAME_MAX];
};

/* ---- sending; the lock is held ---------------------------------------------------------------------------------- */

static void write_all(struct amqp_script *script, const void *data, size_t len) {
  const char *at = data;
  while (len > 0 && script->fd >= 0) {
    ssize_t n = send(script->fd, at, len, MSG_NOSIGNAL);
    if (n <= 0)
      return; /* the plugin has closed: the test sees it */
    at += n;
    len -= (size_t)n;
  }
}

static void send_frame(struct amqp_script *script, uint8_t type, uint16_t channel, size_t len) {
  char *f = script->frame;
  uint16_t channel_be = htons(channel);
  uint32_t len_be = htonl((uint32_t)len);
  f[0] = (char)type;
  memcpy(f + 1, &channel_be, 2);
  memcpy(f + 3, &len_be, 4);
  f[HEAD + len] = (char)AMQP_FRAME_END;
  write_all(script, f, HEAD + len + 1);
}

static void send_method(struct amqp_script *script, uint16_t channel, uint32_t number, void *method) {
  uint32_t number_be = htonl(number);
  amqp_bytes_t room = {.len = FRAME_MAX - HEAD - 5, .bytes = script->frame + HEAD + 4};
  memcpy(script->frame + HEAD, &number_be, 4);
  int len = amqp_encode_method(number, method, room);
  if (len < 0)
    abort();
  send_frame(script, AMQP_FRAME_METHOD, channel, (size_t)len + 4);
}

static void answer(struct amqp_script *script, uint16_t channel, uint32_t number) {
  union {
    amqp_connection_open_ok_t open;
    amqp_channel_open_ok_t channel_open;
    amqp_basic_consume_ok_t consume;
    char zero[64];
  } empty = {.zero = {0}};
  send_method(script, channel, number, &empty);
}

static void close_channel(struct amqp_script *script, uint16_t channel, uint16_t code, const char *text) {
  amqp_channel_close_t close = {.reply_code = code, .reply_text = amqp_cstring_bytes(text), .class_id = 60};
  send_method(script, channel, AMQP_CHANNEL_CLOSE_METHOD, &close);
}

static void begin_flood(struct amqp_script *script, const void *drop, size_t len) {
  memcpy(script->drop, drop, len);
  script->drop_len = len;
}

/* basic.ack: a frame that rabbitmq-c keeps for whoever asks for that channel. */
static void flood_channel(struct amqp_script *script, uint8_t channel) {
  char ack[] = {1, 0, (char)channel, 0, 0, 0, 13, 0, 60, 0, 80, 0, 0, 0, 0, 0, 0, 0, 1, 0, (char)AMQP_FRAME_END};
  begin_flood(script, ack, sizeof(ack));
}

/* ---- receiving; the lock is held -------------------------------------------------------------------------------- */

static void start(struct amqp_script *script) {
  amqp_connection_start_t start = {.version_major = 0,
                                   .version_minor = 9,
                                   .mechanisms = amqp_cstring_bytes("PLAIN"),
                                   .locales = amqp_cstring_bytes("en_US")};
  if (script->mood == AMQP_SCRIPT_FLOOD_HELLO)
    begin_flood(script, "\x16\3\3\0\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 21);
  else if (script->mood != AMQP_SCRIPT_NO_START)
    send_method(script, 0, AMQP_CONNECTION_START_METHOD, &start);
  if (script->mood == AMQP_SCRIPT_FLOOD_HEARTBEATS)
    begin_flood(script, "\x8\0\0\0\0\0\0\xce", 8);
}

/* Behind its number: 16 bits, queue, consumer tag, bits. */
static bool is_exclusive(const char *payload) {
  const unsigned char *at = (const unsigned char *)payload + 4 + 2;
  at += 1 + *at;
  at += 1 + *at;
  return *at & 4;
}

static void consume(struct amqp_script *script, uint16_t channel, const char *payload) {
  script->exclusive = is_exclusive(payload);
  script->consumers++;
  if (script->rival)
    script->readers = 2;
  if (script->exclusive && script->refuses_exclusive)
    close_channel(script, channel, 403, "ACCESS_REFUSED - queue 'answers' in vhost '/' in exclusive use");
  else
    answer(script, channel, AMQP_BASIC_CONSUME_OK_METHOD);
}

static void tell_readers(struct amqp_script *script, uint16_t channel) {
  amqp_queue_declare_ok_t ok = {.queue = amqp_cstring_bytes("answers"), .consumer_count = script->readers};
  script->asked++;
  send_method(script, channel, AMQP_QUEUE_DECLARE_OK_METHOD, &ok);
}

static void on_channel_method(struct amqp_script *script, uint16_t channel, uint32_t number, const char *payload) {
  switch (number) {
  case AMQP_CHANNEL_OPEN_METHOD:
    script->next_tag[channel] = 1;
    script->incoming[channel].open = false;
    if (script->mood == AMQP_SCRIPT_FLOOD_CHANNEL)
      flood_channel(script, 7);
    else if (script->mood != AMQP_SCRIPT_NO_CHANNEL)
      answer(script, channel, AMQP_CHANNEL_OPEN_OK_METHOD);
    break;
  case AMQP_CONFIRM_SELECT_METHOD:
    if (script->mood == AMQP_SCRIPT_REFUSE_CHANNEL)
      close_channel(script, channel, 540, "NOT_IMPLEMENTED");
    else
      answer(script, channel, AMQP_CONFIRM_SELECT_OK_METHOD);
    break;
  case AMQP_CHANNEL_CLOSE_METHOD:
    if (script->mood == AMQP_SCRIPT_CROSS_CLOSE)
      close_channel(script, channel, 406, "PRECONDITION_FAILED");
    answer(script, channel, AMQP_CHANNEL_CLOSE_OK_METHOD);
    break;
  case AMQP_BASIC_QOS_METHOD:
    answer(script, channel, AMQP_BASIC_QOS_OK_METHOD);
    break;
  case AMQP_BASIC_CONSUME_METHOD:
    consume(script, channel, payload);
    break;
  case AMQP_BASIC_CANCEL_METHOD:
    script->cancels++;
    break;
  case AMQP_QUEUE_DECLARE_METHOD:
    tell_readers(script, channel);
    break;
  case AMQP_BASIC_PUBLISH_METHOD:
    script->begun++;
    script->incoming[channel] = (struct incoming){.open = true};
    script->incoming[channel].message = (struct amqp_script_message){channel, script->next_tag[channel]++, "", 0};
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

static void on_method(struct amqp_script *script, uint16_t channel, uint32_t number, const char *payload) {
  amqp_connection_tune_t tune = {.channel_max = script->mood == AMQP_SCRIPT_ONE_CHANNEL ? 1 : script->channel_max,
                                 .frame_max = FRAME_MAX,
                                 .heartbeat = 60};
  if (number == AMQP_CONNECTION_START_OK_METHOD)
    send_method(script, 0, AMQP_CONNECTION_TUNE_METHOD, &tune);
  else if (number == AMQP_CONNECTION_OPEN_METHOD && script->mood == AMQP_SCRIPT_FLOOD_OPEN)
    flood_channel(script, 1);
  else if (number == AMQP_CONNECTION_OPEN_METHOD)
    answer(script, 0, AMQP_CONNECTION_OPEN_OK_METHOD);
  else if (number == AMQP_CONNECTION_CLOSE_METHOD)
    script->goodbyes++, answer(script, 0, AMQP_CONNECTION_CLOSE_OK_METHOD);
  else if (channel > 0 && channel < CHANNELS)
    on_channel_method(script, channel, number, payload);
}

static void keep_when_whole(struct amqp_script *script, struct incoming *in) {
  if (!in->open || in->missing > 0)
    return;
  in->open = false;
  if (script->published == MESSAGES)
    abort();
  script->messages[script->published++] = in->message;
}

static void on_content(struct amqp_script *script, uint16_t channel, char *payload, size_t len) {
  struct incoming *in = &script->incoming[channel];
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
  keep_when_whole(script, in);
}

static void on_frame(struct amqp_script *script, uint8_t type, uint16_t channel, char *payload, size_t len) {
  uint32_t number_be;
  if (type == AMQP_FRAME_METHOD) {
    memcpy(&number_be, payload, 4);
    on_method(script, channel, ntohl(number_be), payload);
  } else if (type == AMQP_FRAME_HEADER && channel < CHANNELS) {
    on_content(script, channel, payload, len);
  } else if (type == AMQP_FRAME_BODY && channel < CHANNELS) {
    script->incoming[channel].missing -= len;
    keep_when_whole(script, &script->incoming[channel]);
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
static void flood(struct amqp_script *script, int fd) {
  static char water[65536];
  if (script->drop_len == 0)
    return;
  size_t drops = sizeof(water) / script->drop_len;
  for (size_t i = 0; i < drops; i++)
    memcpy(water + i * script->drop_len, script->drop, script->drop_len);
  uint64_t taken = 0;
  size_t len = drops * script->drop_len;
  for (size_t at = 0;;) {
    struct pollfd ready = {.fd = fd, .events = POLLOUT | POLLRDHUP};
    if (poll(&ready, 1, -1) <= 0 || ready.revents & (POLLRDHUP | POLLHUP | POLLERR))
      return;
    ssize_t n = send(fd, water + at, len - at, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n <= 0)
      continue; /* poll() says why */
    at += (size_t)n;
    if (at == len)
      at = 0;
    taken += (uint64_t)n;
    pthread_mutex_lock(&script->lock);
    if (taken > script->flooded)
      script->flooded = taken;
    pthread_mutex_unlock(&script->lock);
  }
}

static void serve(struct amqp_script *script, int fd) {
  char *in = malloc(FRAME_MAX);
  char head[HEAD];
  if (!in)
    abort();
  bool alive = read_all(fd, head, 8 - 1) && read_all(fd, in, 1); /* the protocol header has 8 bytes */
  pthread_mutex_lock(&script->lock);
  if (alive)
    start(script);
  pthread_mutex_unlock(&script->lock);
  while (alive && !script->drop_len && read_all(fd, head, HEAD)) {
    uint16_t channel_be;
    uint32_t len_be;
    memcpy(&channel_be, head + 1, 2);
    memcpy(&len_be, head + 3, 4);
    size_t len = ntohl(len_be);
    if (len >= FRAME_MAX || !read_all(fd, in, len + 1))
      break;
    pthread_mutex_lock(&script->lock);
    on_frame(script, (uint8_t)head[0], ntohs(channel_be), in, len);
    while (script->mood == AMQP_SCRIPT_NO_READ && !script->ending)
      pthread_cond_wait(&script->mood_changed, &script->lock);
    pthread_mutex_unlock(&script->lock);
  }
  flood(script, fd);
  free(in);
}

static void *run(void *arg) {
  struct amqp_script *script = arg;
  for (;;) {
    int fd = accept(script->listener, NULL, NULL);
    pthread_mutex_lock(&script->lock);
    bool ending = script->ending;
    script->fd = fd;
    script->connections++;
    script->drop_len = 0;
    memset(script->incoming, 0, sizeof(script->incoming));
    pthread_mutex_unlock(&script->lock);
    if (!ending && fd >= 0)
      serve(script, fd);
    pthread_mutex_lock(&script->lock);
    script->fd = -1;
    ending = script->ending;
    pthread_mutex_unlock(&script->lock);
    if (fd >= 0)
      close(fd);
    if (ending)
      return NULL;
  }
}

struct amqp_script *amqp_script_start(void) {
  struct amqp_script *script = calloc(1, sizeof(*script));
  struct sockaddr_in address = {.sin_family = AF_INET};
  socklen_t len = sizeof(address);
  assert_non_null(script);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  script->fd = -1;
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
  if (script->fd >= 0)
    shutdown(script->fd, SHUT_RDWR);
  pthread_mutex_unlock(&script->lock);
  shutdown(script->listener, SHUT_RDWR); /* ends accept() */
  pthread_join(script->thread, NULL);
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
  LOCKED(script->mood = mood; pthread_cond_broadcast(&script->mood_changed));
}

void amqp_script_set_channels(struct amqp_script *script, uint16_t most) { LOCKED(script->channel_max = most); }

void amqp_script_drop(struct amqp_script *script) { LOCKED(if (script->fd >= 0) shutdown(script->fd, SHUT_RDWR)); }

static unsigned count_now(struct amqp_script *script, const unsigned *count) {
  unsigned now;
  LOCKED(now = *count);
  return now;
}

unsigned amqp_script_connections(struct amqp_script *script) { return count_now(script, &script->connections); }
unsigned amqp_script_consumers(struct amqp_script *script) { return count_now(script, &script->consumers); }
unsigned amqp_script_cancels(struct amqp_script *script) { return count_now(script, &script->cancels); }
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
  LOCKED(send_method(script, channel, number, method));
}

static void send_header(struct amqp_script *script, uint16_t channel, const char *message_id, uint64_t body_size) {
  amqp_basic_properties_t p = {._flags = message_id ? AMQP_BASIC_MESSAGE_ID_FLAG : 0};
  p.message_id = message_id ? amqp_cstring_bytes(message_id) : amqp_empty_bytes;
  char *at = script->frame + HEAD;
  uint16_t class_be = htons(AMQP_BASIC_CLASS);
  uint64_t size_be = htobe64(body_size);
  memcpy(at, &class_be, 2);
  memset(at + 2, 0, 2);
  memcpy(at + 4, &size_be, 8);
  amqp_bytes_t room = {.len = FRAME_MAX - HEAD - 13, .bytes = at + 12};
  int len = amqp_encode_properties(AMQP_BASIC_CLASS, &p, room);
  if (len < 0)
    abort();
  send_frame(script, AMQP_FRAME_HEADER, channel, (size_t)len + 12);
}

void amqp_script_header(struct amqp_script *script, uint16_t channel, const char *message_id, uint64_t body_size) {
  LOCKED(send_header(script, channel, message_id, body_size));
}

void amqp_script_body(struct amqp_script *script, uint16_t channel, const char *data, size_t len) {
  assert_true(len < FRAME_MAX - HEAD - 1);
  LOCKED(memcpy(script->frame + HEAD, data, len); send_frame(script, AMQP_FRAME_BODY, channel, len));
}

void amqp_script_bytes(struct amqp_script *script, const void *data, size_t len) {
  LOCKED(write_all(script, data, len));
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
  LOCKED(close_channel(script, channel, code, text));
}

void amqp_script_deliver(struct amqp_script *script, uint16_t channel, uint64_t tag) {
  amqp_basic_deliver_t deliver = {.consumer_tag = amqp_cstring_bytes("c"), .delivery_tag = tag};
  amqp_script_method(script, channel, AMQP_BASIC_DELIVER_METHOD, &deliver);
}
