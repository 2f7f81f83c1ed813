/* SPDX-License-Identifier: MIT
 *
 * core/daemon.h - `duebox run`: signals, reload and exit codes around the engine. Main thread.
 */
#ifndef CORE_DAEMON_H
#define CORE_DAEMON_H

#include <stdbool.h>

#include "core/base/attr.h"
#include "core/base/err.h"
#include "core/engine.h"

/* What the wiring (cli/) puts around the engine, so that the core needs to know neither the database nor HTTP. */
struct daemon_parts {
  void *ctx;
  /* Makes the store of that configuration; it lives until drop_store. */
  bool (*make_store)(void *ctx, const struct config *config, struct store *out, struct err *err);
  void (*drop_store)(void *ctx, struct store *store);
  /* Starts and stops the admin listener. reload(daemon, err) may be called from its threads. */
  bool (*start_admin)(void *ctx, struct engine *engine, const struct config *config,
                      bool (*reload)(void *daemon, struct err *err), void *daemon, struct err *err);
  void (*stop_admin)(void *ctx);
};

/* From now on signals wait until the daemon takes them, for as long as the process lives. daemon_run() does this too:
 * to be called before whatever takes time. */
void daemon_block_signals(void);
/* Runs until SIGTERM or SIGINT; on_hold: without sending (engine_hold). SIGHUP reloads. A second SIGTERM ends without
 * waiting for what is in flight; what cannot be ended within five seconds then ends with the process. Returns a
 * sysexits code: 0, EX_CONFIG (78), EX_UNAVAILABLE (69: the admin address is taken), EX_SOFTWARE (70). */
MUSTCHECK int daemon_run(const char *config_path, bool on_hold, const struct daemon_parts *parts);

#endif
