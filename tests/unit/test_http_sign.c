/* SPDX-License-Identifier: MIT
 *
 * Signatures of plugins/http: the published vectors of Standard Webhooks, vectors computed with another library
 * (Python's hmac and cryptography), and every way a key can be wrong.
 */
#include "http_sign.h"

#include <openssl/evp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SECRET_A "whsec_plJ3nmyCDGBKInavdOK15jsl"
#define SECRET_B "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
/* The seed of RFC 8032 section 7.1, test 1; as a seed, and with its public half. */
#define ED_SEED "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A="
#define ED_PAIR "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2DXWpgBgrEKt9VL/tPJZAc6DuFy89qmIyWvAhpo9wdRGg=="
#define ED_WRONG_PAIR "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2DWWpgBgrEKt9VL/tPJZAc6DuFy89qmIyWvAhpo9wdRGg=="

#define ID_A "msg_loFOjxBNrRLzqYUf"
#define BODY_A "{\"event_type\":\"ping\",\"data\":{\"success\":true}}"
#define TIME_A 1731705121
#define V1_A "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0="
#define V1A_A "v1a,G9EqSJw1B3ndWNOgWUMgh56W+0nNxEWqX/egWPl+EXgMn6D/99aQk0r3QjMg5iZZ//usnYKC7W745w97PcpyDA=="
#define ID_B "msg_p5jXN8AQM9LWM0D4loKWxJek"
#define BODY_B "{\"test\": 2432232314}"
#define TIME_B 1614265330
#define V1_B "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
#define V1A_B "v1a,fldxM4gAKugP6nnt1hdz3sgGfZ6d99nzrMFnZOELIxbzEHoVmAb2ADpkJK7zgPePmPsle0zV9jSeGlHFG2NVAw=="

static struct duebox_bytes text(const char *s) { return (struct duebox_bytes){s, strlen(s)}; }

static void check(const char *keys, const char *id, int64_t at, struct duebox_bytes body, const char *expected) {
  char list[HTTP_SIGNATURE_CAP] = "";
  assert_true(http_sign(keys, id, at, &body, list));
  assert_string_equal(list, expected);
}

static void published_vectors_v1(void **state) {
  check(SECRET_A, ID_A, TIME_A, text(BODY_A), V1_A);
  check(SECRET_B, ID_B, TIME_B, text(BODY_B), V1_B);
}

static void any_body_v1(void **state) {
  char all[256];
  for (size_t i = 0; i < sizeof(all); i++)
    all[i] = (char)i;
  check(SECRET_B, "m1", 0, text(""), "v1,24UKVStOLYjSp5AVC4SZCbvxKcaCzWSxVHA+qixPLfo=");
  check(SECRET_B, "m2", 4102444800, (struct duebox_bytes){all, sizeof(all)},
        "v1,5obIKaYH9891lKXSX1N/I/Dn1UTQraCtpcNHFiaHogU=");
}

static void vectors_v1a(void **state) {
  check(ED_SEED, ID_A, TIME_A, text(BODY_A), V1A_A);
  check(ED_SEED, ID_B, TIME_B, text(BODY_B), V1A_B);
  check(ED_PAIR, ID_B, TIME_B, text(BODY_B), V1A_B);
}

/* A receiver holds only the public half (RFC 8032 section 7.1, test 1). */
static void a_receiver_can_verify_v1a(void **state) {
  static const unsigned char public[32] = {0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7, 0xd5, 0x4b, 0xfe,
                                           0xd3, 0xc9, 0x64, 0x07, 0x3a, 0x0e, 0xe1, 0x72, 0xf3, 0xda, 0xa6,
                                           0x23, 0x25, 0xaf, 0x02, 0x1a, 0x68, 0xf7, 0x07, 0x51, 0x1a};
  static const char message[] = "id-1.1700000000.hello";
  char list[HTTP_SIGNATURE_CAP] = "";
  unsigned char raw[66];
  struct duebox_bytes body = text("hello");
  assert_true(http_sign(ED_SEED, "id-1", 1700000000, &body, list));
  assert_memory_equal(list, "v1a,", 4);
  assert_int_equal(strlen(list + 4), 88);
  assert_int_equal(EVP_DecodeBlock(raw, (const unsigned char *)list + 4, 88), 66);
  EVP_PKEY *key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, public, sizeof(public));
  EVP_MD_CTX *ctx = EVP_MD_CTX_new();
  assert_int_equal(EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, key), 1);
  assert_int_equal(EVP_DigestVerify(ctx, raw, 64, (const unsigned char *)message, strlen(message)), 1);
  raw[5] ^= 1;
  assert_int_not_equal(EVP_DigestVerify(ctx, raw, 64, (const unsigned char *)message, strlen(message)), 1);
  EVP_MD_CTX_free(ctx);
  EVP_PKEY_free(key);
}

static void several_keys_make_a_list(void **state) {
  char list[HTTP_SIGNATURE_CAP] = "";
  struct duebox_bytes body = text(BODY_B);
  assert_true(http_sign(SECRET_B " \n" ED_SEED "\n", ID_B, TIME_B, &body, list));
  assert_string_equal(list, V1_B " " V1A_B);
  assert_true(http_sign(ED_PAIR, ID_B, TIME_B, &body, list)); /* the previous secret is appended */
  assert_string_equal(list, V1_B " " V1A_B " " V1A_B);
}

/* Two texts of four ed25519 keys are the longest list there can be. */
static void the_longest_list_fits(void **state) {
  static const char four[] = ED_PAIR " " ED_SEED " " ED_PAIR " " ED_SEED;
  char list[HTTP_SIGNATURE_CAP] = "";
  const char *why;
  struct duebox_bytes body = text(BODY_B);
  assert_true(http_sign_check(four, &why));
  assert_true(http_sign(four, ID_B, TIME_B, &body, list));
  assert_true(http_sign(four, ID_B, TIME_B, &body, list));
  assert_int_equal(strlen(list), 8 * strlen(V1A_B) + 7);
}

static void keys_are_checked(void **state) {
  static const struct {
    const char *keys;
    const char *why; /* part of the text; NULL = fine */
  } rows[] = {
      {SECRET_A, NULL},
      {SECRET_B "\n", NULL},
      {ED_SEED, NULL},
      {ED_PAIR, NULL},
      {SECRET_A " " SECRET_B " " ED_SEED, NULL},
      {"", "empty"},
      {" \n", "empty"},
      {"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "begin with whsec_"},
      {"whsec_", "begin with whsec_"},
      {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa", "base64"},                         /* not a multiple of four */
      {"whsec_MfKQ9r8GKYqr*wjUPD8ILPZIo2LaLaSw", "base64"},                       /* foreign character */
      {"whsec_MfKQ9r8GKYqr=wjUPD8ILPZIo2LaLaSw", "base64"},                       /* padding in the middle */
      {"whsec_MfKQ9r8GKYqr-wjUPD8ILPZIo2LaLaSw", "base64"},                       /* the URL alphabet */
      {"whsec_MfKQ9r8GKYqrTwjUPD8I===", "base64"},                                /* too much padding */
      {"whsec_MfKQ9r8GKYqrTwjUPD8=", "at least 16"},                              /* 14 bytes */
      {"whsk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "32 bytes"},                      /* 24 bytes */
      {"whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=", "begin with whsec_"}, /* a public key signs nothing */
      {ED_WRONG_PAIR, "public half"},
      {SECRET_A " nonsense", "begin with whsec_"},
      {SECRET_A " " SECRET_A " " SECRET_A " " SECRET_A " " SECRET_A, "more than 4"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    const char *why;
    bool fine = http_sign_check(rows[i].keys, &why);
    if (fine != (rows[i].why == NULL) || (!fine && strstr(why, rows[i].why) == NULL))
      fail_msg("row %zu: %s", i, fine ? "accepted" : why);
  }
}

static void a_long_key_is_refused(void **state) {
  char keys[300] = "whsec_";
  const char *why;
  memset(keys + 6, 'A', 172); /* 129 bytes */
  assert_false(http_sign_check(keys, &why));
  keys[6 + 168] = '\0'; /* 126 bytes */
  assert_true(http_sign_check(keys, &why));
}

static void a_broken_key_never_signs(void **state) {
  char list[HTTP_SIGNATURE_CAP] = "";
  struct duebox_bytes body = text("x");
  assert_false(http_sign("nonsense", "id", 1, &body, list));
  assert_string_equal(list, "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(published_vectors_v1),
      cmocka_unit_test(any_body_v1),
      cmocka_unit_test(vectors_v1a),
      cmocka_unit_test(a_receiver_can_verify_v1a),
      cmocka_unit_test(several_keys_make_a_list),
      cmocka_unit_test(the_longest_list_fits),
      cmocka_unit_test(keys_are_checked),
      cmocka_unit_test(a_long_key_is_refused),
      cmocka_unit_test(a_broken_key_never_signs),
  };
  return cmocka_run_group_tests_name("http_sign", tests, NULL, NULL);
}
