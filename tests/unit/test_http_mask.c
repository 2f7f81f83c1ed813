/* SPDX-License-Identifier: MIT
 *
 * What an endpoint answers must not give away the route's secrets: its error page goes to the log, to the API, where
 * everybody on the machine may read it, and to a table column. Yet what does not come from them stays readable. The
 * host hides them, by the option rows of this plugin.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/callback.h"
#include "core/mask.h"
#include "http_options.h"

#define URL "https://hooks.example/services/T0A9/sekretTok3n?key=sesame&n={task_key}"
#define REPLY_TO "https://here.example/callback/0194-abcd/1/17-99.AbCd_fGhIjKlMnOpQrStUvWxYz0123456789-bCdEfG"

static const struct duebox_pair header = {"X-Api-Key", "swordfish"};
static const struct http_route route = {.url = URL,
                                        .callback = "reply_to",
                                        .authorization = "Bearer aaa.Zm9vYmFyOjEyMzQ1Ng==",
                                        .secret_headers = {.items = &header, .count = 1}};

static void masked_for(const struct http_route *options, const char *text, const char *expected) {
  static const struct duebox_plugin module = {.route_options = http_route_rows};
  char out[512];
  assert_true(strlen(text) < sizeof out);
  strcpy(out, text);
  mask_said(&module, NULL, NULL, options, callback_mac(REPLY_TO), out);
  assert_string_equal(out, expected);
}

static void check(const char *text, const char *expected) { masked_for(&route, text, expected); }

static void the_path_in_an_error_page(void **state) {
  check("<pre>Cannot POST /services/T0A9/sekretTok3n</pre>", "<pre>Cannot POST /***/***/***</pre>");
  check("sekretTok3n is unknown", "*** is unknown");
  check("SEKRETTOK3N", "***");
}

static void the_path_however_it_is_escaped(void **state) {
  check("\\/services\\/T0A9\\/sekretTok3n", "\\/***\\/***\\/***");
  check("&#x2F;services&#x2F;T0A9&#x2F;sekretTok3n", "&#x2F;***&#x2F;***&#x2F;***");
  check("%2Fservices%2FT0A9%2FsekretTok3n", "%2F***%2F***%2F***");
  check("\\u002fservices\\u002fT0A9", "\\u002f***\\u002f***");
  check("\\nsekretTok3n", "\\n***");
}

static void the_query(void **state) {
  check("no such thing: ?key=sesame&n=17", "no such thing: ?key=***&n=17");
  check("{\"key\":\"sesame\",\"n\":\"17\"}", "{\"key\":\"***\",\"n\":\"17\"}");
}

static void headers(void **state) {
  check("{'Authorization': 'Bearer aaa.Zm9vYmFyOjEyMzQ1Ng==', 'X-Api-Key': 'swordfish'}",
        "{'Authorization': 'Bearer ***', 'X-Api-Key': '***'}");
  check("Duebox-Callback: " REPLY_TO, "Duebox-Callback: https://here.example/callback/0194-abcd/1/17-99.***");
}

static void masked(const char *authorization, const char *text, const char *expected) {
  masked_for(&(struct http_route){.url = "https://x.example/", .callback = "none", .authorization = authorization},
             text, expected);
}

static void secrets_that_are_no_words(void **state) {
  masked("Bearer k1!x9@z3#q7$w5%t8", "bad: k1!x9@z3#q7$w5%t8", "bad: ***");
  masked("Bearer ab.cd.ef.gh", "bad: ab\\.cd&#46;ef%2egh", "bad: ***");
  masked("Bearer p\xc3\xa4\xc2\xa7", "bad: p\\u00e4\\u00a7 p&#xE4;&#167;", "bad: *** ***");
  masked("Bearer long-word.a.b", "bad: long-word.a.b; long-word\\.a\\.b", "bad: ***; ***");
}

static void credentials_that_the_endpoint_decoded(void **state) {
  masked("Basic ZHVlYm94OnMzY3JldFBhc3N3MHJk", "bad: duebox:s3cretPassw0rd", "bad: ***");
  masked("basic ZHVlYm94OnMzY3JldFBhc3N3MHJk", "no s3cretPassw0rd", "no ***");
  masked("Basic ZHVlYm94OnMzY3JldFBhc3N3MHJk", "ZHVlYm94OnMzY3JldFBhc3N3MHJk", "***");
  masked("Basic dTpwJGEh", "user u, password p$a!", "user u, password ***");
}

/* A receiver has the key of a signature, and may say with what it verified. */
static void keys_of_signatures(void **state) {
  struct http_route one = {.url = "https://x.example/",
                           .callback = "none",
                           .secret = "whsec_MfKQ9r8GKYqrTwjU/PD8ILPZIo2LaLaSw ",
                           .previous_secret = " whsk_aaaabbbbccccddddeeee\twhsec_zzzzyyyyxxxxwwww"};
  masked_for(&one,
             "no match with MfKQ9r8GKYqrTwjU\\/PD8ILPZIo2LaLaSw, whsec_MfKQ9r8GKYqrTwjU/PD8ILPZIo2LaLaSw, "
             "aaaabbbbccccddddeeee, whsec_zzzzyyyyxxxxwwww",
             "no match with ***, ***, ***, ***");
}

static void a_url_that_the_endpoint_decoded(void **state) {
  struct http_route one = {.url = "https://x.example/q/T%2BkN%2Fx?sig=aB%2Bc9%2Fzz12&u=1", .callback = "none"};
  masked_for(&one, "no /q/T+kN/x?sig=aB+c9/zz12&u=1 nor /q/T%2BkN%2Fx?sig=aB%2Bc9%2Fzz12",
             "no /q/***?sig=***&u=1 nor /q/***?sig=***");
}

static void a_url_in_hexadecimal(void **state) {
  check("token 73656b726574546f6b336e is unknown", "token *** is unknown");
  check("token 73656B726574546F6B336E is unknown", "token *** is unknown");
}

static void a_url_in_base64(void **state) {
  check("c2VrcmV0VG9rM24=, L3NlcnZpY2VzL1QwQTkvc2VrcmV0VG9rM24=", "***, L3NlcnZpY2VzL1***");
  check("c2VzYW1l, a2V5PXNlc2FtZQ==", "***, a2V5PX***");
}

static void a_url_over_lines(void **state) {
  struct http_route one = {.url = "https://x.example/order_notifications/T0A9sekretTok3n7", .callback = "none"};
  masked_for(&one, "/order_notifications/T0A9sek\r\nretTok3n7", "/***/***");
  masked_for(&one, "order_ notifications of T0A8", "order_ notifications of T0A8");
}

static void the_end_of_a_segment(void **state) {
  struct http_route one = {.url = "https://x.example/order_notifications/T0A9sekretTok3n7", .callback = "none"};
  masked_for(&one, "no notifications for A9sekretTok3n7", "no notifications for ***");
}

static void what_is_cut(void **state) {
  check("Bearer aaa.Zm9vYmFyOjEy...", "Bearer ***...");
  check("POST /services/T0A9/sekret", "POST /***/***/***");
}

static void other_texts_stay(void **state) {
  check("our services are down, the key of order 17 is locked", "our services are down, the key of order 17 is locked");
  check("0194-abcd is not known to hooks.example", "0194-abcd is not known to hooks.example");
  check("", "");
}

/* More words than there is room for: the text may hold any of them. */
static void too_many_to_look_for(void **state) {
  char url[2048] = "https://x.example";
  for (int i = 0; i < 200; i++)
    strcat(url, "/word1");
  masked_for(&(struct http_route){.url = url, .callback = "none"}, "anything", "***");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_path_in_an_error_page),
      cmocka_unit_test(the_path_however_it_is_escaped),
      cmocka_unit_test(the_query),
      cmocka_unit_test(headers),
      cmocka_unit_test(secrets_that_are_no_words),
      cmocka_unit_test(credentials_that_the_endpoint_decoded),
      cmocka_unit_test(keys_of_signatures),
      cmocka_unit_test(a_url_that_the_endpoint_decoded),
      cmocka_unit_test(a_url_in_hexadecimal),
      cmocka_unit_test(a_url_in_base64),
      cmocka_unit_test(a_url_over_lines),
      cmocka_unit_test(the_end_of_a_segment),
      cmocka_unit_test(what_is_cut),
      cmocka_unit_test(other_texts_stay),
      cmocka_unit_test(too_many_to_look_for),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
