/* SPDX-License-Identifier: MIT
 *
 * cli/run.c - `duebox run`: the one place where core, outbox and admin are wired together.
 */
#include <stdlib.h>
#include <sysexits.h>

#include "admin/admin.h"
#include "cli/cli.h"
#include "core/daemon.h"
#include "outbox/operator.h"
#include "outbox/outbox.h"

struct wiring {
  struct admin *admin, *callbacks;
};

static bool make_store(void *ctx, const struct config *config, struct store *out, struct err *err) {
  return outbox_create(&config->database, out, err);
}

static void drop_store(void *ctx, struct store *store) { outbox_destroy(store); }

static bool open_operator(void *ctx, struct operator* out, struct err *err) {
  return outbox_operator_open(ctx, out, err) == STORE_OK;
}

static bool start_admin(void *ctx, struct engine *engine, const struct config *config,
                        bool (*reload)(void *daemon, struct err *err), void *daemon, struct err *err) {
  struct wiring *wiring = ctx;
  struct admin_hooks hooks = {.ctx = daemon,
                              .reload = reload,
                              .operator_ctx = (void *)(uintptr_t)&config->database, /* which the engine keeps */
                              .open_operator = open_operator};
  return (!config->admin.host || admin_start(engine, &config->admin, &hooks, &wiring->admin, err)) &&
         (!config->callbacks.host || admin_start_callbacks(engine, &config->callbacks, &wiring->callbacks, err));
}

static void stop_admin(void *ctx) {
  struct wiring *wiring = ctx;
  admin_stop(&wiring->callbacks);
  admin_stop(&wiring->admin);
}

int run_run(struct cli *cli, const struct args *args) {
  struct wiring wiring = {0};
  struct daemon_parts parts = {.ctx = &wiring,
                               .make_store = make_store,
                               .drop_store = drop_store,
                               .start_admin = start_admin,
                               .stop_admin = stop_admin};
  if (!cli->config_path)
    return cli_fail(EX_CONFIG, "no configuration file: give one with --config FILE, or set DUEBOX_CONFIG");
  return daemon_run(cli->config_path, args_has(args, OPT_HOLD), &parts);
}
