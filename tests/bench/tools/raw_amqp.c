/* SPDX-License-Identifier: MIT
 *
 * tests/bench/tools/raw_amqp.c - rows into a queue, persistent, mandatory and confirmed, with what plugins/amqp sends.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "bench_amqp.h"
#include "raw_loop.h"

struct amqp {
  const struct raw_settings *settings;
  amqp_connection_state_t connection;
  uint64_t *ids;         /* of the messages in flight, by delivery tag modulo the window; 0 = confirmed */
  uint64_t next, oldest; /* delivery tags */
};

static void *open_amqp(const struct raw_settings *s) {
  struct amqp *a = calloc(1, sizeof *a);
  if (!a || !s->to || !s->topic || !(a->ids = calloc(s->window, sizeof *a->ids)))
    raw_fail("amqp", "give a URL and a queue");
  a->settings = s;
  a->next = a->oldest = 1;
  a->connection = bench_amqp_connect(s->to, "raw_loop");
  amqp_confirm_select(a->connection, BENCH_AMQP_CHANNEL);
  bench_amqp_check("confirms", amqp_get_rpc_reply(a->connection));
  return a;
}

static amqp_table_entry_t text(const char *name, const char *value) {
  amqp_table_entry_t entry = {.key = amqp_cstring_bytes(name)};
  entry.value.kind = AMQP_FIELD_KIND_UTF8;
  entry.value.value.bytes = amqp_cstring_bytes(value);
  return entry;
}

static void send_amqp(void *sink, const struct raw_row *row) {
  struct amqp *a = sink;
  char due[RAW_DUE_TEXT];
  raw_due_header(row->due, due);
  amqp_table_entry_t headers[] = {text("duebox-attempt", "1"), text("duebox-route", a->settings->route),
                                  text("duebox-due", due)};
  const amqp_basic_properties_t properties = {
      ._flags = AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_PRIORITY_FLAG |
                AMQP_BASIC_TIMESTAMP_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG | AMQP_BASIC_CORRELATION_ID_FLAG |
                AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_APP_ID_FLAG,
      .headers = {.num_entries = sizeof headers / sizeof headers[0], .entries = headers},
      .delivery_mode = AMQP_DELIVERY_PERSISTENT,
      .priority = 5,
      .timestamp = 1767323045,
      .message_id = {.len = row->message_id_len, .bytes = (void *)row->message_id},
      .correlation_id = {.len = row->message_id_len, .bytes = (void *)row->message_id},
      .content_type = amqp_cstring_bytes("application/json"),
      .app_id = amqp_cstring_bytes("duebox")};
  const amqp_bytes_t body = {.len = row->payload_len, .bytes = (void *)row->payload};
  int failed = amqp_basic_publish(a->connection, BENCH_AMQP_CHANNEL, amqp_empty_bytes,
                                  amqp_cstring_bytes(a->settings->topic), 1, 0, &properties, body);
  if (failed)
    raw_fail("publish", amqp_error_string2(failed));
  a->ids[a->next++ % a->settings->window] = row->id;
}

static size_t confirmed(struct amqp *a, uint64_t from, uint64_t to, uint64_t *ids) {
  size_t count = 0;
  for (uint64_t tag = from; tag <= to; tag++) {
    uint64_t *id = &a->ids[tag % a->settings->window];
    if (*id)
      ids[count++] = *id;
    *id = 0;
  }
  while (a->oldest < a->next && !a->ids[a->oldest % a->settings->window])
    a->oldest++;
  return count;
}

static size_t take_frame(struct amqp *a, const amqp_frame_t *frame, uint64_t *ids) {
  if (frame->frame_type != AMQP_FRAME_METHOD)
    return 0;
  if (frame->payload.method.id != AMQP_BASIC_ACK_METHOD)
    raw_fail("confirm", amqp_method_name(frame->payload.method.id));
  const amqp_basic_ack_t *ack = frame->payload.method.decoded;
  return confirmed(a, ack->multiple ? a->oldest : ack->delivery_tag, ack->delivery_tag, ids);
}

/* The ids of one frame may be as many as the window. */
static size_t reap_amqp(void *sink, uint64_t *ids, size_t cap, int wait_ms) {
  struct amqp *a = sink;
  size_t count = 0;
  struct timeval limit = {.tv_usec = (long)wait_ms * 1000};
  amqp_maybe_release_buffers(a->connection);
  while (cap - count >= a->next - a->oldest && a->next > a->oldest) {
    amqp_frame_t frame;
    int status = amqp_simple_wait_frame_noblock(a->connection, &frame, &limit);
    if (status == AMQP_STATUS_TIMEOUT)
      break;
    if (status != AMQP_STATUS_OK)
      raw_fail("confirm", amqp_error_string2(status));
    count += take_frame(a, &frame, ids + count);
    limit.tv_usec = 0;
  }
  return count;
}

static void close_amqp(void *sink) {
  struct amqp *a = sink;
  bench_amqp_check("close", amqp_connection_close(a->connection, AMQP_REPLY_SUCCESS));
  amqp_destroy_connection(a->connection);
  free(a->ids);
  free(a);
}

const struct raw_sink raw_amqp = {"amqp", open_amqp, send_amqp, reap_amqp, close_amqp};
