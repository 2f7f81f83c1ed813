/* SPDX-License-Identifier: MIT
 *
 * Frames as bytes: AMQP 0-9-1, sections 4.2.3 and 4.2.6.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "amqp_encode.h"

static amqp_frame_t body_of(const char *text) {
  amqp_frame_t frame = {.frame_type = AMQP_FRAME_BODY, .channel = 0x0102};
  frame.payload.body_fragment = amqp_cstring_bytes(text);
  return frame;
}

static void a_body_is_framed(void **state) {
  static const unsigned char expected[] = {3,   1,   2,   0,   0,   0,   12,  'h', 'e', 'l',
                                           'l', 'o', ' ', 't', 'h', 'e', 'r', 'e', '!', 0xCE};
  char out[64];
  amqp_frame_t frame = body_of("hello there!");
  assert_int_equal(amqp_encode_frame(&frame, out, sizeof out), sizeof expected);
  assert_memory_equal(out, expected, sizeof expected);
}

static void a_method_is_framed(void **state) {
  amqp_basic_publish_t publish = {
      .exchange = amqp_cstring_bytes("x"), .routing_key = amqp_cstring_bytes("key"), .mandatory = 1};
  amqp_frame_t frame = {.frame_type = AMQP_FRAME_METHOD, .channel = 1};
  frame.payload.method.id = AMQP_BASIC_PUBLISH_METHOD;
  frame.payload.method.decoded = &publish;
  static const unsigned char expected[] = {1, 0, 1, 0, 0, 0, 13, 0, 60, 0, 40, 0, 0, 1, 'x', 3, 'k', 'e', 'y', 1, 0xCE};
  char out[64];
  assert_int_equal(amqp_encode_frame(&frame, out, sizeof out), sizeof expected);
  assert_memory_equal(out, expected, sizeof expected);
}

static void a_content_header_is_framed(void **state) {
  amqp_basic_properties_t properties = {._flags = AMQP_BASIC_DELIVERY_MODE_FLAG, .delivery_mode = 2};
  amqp_frame_t frame = {.frame_type = AMQP_FRAME_HEADER, .channel = 1};
  frame.payload.properties.class_id = AMQP_BASIC_CLASS;
  frame.payload.properties.body_size = 0x0102030405060708;
  frame.payload.properties.decoded = &properties;
  static const unsigned char expected[] = {2, 0, 1, 0, 0, 0, 15, 0, 60, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0x10, 0, 2, 0xCE};
  char out[64];
  assert_int_equal(amqp_encode_frame(&frame, out, sizeof out), sizeof expected);
  assert_memory_equal(out, expected, sizeof expected);
}

static void what_does_not_fit_is_left_out(void **state) {
  char out[64];
  amqp_frame_t frame = body_of("hello there!");
  assert_int_equal(amqp_encode_frame(&frame, out, 20), 20);
  memset(out, '~', sizeof out);
  for (size_t cap = 0; cap < 20; cap++) {
    assert_int_equal(amqp_encode_frame(&frame, out, cap), 0);
    assert_int_equal(out[cap], '~');
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_body_is_framed),
      cmocka_unit_test(a_method_is_framed),
      cmocka_unit_test(a_content_header_is_framed),
      cmocka_unit_test(what_does_not_fit_is_left_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
