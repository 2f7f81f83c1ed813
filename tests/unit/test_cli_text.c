/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_cli_text.c - foreign text on a terminal, and times as text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "cli/text.h"
#include "cli/times.h"
#include "core/base/utf8.h"

static void what_a_terminal_would_obey_is_shown(void **state) {
  static const struct {
    const char *in;
    size_t len;
    const char *out;
  } rows[] = {
#define ROW(in, out) {in, sizeof(in) - 1, out}
      ROW("", ""),
      ROW("plain text, naïve ☃ 漢字 🦊", "plain text, naïve ☃ 漢字 🦊"),
      ROW("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
      ROW("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
      ROW("a\0b", "a\\x00b"),
      ROW("a\r\nb\tc", "a\\r\\nb\\tc"),
      ROW("\x7f", "\\x7f"),
      ROW("\xc2\x9b"
          "31m", /* CSI as one character */
          "\\x9b31m"),
      ROW("\xe2\x80\xae"
          "abc", /* right-to-left override */
          "\\u202eabc"),
      ROW("17\xc2\xad", "17\\xad"), /* a soft hyphen, and others that nobody sees */
      ROW("17\xe2\x81\xa0", "17\\u2060"),
      ROW("17\xe3\x85\xa4", "17\\u3164"),
      ROW("\xff\xfe", "\\xff\\xfe"),
      ROW("\xc0\x9b", "\\xc0\\x9b"),          /* overlong */
      ROW("\xed\xa0\x80", "\\xed\\xa0\\x80"), /* surrogate */
      ROW("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"),
      ROW("\xe2\x82", "\\xe2\\x82"), /* cut through */
#undef ROW
  };
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    char *out = text_safe(rows[i].in, rows[i].len, TEXT_ONE_LINE);
    assert_non_null(out);
    assert_string_equal(out, rows[i].out);
    free(out);
  }
}

/* Whatever the bytes: nothing below a blank, no DEL and no C1 character comes out. */
static void every_pair_of_bytes_is_harmless(void **state) {
  for (int a = 0; a < 256; a++)
    for (int b = 0; b < 256; b++) {
      char in[] = {(char)a, (char)b};
      char *out = text_safe(in, sizeof in, TEXT_ONE_LINE);
      assert_non_null(out);
      for (const unsigned char *p = (const unsigned char *)out; *p; p++) {
        assert_true(*p >= 0x20 && *p != 0x7f);
        assert_false(*p == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0);
      }
      assert_true(text_is_utf8(out, strlen(out)));
      free(out);
    }
}

static void lines_can_be_kept(void **state) {
  char *out = text_safe("a\n\tb\x1b", 5, TEXT_KEEP_LINES);
  assert_string_equal(out, "a\n\tb\\x1b");
  free(out);
}

static void a_cut_character_is_dropped(void **state) {
  assert_int_equal(utf8_whole("ab", 2), 2);
  assert_int_equal(utf8_whole("ab\xc3", 3), 2);
  assert_int_equal(utf8_whole("ab\xc3\xa4", 4), 4);
  assert_int_equal(utf8_whole("ab\xe2\x82", 4), 2);
  assert_int_equal(utf8_whole("ab\xe2\x82\xac", 5), 5);
  assert_int_equal(utf8_whole("\xf0\x9f\xa6", 3), 0);
  assert_int_equal(utf8_whole("\xf0\x9f\xa6\x8a", 4), 4);
  assert_int_equal(utf8_whole("", 0), 0);
  assert_int_equal(utf8_whole("\x80\x80\x80\x80", 4), 4); /* no character at all */
}

static void utf8_is_told_from_bytes(void **state) {
  assert_true(text_is_utf8("", 0));
  assert_true(text_is_utf8("ä\n", 3));
  assert_false(text_is_utf8("a\0", 2));
  assert_false(text_is_utf8("\xe2\x82", 2));
}

static void times_there_and_back(void **state) {
  static const struct {
    int64_t us;
    const char *text;
  } rows[] = {{0, "1970-01-01T00:00:00.000000Z"},
              {INT64_C(1769846400123456), "2026-01-31T08:00:00.123456Z"},
              {INT64_C(4107542400000000), "2100-03-01T00:00:00.000000Z"},
              {INT64_C(7258118399999999), "2199-12-31T23:59:59.999999Z"}};
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    char text[TIME_TEXT_MAX];
    int64_t us;
    rfc3339_print(rows[i].us, text);
    assert_string_equal(text, rows[i].text);
    assert_true(rfc3339_parse(text, &us));
    assert_int_equal(us, rows[i].us);
  }
}

static void spans(void **state) {
  static const struct {
    int64_t us;
    const char *text;
  } rows[] = {{0, "0.0 ms"},
              {1234, "1.2 ms"},
              {12345, "12 ms"},
              {1500000, "1.5 s"},
              {-1500000, "1.5 s"},
              {INT64_C(1743000000), "29 min 3 s"},
              {INT64_C(7260000000), "2 h 1 min"},
              {INT64_C(273600000000), "3 d 4 h"}};
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    char text[32];
    assert_string_equal(span_print(rows[i].us, text, sizeof text), rows[i].text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_a_terminal_would_obey_is_shown),
      cmocka_unit_test(every_pair_of_bytes_is_harmless),
      cmocka_unit_test(lines_can_be_kept),
      cmocka_unit_test(a_cut_character_is_dropped),
      cmocka_unit_test(utf8_is_told_from_bytes),
      cmocka_unit_test(times_there_and_back),
      cmocka_unit_test(spans),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
