/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/fuzz_admin.c - what strangers write to the admin listener: paths, headers, times. First line: path; then
 * Host, Authorization, Origin, Accept and a due time, one a line.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "admin/auth.h"
#include "admin/body.h"
#include "admin/exposition.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LINES = 6 };

static void check_path(const char *path) {
  struct request request = {0};
  const char *allow = NULL;
  enum route_match match = router_find("POST", path, &request, &allow);
  if (match == MATCH_NO_METHOD && !allow)
    abort();
  if (match != MATCH_FOUND)
    return;
  size_t params = 0;
  for (const char *p = request.endpoint->path; (p = strchr(p, '{')); p++)
    params++;
  for (size_t i = 0; i < params; i++) {
    if (!request.params[i][0] || !memchr(request.params[i], '\0', HTTP_PARAM_LEN))
      abort();
    for (const char *c = request.params[i]; *c; c++)
      if ((unsigned char)*c < 0x20 || *c == 0x7f)
        abort();
  }
}

static void check_caller(const struct caller *caller) {
  static const struct admin_config config = {
      .host = "127.0.0.1", .token = "0123456789abcdef0123456789abcdef", .url = "http://outbox.example:8321"};
  struct auth auth;
  struct err err;
  if (!auth_init(&auth, &config, &err))
    abort();
  for (enum role role = ROLE_OPEN; role <= ROLE_OPERATE; role++) {
    struct response response = {0};
    bool allowed = auth_allows(&auth, caller, role, &response);
    bool shown = caller->authorization && strstr(caller->authorization, config.token);
    if (allowed != (response.status == 0) || (allowed && role != ROLE_OPEN && !shown))
      abort();
    response_clear(&response);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text = malloc(size + 1), *rest = text, *lines[LINES] = {0};
  if (!text)
    return 0;
  memcpy(text, data, size);
  text[size] = '\0';
  for (size_t i = 0; i < LINES && rest; i++)
    lines[i] = strsep(&rest, "\n");
  check_path(lines[0]);
  check_caller(&(struct caller){
      .host = lines[1], .authorization = lines[2], .origin = lines[3], .content_type = "application/json"});
  (void)exposition_prefers_open_metrics(lines[4] ? lines[4] : "");
  int64_t us;
  if (body_parse_time(lines[5] ? lines[5] : "", &us) && us < 0)
    abort();
  free(text);
  return 0;
}
