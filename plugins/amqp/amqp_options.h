/* SPDX-License-Identifier: MIT
 *
 * amqp_options.h - what a user may set for an amqp instance, a route via it, and a result queue on it.
 *
 * The host fills these structs from the rows before any function of the plugin runs; they are const and outlive the
 * instance.
 */
#ifndef AMQP_OPTIONS_H
#define AMQP_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <duebox/option.h>
#include <duebox/plugin.h>

/* An entry under `plugins:`. */
struct amqp_options {
  const char *url;
  const char *password;
  int64_t connect_timeout_ms;
  int64_t confirm_timeout_ms;
  int64_t heartbeat_ms;
  int64_t frame_max;
  const char *ca_file;
  const char *cert_file;
  const char *key_file;
  bool allow_unverified;
  bool allow_plaintext;
};

/* A route that goes via the instance. */
struct amqp_route {
  const char *exchange;
  const char *routing_key;
  const char *content_type;
  const char *app_id;
  bool persistent;
};

/* An entry under `results:`. */
struct amqp_source_options {
  const char *queue;
  int64_t prefetch;
};

extern const struct duebox_option amqp_option_rows[];
extern const struct duebox_option amqp_route_rows[];
extern const struct duebox_option amqp_source_rows[];

/* duebox_plugin.check and .check_route. */
bool amqp_options_check(const void *options, struct duebox_error *err);
bool amqp_route_check(const void *options, const void *route, struct duebox_error *err);

/* duebox_plugin.max_checkpoint: what a frame of frame_max has left beside all that a message may have in it. */
size_t amqp_max_checkpoint(const void *options, const void *route);

#endif
