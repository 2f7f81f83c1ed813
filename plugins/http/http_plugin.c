/* SPDX-License-Identifier: MIT
 *
 * http_plugin.c - the descriptor and nothing else.
 */
#include <duebox/plugin.h>

#include "http_lookup.h"
#include "http_options.h"
#include "http_request.h"
#include "http_sink.h"

static const struct duebox_sink_ops sink_ops = {
    .struct_size = sizeof(struct duebox_sink_ops),
    .submit = http_sink_submit,
    .recall = http_sink_recall,
};

static size_t max_checkpoint(const void *options, const void *route) {
  (void)route;
  return ((const struct http_options *)options)->http2 ? HTTP2_REQUEST_CHECKPOINT_MAX : HTTP_REQUEST_CHECKPOINT_MAX;
}

DUEBOX_EXPORT extern const struct duebox_plugin duebox_plugin_v1;
const struct duebox_plugin duebox_plugin_v1 = {
    DUEBOX_PLUGIN_PREFIX,
    .capabilities = DUEBOX_CAP_SINK | DUEBOX_CAP_LONG_CALLS | DUEBOX_CAP_ANSWERS,
    .name = "http",
    .version = HTTP_PLUGIN_VERSION,
    .summary = "sends tasks to HTTP hooks, signed after Standard Webhooks, and takes the answer from the response",
    .vendor = "libcurl " LIBCURL_VERSION,
    .options = http_option_rows,
    .options_size = sizeof(struct http_options),
    .route_options = http_route_rows,
    .route_size = sizeof(struct http_route),
    .instance_size = sizeof(struct http_sink),
    .check = http_options_check,
    .check_route = http_route_check,
    .create = http_sink_create,
    .start = http_sink_start,
    .poll = http_sink_poll,
    .wakeup = http_sink_wakeup,
    .close = http_sink_close,
    .stop = http_sink_stop,
    .destroy = http_sink_destroy,
    .sink = &sink_ops,
    .check_targets = http_check_targets,
    .max_checkpoint = max_checkpoint,
};
