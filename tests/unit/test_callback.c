/* SPDX-License-Identifier: MIT
 *
 * Callback URLs: a token is good for its message id, row and attempt, and for nothing else (P1: a repeated callback of
 * an earlier task would end a later one that uses its message id).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/callback.h"

static char host[] = "h", base_url[] = "http://h:1", secret[] = "s", other[] = "t";

static const char *token_of(char *url) { return strrchr(url, '/') + 1; }

static void a_token_is_for_one_attempt_of_one_row(void **state) {
  const struct callbacks_config config = {.host = host, .base_url = base_url, .secret = secret};
  char forged[96];
  uint64_t row = 0;
  char *url = callback_url(&config, "m/1", 17, 2);
  assert_non_null(url);
  assert_memory_equal(url, "http://h:1/callback/m%2F1/2/17.", 31);
  const char *token = token_of(url);
  assert_true(callback_verify(&config, "m/1", 2, token, &row));
  assert_int_equal(row, 17);
  assert_false(callback_verify(&config, "m/1", 3, token, &row));
  assert_false(callback_verify(&config, "m/2", 2, token, &row));
  static const char *const rows[] = {"18", "+17", "-17", " 17", "0", "", "x", "18446744073709551633"};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    snprintf(forged, sizeof forged, "%s%s", rows[i], strchr(token, '.'));
    assert_false(callback_verify(&config, "m/1", 2, forged, &row));
  }
  snprintf(forged, sizeof forged, "%sA", token);
  assert_false(callback_verify(&config, "m/1", 2, forged, &row));
  forged[strlen(token) - 1] = '\0';
  assert_false(callback_verify(&config, "m/1", 2, forged, &row));
  assert_false(callback_verify(&config, "m/1", 2, "", &row));
  const struct callbacks_config rotated = {.host = host, .secret = other, .previous_secret = secret};
  assert_true(callback_verify(&rotated, "m/1", 2, token, &row));
  const struct callbacks_config strange = {.host = host, .secret = other};
  assert_false(callback_verify(&strange, "m/1", 2, token, &row));
  free(url);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_token_is_for_one_attempt_of_one_row)};
  return cmocka_run_group_tests_name("callback", tests, NULL, NULL);
}
