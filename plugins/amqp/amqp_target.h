/* SPDX-License-Identifier: MIT
 *
 * amqp_target.h - where a connection goes and as whom: the url and the options of an instance, taken apart once.
 *
 * Immutable and counted, because a thread that is still trying to connect may outlive the instance that started it
 * (amqp_connect.h). The last owner wipes the password.
 */
#ifndef AMQP_TARGET_H
#define AMQP_TARGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <duebox/plugin.h>

#include "amqp_options.h"
#include "amqp_vendor.h"

struct amqp_target {
  atomic_uint refs;
  char *host;
  int port;
  char *vhost;
  char *user;
  char *password;
  char *connection_name; /* shown by the broker's management tools */
  bool tls;
  bool verify;
  char *ca_file;
  char *cert_file; /* NULL = none */
  char *key_file;
  int heartbeat_s;
  int frame_max;
  int64_t connect_timeout_ms;
  int64_t confirm_timeout_ms;
};

/* Takes the url and the options apart; NULL with err->text when the url is not one. The caller owns one reference. */
struct amqp_target *amqp_target_new(const struct amqp_options *options, const char *name, struct duebox_error *err);
struct amqp_target *amqp_target_ref(struct amqp_target *target);

void amqp_target_unref(struct amqp_target *target); /* NULL is allowed */

#endif
