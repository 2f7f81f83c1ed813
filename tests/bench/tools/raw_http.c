/* SPDX-License-Identifier: MIT
 *
 * tests/bench/tools/raw_http.c - rows posted to a URL: a bare libcurl multi loop on kept connections, with what
 * plugins/http sends.
 */
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#include "raw_loop.h"

struct request {
  CURL *easy;
  struct curl_slist *headers;
  uint64_t id;
};

struct http {
  const struct raw_settings *settings;
  CURLM *multi;
  struct request *requests; /* as many as the window */
  struct request **idle;
  size_t idle_count;
};

static size_t discard(char *data, size_t size, size_t count, void *arg) { return size * count; }

static void open_request(struct http *h, struct request *request) {
  request->easy = curl_easy_init();
  if (!request->easy)
    raw_fail("http", "out of memory");
  curl_easy_setopt(request->easy, CURLOPT_URL, h->settings->to);
  curl_easy_setopt(request->easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(request->easy, CURLOPT_TIMEOUT_MS, 30000L);
  curl_easy_setopt(request->easy, CURLOPT_WRITEFUNCTION, discard);
  curl_easy_setopt(request->easy, CURLOPT_PRIVATE, request);
  h->idle[h->idle_count++] = request;
}

static void *open_http(const struct raw_settings *s) {
  struct http *h = calloc(1, sizeof *h);
  curl_global_init(CURL_GLOBAL_DEFAULT);
  if (!h || !s->to || !(h->requests = calloc(s->window, sizeof *h->requests)) ||
      !(h->idle = calloc(s->window, sizeof(struct request *))) || !(h->multi = curl_multi_init()))
    raw_fail("http", "give a URL");
  h->settings = s;
  curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, (long)s->window);
  for (size_t i = 0; i < s->window; i++)
    open_request(h, &h->requests[i]);
  return h;
}

static void add(struct request *request, const char *name, const char *value) {
  char line[256];
  snprintf(line, sizeof line, "%s: %s", name, value);
  request->headers = curl_slist_append(request->headers, line);
}

static void send_http(void *sink, const struct raw_row *row) {
  struct http *h = sink;
  char due[RAW_DUE_TEXT];
  struct request *request = h->idle[--h->idle_count];
  raw_due_header(row->due, due);
  request->id = row->id;
  request->headers = curl_slist_append(NULL, "Expect:");
  add(request, "webhook-id", row->message_id);
  add(request, "webhook-timestamp", "1767323045");
  add(request, "duebox-attempt", "1");
  add(request, "duebox-route", h->settings->route);
  add(request, "duebox-due", due);
  add(request, "Content-Type", "application/json");
  add(request, "User-Agent", "duebox/0.1.0");
  curl_easy_setopt(request->easy, CURLOPT_HTTPHEADER, request->headers);
  curl_easy_setopt(request->easy, CURLOPT_POSTFIELDSIZE, (long)row->payload_len);
  curl_easy_setopt(request->easy, CURLOPT_COPYPOSTFIELDS, row->payload);
  if (curl_multi_add_handle(h->multi, request->easy) != CURLM_OK)
    raw_fail("http", "the request was refused");
}

static uint64_t end(struct http *h, const CURLMsg *message) {
  struct request *request = NULL;
  long status = 0;
  curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &request);
  curl_easy_getinfo(message->easy_handle, CURLINFO_RESPONSE_CODE, &status);
  if (message->data.result != CURLE_OK || status != 200)
    raw_fail("request", curl_easy_strerror(message->data.result));
  curl_multi_remove_handle(h->multi, request->easy);
  curl_slist_free_all(request->headers);
  request->headers = NULL;
  h->idle[h->idle_count++] = request;
  return request->id;
}

static size_t ended(struct http *h, uint64_t *ids, size_t cap) {
  size_t count = 0;
  int left;
  curl_multi_perform(h->multi, &left);
  for (const CURLMsg *message; count < cap && (message = curl_multi_info_read(h->multi, &left));)
    ids[count++] = end(h, message);
  return count;
}

static size_t reap_http(void *sink, uint64_t *ids, size_t cap, int wait_ms) {
  struct http *h = sink;
  size_t count = ended(h, ids, cap);
  if (count > 0 || wait_ms == 0 || h->idle_count == h->settings->window)
    return count;
  curl_multi_poll(h->multi, NULL, 0, wait_ms, NULL);
  return ended(h, ids, cap);
}

static void close_http(void *sink) {
  struct http *h = sink;
  for (size_t i = 0; i < h->settings->window; i++)
    curl_easy_cleanup(h->requests[i].easy);
  curl_multi_cleanup(h->multi);
  curl_global_cleanup();
  free(h->requests);
  free(h->idle);
  free(h);
}

const struct raw_sink raw_http = {"http", open_http, send_http, reap_http, close_http};
