/* SPDX-License-Identifier: MIT
 *
 * Callback URLs: a token is good for its message id, row and attempt, and for nothing else (P1: a repeated callback of
 * an earlier task would end a later one that uses its message id). A URL comes back whole through proxies and clients
 * that decode and normalise paths: else the consumer's answer is lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/callback.h"
#include "core/callback_id.h"
#include "core/task.h"

static char host[] = "h", base_url[] = "http://h:1", secret[] = "s", other[] = "t";

static const char *token_of(char *url) { return strrchr(url, '/') + 1; }

static bool verify(const struct callbacks_config *config, const char *message_id, uint32_t attempt, const char *token) {
  struct callback_copy copy = {.attempt = attempt};
  return callback_verify(config, message_id, token, &copy);
}

static void a_token_is_for_one_attempt_of_one_row(void **state) {
  const struct callbacks_config config = {.host = host, .base_url = base_url, .secret = secret};
  struct callback_copy copy = {.attempt = 2, .row = 17};
  char forged[96];
  char *url = callback_url(&config, "m/1", &copy);
  assert_non_null(url);
  assert_memory_equal(url, "http://h:1/callback/~6d2f31/2/17.", 33);
  const char *token = token_of(url);
  copy = (struct callback_copy){.attempt = 2, .version = 5};
  assert_true(callback_verify(&config, "m/1", token, &copy));
  assert_true(copy.row == 17 && copy.version == 0);
  assert_false(verify(&config, "m/1", 3, token));
  assert_false(verify(&config, "m/2", 2, token));
  static const char *const rows[] = {"18",  "+17",  "-17", " 17", "0", "", "x", "18446744073709551633",
                                     "17-", "17-0", "17-5"};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    snprintf(forged, sizeof forged, "%s%s", rows[i], strchr(token, '.'));
    assert_false(verify(&config, "m/1", 2, forged));
  }
  snprintf(forged, sizeof forged, "%sA", token);
  assert_false(verify(&config, "m/1", 2, forged));
  forged[strlen(token) - 1] = '\0';
  assert_false(verify(&config, "m/1", 2, forged));
  assert_false(verify(&config, "m/1", 2, ""));
  const struct callbacks_config elsewhere = {
      .host = host, .base_url = base_url, .secret = secret, .previous_secret = secret, .outbox = "staging.outbox"};
  const struct callbacks_config here = {.host = host, .base_url = base_url, .secret = secret, .outbox = "shop.outbox"};
  char *there = callback_url(&elsewhere, "m/1", &(struct callback_copy){.attempt = 2, .row = 17});
  assert_true(verify(&elsewhere, "m/1", 2, token_of(there)));
  assert_false(verify(&here, "m/1", 2, token_of(there))); /* the same secret, another outbox */
  assert_false(verify(&here, "m/1", 2, token));           /* of a program that did not tell them apart, */
  assert_true(verify(&elsewhere, "m/1", 2, token));       /* unless its secret is the one before */
  free(there);
  const struct callbacks_config rotated = {.host = host, .secret = other, .previous_secret = secret};
  assert_true(verify(&rotated, "m/1", 2, token));
  const struct callbacks_config strange = {.host = host, .secret = other};
  assert_false(verify(&strange, "m/1", 2, token));
  free(url);
}

/* Without a slash too many, which a listener without a proxy that merges slashes does not know: consumers use the URL
 * as it came. */
static void a_slash_at_the_end_of_the_base_url_is_none_of_the_path(void **state) {
  static const char *const bases[][2] = {{"http://h:1", "http://h:1/callback/m/1/17."},
                                         {"http://h:1/", "http://h:1/callback/m/1/17."},
                                         {"http://h:1//", "http://h:1/callback/m/1/17."},
                                         {"https://h/x", "https://h/x/callback/m/1/17."},
                                         {"https://h/x/", "https://h/x/callback/m/1/17."}};
  for (size_t i = 0; i < sizeof bases / sizeof bases[0]; i++) {
    const struct callbacks_config config = {.host = host, .base_url = bases[i][0], .secret = secret};
    char *url = callback_url(&config, "m", &(struct callback_copy){.attempt = 1, .row = 17});
    assert_non_null(url);
    if (strncmp(url, bases[i][1], strlen(bases[i][1])) != 0)
      fail_msg("%s: %s", bases[i][0], url);
    free(url);
  }
}

/* It says which version of the row was sent, so that nobody has to ask who sent it; and nobody can say another one. */
static void a_token_names_the_version_that_was_sent(void **state) {
  const struct callbacks_config config = {.host = host, .base_url = base_url, .secret = secret};
  static const struct duebox_bytes changed_at = {"2026-11-22 17:25:31.123456", 26}, none = {"", 0};
  static const char *const others[] = {"17", "17-261122172531123457", "1-7", "17-+261122172531123456"};
  char forged[96];
  assert_int_equal(task_version(&none), 0);
  assert_int_equal(task_version(&changed_at), 261122172531123456);
  struct callback_copy copy = {.attempt = 2, .row = 17, .version = task_version(&changed_at)};
  char *url = callback_url(&config, "m", &copy);
  assert_non_null(url);
  const char *token = token_of(url);
  copy = (struct callback_copy){.attempt = 2, .lane = 9};
  assert_true(callback_verify(&config, "m", token, &copy));
  assert_true(copy.row == 17 && copy.version == 261122172531123456 && copy.lane == 0);
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    snprintf(forged, sizeof forged, "%s%s", others[i], strchr(token, '.'));
    assert_false(verify(&config, "m", 2, forged));
  }
  free(url);
}

/* It says which route's answer it is, so that those of one do not wait behind those of another (P8); and nobody can say
 * another one. */
static void a_token_names_the_lane_of_its_route(void **state) {
  const struct callbacks_config config = {.host = host, .base_url = base_url, .secret = secret};
  static const char *const others[] = {"17-5", "17-5-1", "17-5-02", "17-5-", "17-5-65536", "17-5-4294967298"};
  char forged[96];
  assert_in_range(callback_lane("crm.push"), 1, 65535);
  assert_int_equal(callback_lane("crm.push"), callback_lane("crm.push"));
  assert_int_not_equal(callback_lane("crm.push"), callback_lane("invoice.send"));
  struct callback_copy copy = {.attempt = 2, .row = 17, .version = 5, .lane = 2};
  char *url = callback_url(&config, "m", &copy);
  assert_non_null(url);
  const char *token = token_of(url);
  copy = (struct callback_copy){.attempt = 2};
  assert_true(callback_verify(&config, "m", token, &copy));
  assert_true(copy.row == 17 && copy.version == 5 && copy.lane == 2);
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    snprintf(forged, sizeof forged, "%s%s", others[i], strchr(token, '.'));
    assert_false(verify(&config, "m", 2, forged));
  }
  free(url);
}

/* In the SQL mode NO_AUTO_VALUE_ON_ZERO a row may have the id 0. Its consumer answers like any other, and is not called
 * again until the task is dead. */
static void a_row_may_have_the_id_0(void **state) {
  const struct callbacks_config config = {.host = host, .base_url = base_url, .secret = secret};
  static const char *const others[] = {"00-5", "0-05", "-5", "0-", "1-5", "0"};
  char forged[96];
  struct callback_copy copy = {.attempt = 1, .row = 0, .version = 5};
  char *url = callback_url(&config, "m", &copy);
  assert_non_null(url);
  copy = (struct callback_copy){.attempt = 1, .row = 7};
  assert_true(callback_verify(&config, "m", token_of(url), &copy));
  assert_true(copy.row == 0 && copy.version == 5);
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    snprintf(forged, sizeof forged, "%s%s", others[i], strchr(token_of(url), '.'));
    assert_false(verify(&config, "m", 1, forged));
  }
  free(url);
}

/* Between a daemon and its consumer a proxy may decode a path and take "." and ".." away (RFC 3986, section 6.2.2). */
static void an_id_comes_through_every_proxy(void **state) {
  static const char longest[] = "////////////////////////////////////////////////////////////////";
  static const struct {
    const char *id, *segment;
  } rows[] = {{"01937f3e-5a1c-7c9e-8d55-0d1c6f0a7b21", "01937f3e-5a1c-7c9e-8d55-0d1c6f0a7b21"},
              {"Order_7.eu-west", "Order_7.eu-west"},
              {"0", "0"},
              {"-", "-"},
              {".", "~2e"},
              {"..", "~2e2e"},
              {".env", "~2e656e76"},
              {"a.", "~612e"},
              {"a..b", "~612e2e62"},
              {"a/b", "~612f62"},
              {"a%2Fb", "~6125324662"},
              {"a+b", "~612b62"},
              {"~2e", "~7e3265"},
              {"~", "~7e"},
              {"\\?#", "~5c3f23"},
              {longest, NULL}};
  const struct callbacks_config config = {.host = host, .base_url = base_url, .secret = secret};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const struct callback_copy copy = {.attempt = 1, .row = 5};
    char *url = callback_url(&config, rows[i].id, &copy), id[RECORD_ID_MAX + 1];
    assert_non_null(url);
    char *segment = url + strlen("http://h:1/callback/"), *end = strchr(segment, '/');
    assert_string_equal(strchr(end + 1, '/') + 1, token_of(url));
    *end = '\0';
    if (rows[i].segment)
      assert_string_equal(segment, rows[i].segment);
    assert_int_equal(
        strspn(segment + (*segment == '~'), "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."),
        strlen(segment + (*segment == '~')));
    assert_true(callback_id_read(segment, id));
    assert_string_equal(id, rows[i].id);
    assert_true(verify(&config, id, 1, end + 1 + 2));
    free(url);
  }
}

/* URLs that were given out before an upgrade hold the id itself, which the router has percent-decoded. */
static void an_older_url_is_taken(void **state) {
  static const char *const ids[] = {"a/b", "..", "~", "~6", "~6d", "~2E", "~2e2e2", "~20", "~7f", "~6d2f3", "~xy"};
  char id[RECORD_ID_MAX + 1], text[2 * RECORD_ID_MAX + 8] = "~";
  for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
    assert_true(callback_id_read(ids[i], id));
    assert_string_equal(id, ids[i]);
  }
  memset(text, 'x', RECORD_ID_MAX);
  assert_true(callback_id_read(text, id));
  text[RECORD_ID_MAX] = 'x';
  assert_false(callback_id_read(text, id));
  memset(text, '2', 2 * RECORD_ID_MAX + 3); /* of an id that is too long */
  text[0] = '~';
  assert_false(callback_id_read(text, id));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_token_is_for_one_attempt_of_one_row),
                                     cmocka_unit_test(a_row_may_have_the_id_0),
                                     cmocka_unit_test(a_slash_at_the_end_of_the_base_url_is_none_of_the_path),
                                     cmocka_unit_test(a_token_names_the_version_that_was_sent),
                                     cmocka_unit_test(a_token_names_the_lane_of_its_route),
                                     cmocka_unit_test(an_id_comes_through_every_proxy),
                                     cmocka_unit_test(an_older_url_is_taken)};
  return cmocka_run_group_tests_name("callback", tests, NULL, NULL);
}
