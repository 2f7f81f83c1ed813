/* SPDX-License-Identifier: MIT */
#include "amqp_encode.h"

#include <string.h>

enum { START = 7, END = 1, METHOD_HEAD = 4, CONTENT_HEAD = 12 };

/* Big-endian, as everything in AMQP. */
static void put(char *out, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; i++)
    out[i] = (char)(value >> 8 * (bytes - 1 - i));
}

static int encode_method(const amqp_method_t *method, char *out, size_t cap) {
  put(out, method->id, METHOD_HEAD);
  int len = amqp_encode_method(method->id, method->decoded,
                               (amqp_bytes_t){.len = cap - METHOD_HEAD, .bytes = out + METHOD_HEAD});
  return len < 0 ? len : METHOD_HEAD + len;
}

static int encode_content(const amqp_frame_t *frame, char *out, size_t cap) {
  put(out, frame->payload.properties.class_id, 2);
  put(out + 2, 0, 2); /* weight, not used */
  put(out + 4, frame->payload.properties.body_size, 8);
  int len = amqp_encode_properties(frame->payload.properties.class_id, frame->payload.properties.decoded,
                                   (amqp_bytes_t){.len = cap - CONTENT_HEAD, .bytes = out + CONTENT_HEAD});
  return len < 0 ? len : CONTENT_HEAD + len;
}

static int encode_body(const amqp_bytes_t *body, char *out, size_t cap) {
  if (body->len > cap || body->len > INT32_MAX)
    return -1;
  memcpy(out, body->bytes, body->len);
  return (int)body->len;
}

size_t amqp_encode_frame(const amqp_frame_t *frame, char *out, size_t cap) {
  if (cap < START + CONTENT_HEAD + END)
    return 0;
  char *payload = out + START;
  size_t room = cap - START - END;
  int len = -1;
  if (frame->frame_type == AMQP_FRAME_METHOD)
    len = encode_method(&frame->payload.method, payload, room);
  else if (frame->frame_type == AMQP_FRAME_HEADER)
    len = encode_content(frame, payload, room);
  else if (frame->frame_type == AMQP_FRAME_BODY)
    len = encode_body(&frame->payload.body_fragment, payload, room);
  if (len < 0)
    return 0;
  put(out, frame->frame_type, 1);
  put(out + 1, frame->channel, 2);
  put(out + 3, (uint64_t)len, 4);
  payload[len] = (char)AMQP_FRAME_END;
  return START + (size_t)len + END;
}
