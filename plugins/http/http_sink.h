/* SPDX-License-Identifier: MIT
 *
 * http_sink.h - an instance of the plugin: libcurl's multi interface driven by the host's driver thread.
 *
 * Owns the multi handle with its pool of kept connections and one transfer for each task that may be in flight; nothing
 * queues inside libcurl. They begin in turns (http_turns.h). Everything runs on the driver thread but create, destroy
 * (main thread) and wakeup (any thread; curl_multi_wakeup() is made for that). No locks. Threads are started by libcurl
 * only, for name resolution (http_resolver.h).
 */
#ifndef PLUGINS_HTTP_SINK_H
#define PLUGINS_HTTP_SINK_H

#include <duebox/plugin.h>

#include "http_resolver.h"
#include "http_transfer.h"

enum http_health { HTTP_HEALTH_UNKNOWN = 0, HTTP_HEALTH_UP, HTTP_HEALTH_DOWN };

struct http_sink {
  struct http_shared shared;
  CURLM *multi;
  struct http_resolver resolver;
  struct http_transfer *transfers;
  size_t count;                  /* of transfers */
  struct http_transfer *idle;    /* list */
  struct http_transfer *refused; /* list: accepted, cannot be sent, to be completed by the next poll() */
  size_t running;                /* in the multi handle, or waiting for a turn or a name */
  unsigned failed_in_row;        /* transfers that could not connect since the last answer */
  enum http_health health;       /* as last told to the host */
  bool global;                   /* curl_global_init() was called */
  bool closed;
};

bool http_sink_create(void *inst, const struct duebox_instance_config *config, const struct duebox_host *host,
                      struct duebox_error *err);
bool http_sink_start(void *inst, struct duebox_error *err);
size_t http_sink_submit(void *inst, const struct duebox_task *const *tasks, size_t n);
void http_sink_recall(void *inst);
void http_sink_poll(void *inst, int timeout_ms);
void http_sink_wakeup(void *inst);
void http_sink_close(void *inst);
void http_sink_stop(void *inst, int deadline_ms);
void http_sink_destroy(void *inst);

#endif
