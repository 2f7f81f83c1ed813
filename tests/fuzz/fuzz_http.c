/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/fuzz_http.c - what strangers write to plugins/http: a task's values, a response, an address, a key.
 *
 * The first byte chooses the reader. A request that is built must hold no byte that ends a header line.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http_address.h"
#include "http_outcome.h"
#include "http_request.h"
#include "http_response.h"
#include "http_sign.h"
#include "http_text.h"
#include "http_url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact) {
  if (!fact)
    abort();
}

/* The most hostile host: it puts the key into the URL as it is. */
static size_t expand(void *ctx, const char *tmpl, const struct duebox_task *task, enum duebox_escape escape, char *out,
                     size_t cap) {
  return (size_t)snprintf(out, cap, "https://crm.example/%.*s", (int)task->key.len, task->key.data);
}

/* name LF value LF checkpoint: a header of the application, its key and a checkpoint. */
static void request(const char *text, size_t len) {
  static const struct duebox_host host = {.struct_size = sizeof(host), .expand = expand};
  static const struct http_route route = {.url = "", .content_type = "application/json"};
  const char *value = memchr(text, '\n', len);
  size_t name_len = value ? (size_t)(value - text) : len;
  value = value ? value + 1 : text + len;
  char *name = strndup(text, name_len);
  const struct duebox_header header = {name, {value, (size_t)(text + len - value)}};
  struct duebox_task task = {.message_id = "m",
                             .route = "r",
                             .attempt = 1,
                             .key = {name, strlen(name)},
                             .payload = {text, len},
                             .checkpoint = header.value,
                             .headers = &header,
                             .header_count = 1};
  struct http_request built = {0};
  struct http_problem problem = {0};
  if (http_request_build(&built, &task, &route, &host, 1, &problem)) {
    for (const char *line = http_request_next_header(&built, NULL); line; line = http_request_next_header(&built, line))
      require(http_header_value_valid(line, strlen(line)) && strpbrk(line, ":;") != NULL);
    require(strlen(http_request_url(&built)) <= HTTP_URL_MAX);
  } else {
    require(problem.cls == DUEBOX_REJECTED && problem.error_class && problem.text[0]);
  }
  http_request_free(&built);
  free(name);
}

static void response(const char *text, size_t len) {
  struct http_response r = {.limit = 1000};
  char out[256];
  r.success = len % 2 == 0;
  bool whole = http_response_append(&r, text, len);
  require(r.cut == (len > r.limit) && r.len <= r.limit);
  require(r.cut ? !whole || r.scan.state == HTTP_SCAN_GOES_ON : whole);
  struct http_scan pieces = {0}, at_once = {0};
  for (size_t i = 0; i < len; i++)
    (void)http_scan_read(&pieces, text + i, 1);
  require(http_scan_read(&at_once, text, len) == pieces.state && memcmp(&at_once, &pieces, sizeof(pieces)) == 0);
  require(http_response_body(&r) != HTTP_BODY_UNREAD || r.cut);
  size_t clean = http_text_clean(out, sizeof(out), text, len);
  require(clean < sizeof(out) && strlen(out) == clean && http_header_value_valid(out, clean));
  char again[256];
  require(http_text_clean(again, sizeof(again), out, clean) == clean && strcmp(out, again) == 0);
  http_response_free(&r);
}

static void address(const char *text) {
  struct http_address parsed, again;
  struct http_network network;
  struct http_url url;
  char printed[HTTP_ADDRESS_TEXT];
  if (http_address_parse(text, &parsed)) {
    http_address_print(&parsed, printed);
    require(http_address_parse(printed, &again) && memcmp(&parsed, &again, sizeof(parsed)) == 0);
    require(http_address_classify(&parsed) == http_address_classify(&again));
  }
  if (http_network_parse(text, &network))
    require(network.bits <= 128);
  if (http_url_split(text, &url))
    (void)http_url_has_dot_segment(&url);
  (void)http_status_item_valid(text);
}

/* What the check lets through must sign. */
static void key(const char *text) {
  static const struct duebox_bytes body = {"x", 1};
  char list[HTTP_SIGNATURE_CAP] = "";
  const char *why;
  bool fine = http_sign_check(text, &why);
  require(fine == (why == NULL));
  if (fine)
    require(http_sign(text, "m", 1, &body, list) && list[0] == 'v');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  char *text = strndup((const char *)data + 1, size - 1);
  switch (data[0] % 4) {
  case 0:
    request((const char *)data + 1, size - 1);
    break;
  case 1:
    response((const char *)data + 1, size - 1);
    break;
  case 2:
    address(text);
    break;
  default:
    key(text);
  }
  free(text);
  return 0;
}
