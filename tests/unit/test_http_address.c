/* SPDX-License-Identifier: MIT
 *
 * Which addresses plugins/http may call: every network of the deny list at its first and last address and just beyond,
 * IPv4 in its mapped form, and the spellings that filters on text have let through elsewhere.
 */
#include "http_address.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include <cmocka.h>

#include "http_policy.h"

enum {
  PUB = HTTP_ADDRESS_PUBLIC,
  LOOP = HTTP_ADDRESS_LOOPBACK,
  PRIV = HTTP_ADDRESS_PRIVATE,
  LINK = HTTP_ADDRESS_LINK_LOCAL,
  SPEC = HTTP_ADDRESS_SPECIAL
};

static const struct {
  const char *address;
  int cls;
} matrix[] = {
    /* IPv4: both ends of each network, and the neighbours that are public */
    {"0.0.0.0", SPEC},
    {"0.0.0.1", SPEC},
    {"0.255.255.255", SPEC},
    {"1.0.0.0", PUB},
    {"1.1.1.1", PUB},
    {"9.255.255.255", PUB},
    {"10.0.0.0", PRIV},
    {"10.1.2.3", PRIV},
    {"10.255.255.255", PRIV},
    {"11.0.0.0", PUB},
    {"100.63.255.255", PUB},
    {"100.64.0.0", PRIV},
    {"100.100.100.200", PRIV},
    {"100.127.255.255", PRIV},
    {"100.128.0.0", PUB},
    {"126.255.255.255", PUB},
    {"127.0.0.0", LOOP},
    {"127.0.0.1", LOOP},
    {"127.1.2.3", LOOP},
    {"127.255.255.255", LOOP},
    {"128.0.0.0", PUB},
    {"169.253.255.255", PUB},
    {"169.254.0.0", LINK},
    {"169.254.169.254", LINK},
    {"169.254.170.2", LINK},
    {"169.254.255.255", LINK},
    {"169.255.0.0", PUB},
    {"172.15.255.255", PUB},
    {"172.16.0.0", PRIV},
    {"172.17.0.1", PRIV},
    {"172.31.255.255", PRIV},
    {"172.32.0.0", PUB},
    {"191.255.255.255", PUB},
    {"192.0.0.0", SPEC},
    {"192.0.0.170", SPEC},
    {"192.0.0.192", SPEC},
    {"192.0.0.255", SPEC},
    {"192.0.1.0", PUB},
    {"192.0.1.255", PUB},
    {"192.0.2.0", SPEC},
    {"192.0.2.1", SPEC},
    {"192.0.2.255", SPEC},
    {"192.0.3.0", PUB},
    {"192.88.98.255", PUB},
    {"192.88.99.0", SPEC},
    {"192.88.99.255", SPEC},
    {"192.88.100.0", PUB},
    {"192.167.255.255", PUB},
    {"192.168.0.0", PRIV},
    {"192.168.1.1", PRIV},
    {"192.168.255.255", PRIV},
    {"192.169.0.0", PUB},
    {"198.17.255.255", PUB},
    {"198.18.0.0", SPEC},
    {"198.19.255.255", SPEC},
    {"198.20.0.0", PUB},
    {"198.51.99.255", PUB},
    {"198.51.100.0", SPEC},
    {"198.51.100.255", SPEC},
    {"198.51.101.0", PUB},
    {"203.0.112.255", PUB},
    {"203.0.113.0", SPEC},
    {"203.0.113.255", SPEC},
    {"203.0.114.0", PUB},
    {"8.8.8.8", PUB},
    {"223.255.255.255", PUB},
    {"224.0.0.0", SPEC},
    {"224.0.0.251", SPEC},
    {"239.255.255.255", SPEC},
    {"240.0.0.0", SPEC},
    {"254.255.255.255", SPEC},
    {"255.255.255.254", SPEC},
    {"255.255.255.255", SPEC},
    /* the same inside ::ffff:0:0/96: unmapped before it is judged */
    {"::ffff:0.0.0.0", SPEC},
    {"::ffff:8.8.8.8", PUB},
    {"::ffff:808:808", PUB},
    {"::ffff:10.0.0.1", PRIV},
    {"::ffff:a00:1", PRIV},
    {"::ffff:127.0.0.1", LOOP},
    {"::ffff:7f00:1", LOOP},
    {"0:0:0:0:0:ffff:127.0.0.1", LOOP},
    {"::FFFF:7F00:0001", LOOP},
    {"::ffff:169.254.169.254", LINK},
    {"::ffff:a9fe:a9fe", LINK},
    {"::ffff:172.16.0.1", PRIV},
    {"::ffff:192.168.0.1", PRIV},
    {"::ffff:100.64.0.1", PRIV},
    {"::ffff:198.18.0.1", SPEC},
    {"::ffff:224.0.0.1", SPEC},
    {"::ffff:255.255.255.255", SPEC},
    /* IPv6 */
    {"::", SPEC},
    {"::1", LOOP},
    {"0:0:0:0:0:0:0:1", LOOP},
    {"::2", SPEC},
    {"::127.0.0.1", SPEC},
    {"::7f00:1", SPEC},
    {"::8.8.8.8", SPEC},
    {"::fffe:7f00:1", SPEC},
    {"::ffff:0:127.0.0.1", SPEC}, /* SIIT, RFC 2765 */
    {"64:ff9b::", SPEC},
    {"64:ff9b::7f00:1", SPEC},
    {"64:ff9b::8.8.8.8", SPEC},
    {"64:ff9b:1::1", SPEC},
    {"64:ff9b:1:ffff:ffff:ffff:7f00:1", SPEC},
    {"100::", SPEC},
    {"100::1", SPEC},
    {"100:0:0:1::1", SPEC},
    {"1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", SPEC},
    {"2000::", PUB},
    {"2000:ffff::1", PUB},
    {"2001::", SPEC},
    {"2001::1", SPEC},
    {"2001:0:4136:e378:8000:63bf:3fff:fdd2", SPEC},
    {"2001:2::1", SPEC},
    {"2001:10::1", SPEC},
    {"2001:20::1", SPEC},
    {"2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", SPEC},
    {"2001:200::1", PUB},
    {"2001:4860:4860::8888", PUB},
    {"2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", PUB},
    {"2001:db8::", SPEC},
    {"2001:db8::1", SPEC},
    {"2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", SPEC},
    {"2001:db9::", PUB},
    {"2002::", SPEC},
    {"2002:7f00:1::", SPEC},
    {"2002:a9fe:a9fe::1", SPEC},
    {"2002:808:808::1", SPEC},
    {"2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", SPEC},
    {"2003::", PUB},
    {"2606:4700:4700::1111", PUB},
    {"2a00:1450:4001:80b::200e", PUB},
    {"3fff::", SPEC},
    {"3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", SPEC},
    {"3fff:1000::", PUB},
    {"3ffe:ffff::1", PUB},
    {"4000::", SPEC},
    {"5f00::1", SPEC},
    {"8000::1", SPEC},
    {"fbff:ffff::1", SPEC},
    {"fc00::", PRIV},
    {"fc00::1", PRIV},
    {"fd00::1", PRIV},
    {"fd00:ec2::254", PRIV},
    {"fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", PRIV},
    {"fe00::1", SPEC},
    {"fe7f:ffff::1", SPEC},
    {"fe80::", LINK},
    {"fe80::1", LINK},
    {"febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", LINK},
    {"fec0::1", SPEC},
    {"ff00::", SPEC},
    {"ff02::1", SPEC},
    {"ff02::fb", SPEC},
    {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", SPEC},
};
enum { MATRIX = sizeof(matrix) / sizeof(matrix[0]) };
_Static_assert(MATRIX >= 120, "the matrix is the test");

static void every_address_has_its_class(void **state) {
  for (size_t i = 0; i < MATRIX; i++) {
    struct http_address address;
    if (!http_address_parse(matrix[i].address, &address))
      fail_msg("%s was not read", matrix[i].address);
    int cls = (int)http_address_classify(&address);
    if (cls != matrix[i].cls)
      fail_msg("%s is %s, expected %s", matrix[i].address, http_address_class_name((enum http_address_class)cls),
               http_address_class_name((enum http_address_class)matrix[i].cls));
  }
}

/* What the socket callback sees: IPv4 and IPv6 socket addresses, mapped ones as IPv6. */
static void socket_addresses_are_the_same(void **state) {
  for (size_t i = 0; i < MATRIX; i++) {
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(80)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(80)};
    struct http_address address;
    if (inet_pton(AF_INET, matrix[i].address, &four.sin_addr) == 1) {
      assert_true(http_address_of((const struct sockaddr *)&four, &address));
    } else {
      assert_int_equal(inet_pton(AF_INET6, matrix[i].address, &six.sin6_addr), 1);
      assert_true(http_address_of((const struct sockaddr *)&six, &address));
    }
    assert_int_equal(http_address_classify(&address), matrix[i].cls);
  }
}

static void another_family_is_no_address(void **state) {
  struct sockaddr_un local = {.sun_family = AF_UNIX};
  struct http_address address;
  assert_false(http_address_of((const struct sockaddr *)&local, &address));
}

/* Spellings of a host as a URL may hold them, after libcurl's parser: either an address whose class is known, or a
 * name, which is judged when it is resolved. */
static void no_spelling_hides_an_address(void **state) {
  enum { NAME = -1, INVALID = -2 };
  static const struct {
    const char *host;
    int cls;
  } rows[] = {
      {"127.0.0.1", LOOP},
      {"2130706433", LOOP},
      {"0x7f000001", LOOP},
      {"0x7f.1", LOOP},
      {"0x7F.0x0.0x0.0x1", LOOP},
      {"0177.0.0.1", LOOP},
      {"017700000001", LOOP},
      {"127.1", LOOP},
      {"127.0.1", LOOP},
      {"0", SPEC},
      {"0.0", SPEC},
      {"0x0", SPEC},
      {"00.00.00.00", SPEC},
      {"10.1", PRIV},
      {"167772161", PRIV},
      {"3232235777", PRIV},
      {"192.168.257", PRIV},
      {"2852039166", LINK},
      {"0xa9fea9fe", LINK},
      {"0xa9.254.0251.0376", LINK},
      {"169.254.43518", LINK},
      {"4294967295", SPEC},
      {"%31%32%37.0.0.1", LOOP},
      {"[::1]", LOOP},
      {"[::]", SPEC},
      {"[::ffff:127.0.0.1]", LOOP},
      {"[::ffff:7f00:1]", LOOP},
      {"[0:0:0:0:0:ffff:a9fe:a9fe]", LINK},
      {"[fe80::1%25eth0]", LINK},
      {"[64:ff9b::7f00:1]", SPEC},
      {"localhost", NAME},
      {"127.0.0.1.nip.io", NAME},
      {"127.0.0.1.", NAME},
      {"256.0.0.1", NAME},
      {"[::1", INVALID},
      {"[127.0.0.1]", INVALID},
      {"", INVALID},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    char url[128], *host = NULL;
    struct http_address address;
    CURLU *parsed = curl_url();
    snprintf(url, sizeof(url), "https://%s/", rows[i].host);
    int found = INVALID;
    if (curl_url_set(parsed, CURLUPART_URL, url, 0) == CURLUE_OK &&
        curl_url_get(parsed, CURLUPART_HOST, &host, 0) == CURLUE_OK)
      found = http_policy_literal(host, &address) ? (int)http_address_classify(&address) : NAME;
    if (found != rows[i].cls)
      fail_msg("\"%s\" came out as \"%s\", %d instead of %d", rows[i].host, host ? host : "", found, rows[i].cls);
    curl_free(host);
    curl_url_cleanup(parsed);
  }
}

/* ---- the policy ---- */

static enum http_address_verdict judge(const struct http_address_policy *policy, const char *text, bool plain) {
  struct http_address address;
  assert_true(http_address_parse(text, &address));
  return http_address_judge(policy, &address, plain);
}

static void by_default_only_public_and_encrypted(void **state) {
  const struct http_address_policy policy = {0};
  for (size_t i = 0; i < MATRIX; i++) {
    bool public = matrix[i].cls == PUB;
    assert_int_equal(judge(&policy, matrix[i].address, false), public ? HTTP_ADDRESS_ALLOWED : HTTP_ADDRESS_DENIED);
    assert_int_equal(judge(&policy, matrix[i].address, true), public ? HTTP_ADDRESS_PLAINTEXT : HTTP_ADDRESS_DENIED);
  }
}

static void allow_private_opens_loopback_and_private_only(void **state) {
  const struct http_address_policy policy = {.allow_private = true};
  for (size_t i = 0; i < MATRIX; i++) {
    bool inside = matrix[i].cls == LOOP || matrix[i].cls == PRIV, public = matrix[i].cls == PUB;
    assert_int_equal(judge(&policy, matrix[i].address, false),
                     inside || public ? HTTP_ADDRESS_ALLOWED : HTTP_ADDRESS_DENIED);
    assert_int_equal(judge(&policy, matrix[i].address, true), matrix[i].cls == LOOP ? HTTP_ADDRESS_ALLOWED
                                                              : inside || public    ? HTTP_ADDRESS_PLAINTEXT
                                                                                    : HTTP_ADDRESS_DENIED);
  }
}

static void plaintext_leaves_the_host_by_name_only(void **state) {
  const struct http_address_policy policy = {.allow_plaintext = true};
  assert_int_equal(judge(&policy, "8.8.8.8", true), HTTP_ADDRESS_ALLOWED);
  assert_int_equal(judge(&policy, "10.0.0.1", true), HTTP_ADDRESS_DENIED);
  assert_int_equal(judge(&policy, "127.0.0.1", true), HTTP_ADDRESS_DENIED);
}

static void listed_networks_are_allowed(void **state) {
  struct http_network networks[3];
  assert_true(http_network_parse("10.1.0.0/16", &networks[0]));
  assert_true(http_network_parse("169.254.169.253", &networks[1]));
  assert_true(http_network_parse("fd00:1::/32", &networks[2]));
  const struct http_address_policy policy = {.networks = networks, .network_count = 3};
  assert_int_equal(judge(&policy, "10.1.255.255", false), HTTP_ADDRESS_ALLOWED);
  assert_int_equal(judge(&policy, "10.1.0.0", true),
                   HTTP_ADDRESS_PLAINTEXT); /* a network is not a permission to be read */
  assert_int_equal(judge(&policy, "::ffff:10.1.2.3", false), HTTP_ADDRESS_ALLOWED);
  assert_int_equal(judge(&policy, "10.2.0.0", false), HTTP_ADDRESS_DENIED);
  assert_int_equal(judge(&policy, "169.254.169.253", false), HTTP_ADDRESS_ALLOWED);
  assert_int_equal(judge(&policy, "169.254.169.254", false), HTTP_ADDRESS_DENIED);
  assert_int_equal(judge(&policy, "fd00:1:ffff::1", false), HTTP_ADDRESS_ALLOWED);
  assert_int_equal(judge(&policy, "fd00:2::1", false), HTTP_ADDRESS_DENIED);
  assert_int_equal(judge(&policy, "127.0.0.1", false), HTTP_ADDRESS_DENIED);
}

static void networks_are_read_strictly(void **state) {
  static const struct {
    const char *text;
    int bits; /* -1 = refused */
  } rows[] = {
      {"10.0.0.0/8", 104},
      {"10.1.2.3", 128},
      {"0.0.0.0/0", 96},
      {"10.1.2.3/32", 128},
      {"::/0", 0},
      {"::1", 128},
      {"fd00::/8", 8},
      {"::ffff:10.0.0.0/104", 104},
      {"10.1.2.3/8", -1},
      {"10.0.0.0/33", -1},
      {"10.0.0.0/", -1},
      {"10.0.0.0/-1", -1},
      {"10.0.0.0/8x", -1},
      {"10.0.0.0/ 8", -1},
      {"10.0.0.0/+8", -1},
      {"fd00::1/8", -1},
      {"fd00::/129", -1},
      {"10.0.0", -1},
      {"010.0.0.0/8", -1},
      {"", -1},
      {"/8", -1},
      {"host/8", -1},
      {"10.0.0.0/99999999999999999999", -1},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    struct http_network network;
    bool read = http_network_parse(rows[i].text, &network);
    if (read != (rows[i].bits >= 0) || (read && network.bits != (unsigned)rows[i].bits))
      fail_msg("\"%s\": %s", rows[i].text, read ? "read, with other bits" : "refused");
  }
}

static void a_refusal_names_address_and_cure(void **state) {
  const struct http_options options = {0};
  struct http_policy policy;
  struct http_address address;
  char why[512];
  assert_true(http_policy_make(&options, &policy));
  assert_true(http_address_parse("10.0.0.7", &address));
  assert_false(http_policy_allows(&policy, &address, false, "crm.internal:443/x", 16, why, sizeof(why)));
  assert_non_null(strstr(why, "crm.internal:443 is the private address 10.0.0.7"));
  assert_non_null(strstr(why, "allow_private"));
  assert_non_null(strstr(why, "allow_networks: [10.0.0.7]"));
  assert_true(http_address_parse("169.254.169.254", &address));
  assert_false(http_policy_allows(&policy, &address, false, "meta", 4, why, sizeof(why)));
  assert_null(strstr(why, "allow_private")); /* it would not help */
  assert_true(http_address_parse("8.8.8.8", &address));
  assert_false(http_policy_allows(&policy, &address, true, "dns.example", 11, why, sizeof(why)));
  assert_non_null(strstr(why, "allow_plaintext"));
  assert_true(http_policy_allows(&policy, &address, false, "dns.example", 11, why, sizeof(why)));
  http_policy_free(&policy);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_address_has_its_class),
      cmocka_unit_test(socket_addresses_are_the_same),
      cmocka_unit_test(another_family_is_no_address),
      cmocka_unit_test(no_spelling_hides_an_address),
      cmocka_unit_test(by_default_only_public_and_encrypted),
      cmocka_unit_test(allow_private_opens_loopback_and_private_only),
      cmocka_unit_test(plaintext_leaves_the_host_by_name_only),
      cmocka_unit_test(listed_networks_are_allowed),
      cmocka_unit_test(networks_are_read_strictly),
      cmocka_unit_test(a_refusal_names_address_and_cure),
  };
  return cmocka_run_group_tests_name("http_address", tests, NULL, NULL);
}
