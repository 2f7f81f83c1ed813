/* SPDX-License-Identifier: MIT
 *
 * admin/admin.h - the daemon's HTTP listener: API, metrics, health and the operator's page.
 *
 * Who may do what. With a token configured everything needs it, reading too, wherever the caller is: a proxy on this
 * machine makes every caller local. Without one there are no commands, the listener must be on a loopback address, and
 * reads are answered to callers on this machine whom no proxy has forwarded. Health (without details), robots.txt and
 * the page's static files carry no data and are open. Callbacks have a listener of their own, on which nothing else is;
 * a callback URL carries its own token, good for one attempt of one task.
 *
 * Threads: one of libmicrohttpd's, a few workers for what waits for the database, one that minds deadlines. None of
 * them belongs to the engine, so a listener in trouble never delays a task, and a database in trouble never delays
 * /healthz.
 */
#ifndef ADMIN_ADMIN_H
#define ADMIN_ADMIN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/attr.h"
#include "core/base/err.h"
#include "core/config.h"
#include "core/engine.h"

struct admin;
struct operator; /* core/operator.h */

/* What the listener asks of the daemon around it. */
struct admin_hooks {
  void *ctx;
  /* Loads the configuration again and swaps it, or changes nothing and says why. Called on a worker, which it may
   * hold until the main thread has answered; it must return soon (false) once the daemon is stopping. */
  bool (*reload)(void *ctx, struct err *err);
  /* Connects to the database for one request; the worker closes it. NULL = there is none. */
  void *operator_ctx;
  bool (*open_operator)(void *operator_ctx, struct operator* out, struct err *err);
};

/* Judges the settings as admin_start would, without opening anything. For `duebox check`. */
MUSTCHECK bool admin_check(const struct admin_config *config, struct err *err);

/* Starts to listen. config->host must be given. Nothing of config is kept after return; engine and hooks->ctx outlive
 * the listener. Main thread. */
MUSTCHECK bool admin_start(struct engine *engine, const struct admin_config *config, const struct admin_hooks *hooks,
                           struct admin **out, struct err *err);

/* Starts a listener for callbacks, and for nothing else: consumers that reach it reach no operator's API. config->host
 * must be given. As admin_start otherwise. */
MUSTCHECK bool admin_start_callbacks(struct engine *engine, const struct callbacks_config *config, struct admin **out,
                                     struct err *err);

/* The port that is listened on: the configured one, or the one chosen when that was 0. */
uint16_t admin_port(const struct admin *admin);

/* Answers what is under way (commands not yet begun with 503), closes everything, frees. Before engine_stop(). */
void admin_stop(struct admin **admin);

#endif
