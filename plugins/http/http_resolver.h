/* SPDX-License-Identifier: MIT
 *
 * http_resolver.h - the lookups of hosts' names, few at a time for the whole instance.
 *
 * libcurl starts a thread for each transfer that needs a name, also for one that is being looked up already, and leaves
 * it behind when the transfer's time is up: a name server that does not answer would take all threads that the process
 * may have. So transfers look nothing up. One that needs a name leaves the multi handle and waits here, while a handle
 * of its own, which never connects, brings the addresses into the DNS cache of the multi handle. That one has no
 * time-out, so a lookup counts for as long as its thread is there. While no more may begin a transfer keeps its place
 * in the queue for as long as its task has time: that others are not answered for says nothing of its own destination.
 * Its time to connect begins with its lookup. Driver thread, no locks.
 */
#ifndef PLUGINS_HTTP_RESOLVER_H
#define PLUGINS_HTTP_RESOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <curl/curl.h>

struct http_transfer;

/* Threads of libcurl's, at most: one for so many files that the process may open, since each takes three, and no fewer
 * than the least. */
enum { HTTP_LOOKUPS = 256, HTTP_LOOKUPS_LEAST = 64, HTTP_LOOKUP_FILES = 12 };
/* How many of these are left for names that were found before, where one of which nothing is known would begin, and for
 * these two where one would that was not found at the last try: names whose servers are dead keep no others out. */
enum { HTTP_LOOKUPS_KNOWN = 16, HTTP_LOOKUPS_NEW = 16 };
/* A name whose servers live is found within HTTP_LOOKUP_MS. So many may be asked for at once that are not found yet;
 * what takes longer waits for dead servers and keeps nobody from asking. */
enum { HTTP_LOOKUPS_AT_ONCE = 48, HTTP_LOOKUP_MS = 250 };
enum { HTTP_NAMES = 4096 };

struct http_lookup {
  CURL *easy; /* NULL = free */
  int64_t begun_ms;
  uint64_t name; /* its hash */
  bool target;   /* the URL's own name, for a SOCKS proxy that takes addresses only */
  bool found;
  char error[CURL_ERROR_SIZE];
};

/* How the last try ended. */
struct http_name {
  uint64_t hash; /* 0 = none */
  bool found;
};

struct http_resolver {
  CURLM *multi;
  size_t most; /* lookups */
  struct http_lookup lookups[HTTP_LOOKUPS];
  struct http_transfer *waiting, **last; /* list: who came first gets the next lookup */
  struct http_name names[HTTP_NAMES]; /* each where its hash says; another one takes the place of what is known there */
};

/* files: how many the process may open. */
void http_resolver_init(struct http_resolver *resolver, CURLM *multi, size_t files);

/* Takes a transfer that is held (http_transfer.h) and in no multi handle. */
void http_resolver_wait(struct http_resolver *resolver, struct http_transfer *transfer);

/* Whether the handle, which libcurl is done with, was one of a lookup. */
__attribute__((warn_unused_result)) bool http_resolver_ended(struct http_resolver *resolver, CURL *easy, CURLcode code);

/* Begins what can be begun. Returns the list of transfers that wait no longer: CURLE_OK in transfer->lookup_code where
 * the name is known, else how the transfer has ended. */
__attribute__((warn_unused_result)) struct http_transfer *http_resolver_turn(struct http_resolver *resolver);

/* Whoever waits does so no longer: the list of them. Lookups go on, for others. */
__attribute__((warn_unused_result)) struct http_transfer *http_resolver_drop(struct http_resolver *resolver);

/* Ends all lookups without waiting for their threads, and forgets who waits. */
void http_resolver_stop(struct http_resolver *resolver);

#endif
