/* SPDX-License-Identifier: MIT
 *
 * admin/response.c - bodies of responses. Stateless; any thread.
 *
 * Out of memory is answered with a constant, so that it needs none.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "admin/http.h"

static void respond_out_of_memory(struct response *response) {
  static const char text[] = "{\"type\":\"urn:duebox:problem:internal\",\"title\":\"duebox failed\",\"status\":500,"
                             "\"code\":\"internal\",\"detail\":\"out of memory\"}";
  respond_static(response, "application/problem+json", text, sizeof(text) - 1);
  response->status = 500;
}

void respond_json(struct response *response, unsigned status, json_t *json) {
  char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
  json_decref(json);
  respond_text(response, status, "application/json", text, text ? strlen(text) : 0);
}

void respond_text(struct response *response, unsigned status, const char *type, char *text, size_t len) {
  if (!text) {
    respond_out_of_memory(response);
    return;
  }
  response_clear(response);
  *response = (struct response){.status = status, .type = type, .body = text, .len = len, .owned = true};
}

void respond_static(struct response *response, const char *type, const char *text, size_t len) {
  response_clear(response);
  *response = (struct response){.status = 200, .type = type, .body = text, .len = len};
}

void response_clear(struct response *response) {
  if (response->owned)
    free((char *)(uintptr_t)response->body);
  *response = (struct response){0};
}

const char *text_utf8(const char *text, char *buffer, size_t cap) {
  json_t *json = json_string(text); /* refuses what is not UTF-8 */
  if (json) {
    json_decref(json);
    return text;
  }
  snprintf(buffer, cap, "%s", text);
  for (char *c = buffer; *c; c++)
    if ((unsigned char)*c >= 0x80)
      *c = '?';
  return buffer;
}

json_t *json_any(const char *text) {
  char ascii[1280];
  return json_string(text_utf8(text, ascii, sizeof(ascii)));
}

json_t *json_time(int64_t us) {
  if (us == 0)
    return json_null();
  time_t seconds = (time_t)(us / 1000000);
  struct tm tm;
  char date[32], text[64];
  if (!gmtime_r(&seconds, &tm) || !strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm))
    return json_null();
  snprintf(text, sizeof(text), "%s.%06dZ", date, (int)(us % 1000000));
  return json_string(text);
}
