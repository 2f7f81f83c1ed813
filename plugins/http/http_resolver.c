/* SPDX-License-Identifier: MIT */
#include "http_resolver.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "http_transfer.h"
#include "http_url.h"

enum {
  SECOND_MS = 1000,              /* a lost packet must not hold up those that come after it: resolvers wait for 5 s */
  LONGEST_MS = 24 * 3600 * 1000, /* longer than any resolver goes on */
};

/* All that is wanted from libcurl is the address. */
static curl_socket_t on_found(void *arg, curlsocktype purpose, struct curl_sockaddr *to) {
  struct http_lookup *lookup = arg;
  lookup->found = true;
  return CURL_SOCKET_BAD;
}

/* A copy of the transfer's handle needs the very name that it needs. */
static bool start(struct http_resolver *resolver, struct http_lookup *lookup, const struct http_transfer *t,
                  int64_t now_ms) {
  CURL *easy = curl_easy_duphandle(t->easy);
  *lookup = (struct http_lookup){.easy = easy, .begun_ms = now_ms, .name = t->name, .target = t->allowed};
  bool ok = easy && curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L) == CURLE_OK &&
            curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L) == CURLE_OK &&
            curl_easy_setopt(easy, CURLOPT_POSTFIELDS, NULL) == CURLE_OK && /* the task's, which may end before */
            curl_easy_setopt(easy, CURLOPT_HTTPHEADER, NULL) == CURLE_OK &&
            curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L) == CURLE_OK && /* a kept connection needs no name */
            curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 0L) == CURLE_OK &&
            curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 1L) == CURLE_OK && /* the transfer is not this one */
            curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 0L) == CURLE_OK &&
            curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)LONGEST_MS) == CURLE_OK &&
            curl_easy_setopt(easy, CURLOPT_RESOLVER_START_FUNCTION, NULL) == CURLE_OK &&
            curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_found) == CURLE_OK &&
            curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, lookup) == CURLE_OK &&
            curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, lookup->error) == CURLE_OK &&
            (!lookup->target || curl_easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK) &&
            curl_multi_add_handle(resolver->multi, easy) == CURLM_OK;
  if (!ok) {
    curl_easy_cleanup(easy);
    lookup->easy = NULL;
  }
  return ok;
}

/* Whether the lookup is of the name that the transfer needs. */
static bool serves(const struct http_lookup *lookup, const struct http_transfer *t) {
  struct http_url a, b;
  const char *url = NULL;
  if (!lookup->easy || lookup->name != t->name || lookup->target != t->allowed)
    return false;
  if (t->shared->options->proxy && !lookup->target)
    return true;
  return curl_easy_getinfo(lookup->easy, CURLINFO_EFFECTIVE_URL, &url) == CURLE_OK && url && http_url_split(url, &a) &&
         http_url_split(http_request_url(&t->request), &b) && a.plain == b.plain &&
         a.authority_len == b.authority_len && strncasecmp(a.authority, b.authority, a.authority_len) == 0;
}

/* FNV-1a, 64 bits, of the URL's host without its port; the proxy's name is 1. Two names of the same hash share what is
 * known. */
static uint64_t hash_of(const struct http_transfer *t) {
  struct http_url url;
  uint64_t hash = 14695981039346656037u;
  if (t->shared->options->proxy && !t->allowed)
    return 1;
  size_t all = http_url_split(http_request_url(&t->request), &url) ? url.authority_len : 0, len = all;
  while (len > 0 && isdigit((unsigned char)url.authority[len - 1]))
    len--;
  len = len > 0 && url.authority[len - 1] == ':' ? len - 1 : all;
  for (size_t i = 0; i < len; i++)
    hash = (hash ^ (unsigned char)tolower((unsigned char)url.authority[i])) * 1099511628211u;
  return hash ? hash : 1;
}

static void note_found(struct http_resolver *resolver, const struct http_transfer *t, bool found) {
  resolver->names[t->name % HTTP_NAMES] = (struct http_name){t->name, found};
}

/* Whether a lookup of the transfer's name may begin beside so many others, some of which began just now. */
static bool may_begin(const struct http_resolver *resolver, const struct http_transfer *t, size_t all, size_t young) {
  const struct http_name *name = &resolver->names[t->name % HTTP_NAMES];
  if (name->hash != t->name)
    return all + HTTP_LOOKUPS_KNOWN < resolver->most && young < HTTP_LOOKUPS_AT_ONCE;
  return name->found ? all < resolver->most
                     : all + HTTP_LOOKUPS_KNOWN + HTTP_LOOKUPS_NEW < resolver->most && young < HTTP_LOOKUPS_AT_ONCE / 2;
}

/* Finds the transfer a lookup, or begins one; a second one of a name for those that come long after the first. */
static void join(struct http_resolver *resolver, struct http_transfer *t, int64_t now_ms) {
  struct http_lookup *free = NULL, *youngest = NULL;
  size_t same = 0, all = 0, young = 0;
  for (struct http_lookup *l = resolver->lookups; l < resolver->lookups + HTTP_LOOKUPS; l++) {
    all += l->easy != NULL;
    young += l->easy && now_ms - l->begun_ms < HTTP_LOOKUP_MS;
    if (!l->easy)
      free = l;
    else if (serves(l, t) && same++ < 2 && (!youngest || l->begun_ms > youngest->begun_ms))
      youngest = l;
  }
  bool another = same == 0 ? may_begin(resolver, t, all, young)
                           : same == 1 && now_ms - youngest->begun_ms >= SECOND_MS && all < resolver->most / 2;
  t->lookup = youngest;
  if (another && free && start(resolver, free, t, now_ms))
    t->lookup = free;
  else if (another && free && !youngest)
    t->lookup_code = CURLE_OUT_OF_MEMORY;
  if (t->lookup)
    http_transfer_begin_anew(t);
}

void http_resolver_init(struct http_resolver *resolver, CURLM *multi, size_t files) {
  size_t most = files / HTTP_LOOKUP_FILES;
  *resolver = (struct http_resolver){.multi = multi, .last = &resolver->waiting};
  resolver->most = most < HTTP_LOOKUPS_LEAST ? HTTP_LOOKUPS_LEAST : most < HTTP_LOOKUPS ? most : HTTP_LOOKUPS;
}

void http_resolver_wait(struct http_resolver *resolver, struct http_transfer *transfer) {
  transfer->lookup = NULL;
  transfer->name = hash_of(transfer);
  transfer->lookup_code = CURLE_AGAIN; /* which is no end of a transfer */
  transfer->error[0] = '\0';
  transfer->next = NULL;
  *resolver->last = transfer;
  resolver->last = &transfer->next;
}

/* An answer is good for all who wait for the name; a failure says nothing of a lookup that began later. */
bool http_resolver_ended(struct http_resolver *resolver, CURL *easy, CURLcode code) {
  struct http_lookup *lookup = resolver->lookups;
  while (lookup < resolver->lookups + HTTP_LOOKUPS && lookup->easy != easy)
    lookup++;
  if (lookup == resolver->lookups + HTTP_LOOKUPS)
    return false;
  curl_multi_remove_handle(resolver->multi, easy);
  for (struct http_transfer *t = resolver->waiting; t; t = t->next) {
    if (t->lookup_code != CURLE_AGAIN || (t->lookup != lookup && !(lookup->found && serves(lookup, t))))
      continue;
    t->lookup_code = lookup->found ? CURLE_OK : code;
    note_found(resolver, t, lookup->found);
    snprintf(t->error, sizeof(t->error), "%s", lookup->error);
  }
  curl_easy_cleanup(easy);
  lookup->easy = NULL;
  return true;
}

static void time_out(struct http_resolver *resolver, struct http_transfer *t) {
  t->lookup_code = CURLE_OPERATION_TIMEDOUT;
  if (t->lookup)
    note_found(resolver, t, false);
  if (t->lookup)
    snprintf(t->error, sizeof(t->error), "Resolving timed out after %ld milliseconds", t->connect_ms);
  else
    snprintf(t->error, sizeof(t->error),
             "its name was not looked up within %ld milliseconds, because the name service has not answered for others",
             t->timeout_ms);
}

struct http_transfer *http_resolver_turn(struct http_resolver *resolver) {
  struct http_transfer *ended = NULL, **link = &resolver->waiting;
  int64_t now_ms = resolver->waiting ? http_now_ms() : 0;
  while (*link) {
    struct http_transfer *t = *link;
    if (t->lookup_code == CURLE_AGAIN && !t->lookup)
      join(resolver, t, now_ms);
    if (t->lookup_code == CURLE_AGAIN && now_ms - t->begun_ms >= (t->lookup ? t->connect_ms : t->timeout_ms))
      time_out(resolver, t);
    if (t->lookup_code == CURLE_AGAIN) {
      link = &t->next;
      continue;
    }
    *link = t->next;
    t->next = ended;
    ended = t;
  }
  resolver->last = link;
  return ended;
}

struct http_transfer *http_resolver_drop(struct http_resolver *resolver) {
  struct http_transfer *list = resolver->waiting;
  resolver->waiting = NULL;
  resolver->last = &resolver->waiting;
  return list;
}

void http_resolver_stop(struct http_resolver *resolver) {
  for (struct http_lookup *l = resolver->lookups; l < resolver->lookups + HTTP_LOOKUPS; l++) {
    if (!l->easy)
      continue;
    curl_multi_remove_handle(resolver->multi, l->easy);
    curl_easy_cleanup(l->easy);
    l->easy = NULL;
  }
  resolver->waiting = NULL;
  resolver->last = &resolver->waiting;
}
