/* SPDX-License-Identifier: MIT
 *
 * cli/route.c - `duebox route list|show|pause|resume`: routes as they are configured, set by people, and loaded.
 *
 * Whether a route is suspended only its daemon knows; where that says nothing, nothing is claimed.
 */
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cli/cli.h"
#include "cli/daemon.h"
#include "cli/rows.h"
#include "core/options.h"

enum { COUNT_CAP = 10000 };

/* --- rows of the database, of the configuration and of the daemon, put together --- */

static const char *const count_keys[] = {"scheduled", "claimed", "awaiting", "held", "blocked", "dead"};

/* A route that has neither rows nor a setting. */
static json_t *idle_route(const char *name) {
  json_t *route = json_pack("{s:s, s:b}", "route", name, "paused", false);
  for (size_t i = 0; i < ARRAY_LEN(count_keys); i++)
    json_object_set_new(route, count_keys[i], json_integer(0));
  return route;
}

/* Counts stop at the cap: people see "10000+", programs a flag. */
static void mark_cap(json_t *route, bool for_people) {
  bool capped = false;
  for (size_t i = 0; i < ARRAY_LEN(count_keys); i++) {
    if (json_integer_value(json_object_get(route, count_keys[i])) < COUNT_CAP)
      continue;
    capped = true;
    if (for_people)
      json_object_set_new(route, count_keys[i], json_sprintf("%d+", COUNT_CAP));
  }
  json_object_set_new(route, "capped", json_boolean(capped));
}

static bool gather_row(void *ctx, const struct field *fields, size_t count) {
  json_t *row = row_json(fields, count, true);
  return json_object_set_new(ctx, json_string_value(json_object_get(row, "route")), row) == 0;
}

/* Names the first of the suspended targets, and how many there are. */
static json_t *targets_text(const json_t *targets) {
  const json_t *first = json_array_get(targets, 0);
  json_t *text = json_sprintf("%zu suspended: %s since task %s%s: %s", json_array_size(targets),
                              daemon_said(first, "target"), daemon_said_prefix(first, "message_id"),
                              daemon_said(first, "message_id"), daemon_said(first, "reason"));
  return text ? text : json_string("suspended targets");
}

static json_t *stall_text(const json_t *seen) {
  json_t *text = json_sprintf("nothing confirmed for %.1f s; first task %s%s to %s",
                              (double)json_integer_value(json_object_get(seen, "stalled_us")) / 1e6,
                              daemon_said_prefix(seen, "stalled_message_id"), daemon_said(seen, "stalled_message_id"),
                              daemon_said(seen, "stalled_target"));
  return text ? text : json_string("nothing confirmed");
}

static bool is_stalled(const json_t *seen) { return json_integer_value(json_object_get(seen, "stalled_us")) > 0; }

/* The worst that is known. seen: what the daemon says of the route; daemon: it says anything. */
static const char *state_word(const json_t *route, const json_t *seen, bool daemon) {
  if (json_is_true(json_object_get(route, "suspended")))
    return "suspended";
  if (json_is_true(json_object_get(route, "paused")))
    return "paused";
  if (!json_object_get(route, "via"))
    return "unknown";
  if (is_stalled(seen))
    return "stalled";
  if (json_array_size(json_object_get(seen, "targets")))
    return "targets suspended";
  return !daemon ? "?" : json_is_true(json_object_get(seen, "known")) ? "ok" : "not loaded";
}

static void judge(json_t *route, const json_t *seen, bool daemon, bool for_people) {
  json_t *suspended = json_object_get(seen, "suspended");
  json_object_set_new(route, "configured", json_boolean(json_object_get(route, "via") != NULL));
  json_object_set(route, "suspended", suspended ? suspended : json_null());
  json_t *targets = json_object_get(seen, "targets");
  if (json_is_true(suspended))
    json_object_set_new(route, "reason", json_string(daemon_said(seen, "trouble")));
  else if (is_stalled(seen) && !json_is_true(json_object_get(route, "paused")))
    json_object_set_new(route, "reason", stall_text(seen));
  else if (json_array_size(targets) && !json_is_true(json_object_get(route, "paused")))
    json_object_set_new(route, "reason", targets_text(targets));
  if (json_array_size(targets))
    json_object_set(route, "targets", targets);
  if (is_stalled(seen))
    json_object_set(route, "stalled_us", json_object_get(seen, "stalled_us"));
  if (for_people)
    json_object_set_new(route, "state", json_string(state_word(route, seen, daemon)));
}

/* All routes by name, as an object. Exit code. */
static int gather(struct cli *cli, const char *only, json_t *routes, const struct config **config) {
  const struct operator* op;
  struct err err = {0};
  int code = cli_config(cli, config);
  if (code || (code = cli_operator(cli, &op)))
    return code;
  enum store_status status = op->ops->routes(op->self, only, COUNT_CAP, gather_row, routes, &err);
  if (status != STORE_OK)
    return cli_fail_store(status, &err);
  for (size_t i = 0; i < (*config)->route_count; i++) {
    const struct route_config *route = &(*config)->routes[i];
    if (only && strcmp(only, route->name) != 0)
      continue;
    if (!json_object_get(routes, route->name))
      json_object_set_new(routes, route->name, idle_route(route->name));
    json_object_set_new(json_object_get(routes, route->name), "via", json_string(route->plugin->name));
  }
  if (json_object_size(routes) == 0)
    return EX_OK;
  json_t *seen = daemon_routes(&(*config)->admin, op, &err), *route;
  bool text = cli->output.format == OUTPUT_TEXT;
  if (!seen)
    cli_remark(cli, "which routes are suspended is not known: %s", err.text);
  const char *name;
  json_object_foreach(routes, name, route) {
    judge(route, json_object_get(seen, name), seen != NULL, text);
    mark_cap(route, text);
  }
  json_decref(seen);
  return EX_OK;
}

/* --- list and show --- */

int run_route_list(struct cli *cli, const struct args *args) {
  static const struct column columns[] = {
      {"route", "ROUTE", CELL_TEXT, false},       {"via", "VIA", CELL_TEXT, false},
      {"state", "STATE", CELL_STATE, false},      {"scheduled", "SCHEDULED", CELL_NUMBER, false},
      {"claimed", "CLAIMED", CELL_NUMBER, false}, {"awaiting", "AWAITING", CELL_NUMBER, false},
      {"held", "HELD", CELL_NUMBER, false},       {"blocked", "BLOCKED", CELL_NUMBER, false},
      {"dead", "DEAD", CELL_NUMBER, false},       {"next_at", "NEXT", CELL_TIME, false},
      {"reason", "REASON", CELL_TEXT, true}};
  const struct config *config;
  json_t *routes = json_object();
  int code = gather(cli, NULL, routes, &config);
  struct listing *listing = code ? NULL : listing_open(&cli->output, columns, ARRAY_LEN(columns));
  const char *name;
  json_t *route;
  bool ok = code || listing;
  if (listing)
    json_object_foreach(routes, name, route) ok = ok && listing_add(listing, json_incref(route));
  listing_close(listing, "no routes");
  json_decref(routes);
  return ok ? code : cli_fail(EX_OSERR, "out of memory");
}

static void add_config(json_t *object, const struct route_config *route) {
  static const char *const claims[] = {[CLAIM_MEMORY] = "memory", [CLAIM_RECORDED] = "recorded"};
  static const char *const results[] = {[RESULT_NONE] = "none", [RESULT_EXPECTED] = "expected"};
  json_t *values =
      json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:f, s:I, s:s?}", "module", route->plugin->module->name, "claim",
                claims[route->claim], "result", results[route->result], "timeout_ms", (json_int_t)route->timeout_ms,
                "max_attempts", (json_int_t)route->retry.max_attempts, "concurrency", (json_int_t)route->concurrency,
                "rate", route->rate, "history_ms", (json_int_t)route->history_ms, "reply_to", route->reply_to);
  json_object_update(object, values);
  json_decref(values);
}

int run_route_show(struct cli *cli, const struct args *args) {
  static const struct column columns[] = {{"route", "route", CELL_TEXT, false},
                                          {"state", "state", CELL_STATE, false},
                                          {"reason", "reason", CELL_TEXT, false},
                                          {"changed_by", "set by", CELL_TEXT, false},
                                          {"changed_at", "set at", CELL_TIME, false},
                                          {"via", "via", CELL_TEXT, false},
                                          {"module", "module", CELL_TEXT, false},
                                          {"claim", "claim", CELL_TEXT, false},
                                          {"result", "result", CELL_TEXT, false},
                                          {"timeout_ms", "timeout ms", CELL_TEXT, false},
                                          {"max_attempts", "max attempts", CELL_TEXT, false},
                                          {"concurrency", "concurrency", CELL_TEXT, false},
                                          {"rate", "rate per s", CELL_TEXT, false},
                                          {"history_ms", "history ms", CELL_TEXT, false},
                                          {"reply_to", "reply to", CELL_TEXT, false},
                                          {"scheduled", "scheduled", CELL_TEXT, false},
                                          {"claimed", "claimed", CELL_TEXT, false},
                                          {"awaiting", "awaiting", CELL_TEXT, false},
                                          {"held", "held", CELL_TEXT, false},
                                          {"blocked", "blocked", CELL_TEXT, false},
                                          {"dead", "dead", CELL_TEXT, false},
                                          {"next_at", "next due", CELL_TIME, false}};
  const char *name = args->operands[0];
  const struct config *config;
  json_t *routes = json_object();
  int code = gather(cli, name, routes, &config);
  json_t *route = json_object_get(routes, name);
  if (!code && !route)
    code = cli_fail(EX_NOINPUT, "route %s: not found: it is not configured and has no tasks", name);
  if (!code) {
    const struct route_config *configured = config_route(config, name, strlen(name));
    if (configured)
      add_config(route, configured);
    output_record(&cli->output, columns, ARRAY_LEN(columns), json_incref(route));
  }
  json_decref(routes);
  return code;
}

/* --- pause and resume --- */

/* What the table knows of a route. */
struct trace {
  bool tasks, setting;
};

static bool find_trace(void *ctx, const struct field *fields, size_t count) {
  struct trace *trace = ctx;
  for (size_t i = 0; i < count; i++) {
    trace->tasks |= fields[i].kind == FIELD_INT && fields[i].number > 0;
    trace->setting |= strcmp(fields[i].name, "changed_at") == 0 && !fields[i].null;
  }
  return true;
}

/* Refuses a name that is no route, and says which there are. */
static int no_route(const struct cli *cli, const struct config *config, const char *name) {
  enum { NAMED = 20 };
  char list[NAMED * (STORE_ROUTE_MAX + 2) + 64] = "none is configured";
  const char **names = calloc(config->route_count + 1, sizeof *names), *near = NULL;
  size_t used = 0;
  for (size_t i = 0; names && i < config->route_count; i++)
    names[i] = config->routes[i].name;
  if (names)
    near = option_suggest(name, names, config->route_count);
  for (size_t i = 0; i < config->route_count && i < NAMED; i++)
    used +=
        (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "configured are ", config->routes[i].name);
  if (config->route_count > NAMED)
    snprintf(list + used, sizeof list - used, " and %zu more", config->route_count - NAMED);
  free(names);
  return cli_fail(EX_NOINPUT, "route %s is not in %s and has no tasks: %s; %s%s%s", name, cli->config_path, list,
                  near ? "did you mean " : "add it under routes:, or take one of these", near ? near : "",
                  near ? "?" : "");
}

/* A name that neither the configuration nor a row knows is a typing error; an old setting may be taken back. */
static int check_route(struct cli *cli, const struct config *config, const struct operator* op, const char *name,
                       bool paused) {
  struct trace trace = {0};
  struct err err = {0};
  if (config_route(config, name, strlen(name)))
    return EX_OK;
  enum store_status status = op->ops->routes(op->self, name, 1, find_trace, &trace, &err);
  if (status != STORE_OK)
    return cli_fail_store(status, &err);
  if (!trace.tasks && (paused || !trace.setting))
    return no_route(cli, config, name);
  cli_remark(cli, "route %s is not in %s", name, cli->config_path);
  return EX_OK;
}

static int set_paused(struct cli *cli, const struct args *args, bool paused) {
  const struct operator* op;
  const struct config *config;
  struct err err = {0};
  char actor[128];
  const char *name = args->operands[0], *reason = args_text(args, OPT_REASON);
  if (strlen(name) > STORE_ROUTE_MAX)
    return cli_fail(EX_USAGE, "route %s: a route's name has at most %d characters", name, STORE_ROUTE_MAX);
  int code = cli_config(cli, &config);
  if (code || (code = cli_operator(cli, &op)))
    return code;
  if ((code = check_route(cli, config, op, name, paused)))
    return code;
  cli_actor(actor, sizeof actor);
  enum store_status status = op->ops->pause(op->self, name, paused, actor, reason ? reason : "", &err);
  if (status != STORE_OK)
    return cli_fail_store(status, &err);
  if (cli->output.format == OUTPUT_TEXT)
    printf("%s %s; daemons see it within a second\n", name, paused ? "paused" : "resumed");
  else
    output_record(&cli->output, NULL, 0, json_pack("{s:s, s:b}", "route", name, "paused", paused));
  return EX_OK;
}

int run_route_pause(struct cli *cli, const struct args *args) { return set_paused(cli, args, true); }
int run_route_resume(struct cli *cli, const struct args *args) { return set_paused(cli, args, false); }
