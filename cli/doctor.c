/* SPDX-License-Identifier: MIT
 *
 * cli/doctor.c - `duebox doctor`: what is wrong or soon will be, each line with its cure.
 */
#include <string.h>
#include <sysexits.h>

#include "admin/admin.h"
#include "cli/cli.h"
#include "cli/daemon.h"
#include "cli/probe.h"
#include "cli/text.h"
#include "core/base/clock.h"
#include "core/modules.h"
#include "outbox/db_conn.h"

enum { HEALTH_TIMEOUT_MS = 3000, HTTP_OK = 200 };

struct examination {
  struct cli *cli;
  struct listing *listing; /* JSON formats */
  unsigned found[FINDING_FAIL + 1];
  unsigned rights; /* of those that failed: the database's user lacks a right */
  bool no_memory;
};

static const char *const words[] = {[FINDING_OK] = "ok", [FINDING_WARN] = "warn", [FINDING_FAIL] = "fail"};

/* A table would cut the sentences, so people get lines: the cure stands below what it cures. */
static void print_finding(const struct output *output, enum finding level, const char *check, const char *text,
                          const char *cure) {
  static const char *const colors[] = {
      [FINDING_OK] = "\033[32m", [FINDING_WARN] = "\033[33m", [FINDING_FAIL] = "\033[31m"};
  char *safe = text_safe(text, strlen(text), TEXT_ONE_LINE);
  printf("%s%-4s%s  %-18s  %s\n", output->color ? colors[level] : "", words[level], output->color ? "\033[0m" : "",
         check, safe ? safe : "");
  char *safe_cure = text_safe(cure, strlen(cure), TEXT_ONE_LINE);
  if (*cure)
    printf("%26s%s\n", "-> ", safe_cure ? safe_cure : "");
  free(safe_cure);
  free(safe);
}

static void say(void *ctx, enum finding level, const char *check, const char *text, const char *cure) {
  struct examination *exam = ctx;
  exam->found[level]++;
  exam->rights += level == FINDING_FAIL && strcmp(check, "rights") == 0;
  if (!exam->listing)
    print_finding(&exam->cli->output, level, check, text, cure);
  else
    exam->no_memory |= !listing_add(exam->listing, json_pack("{s:s, s:s, s:o, s:o}", "level", words[level], "check",
                                                             check, "text", output_string(text, strlen(text)), "cure",
                                                             output_string(cure, strlen(cure))));
}

static void check_modules(struct examination *exam, const struct config *config) {
  for (size_t i = 0; i < config->plugin_count; i++) {
    const struct plugin_config *plugin = &config->plugins[i];
    char text[256];
    snprintf(text, sizeof text, "%s: module %s %s, ABI %u.%u%s%s", plugin->name, plugin->module->name,
             plugin->module->version, plugin->module->abi_major, plugin->module->abi_minor,
             plugin->module->vendor ? ", " : "", plugin->module->vendor ? plugin->module->vendor : "");
    say(exam, FINDING_OK, "plugin", text, "");
  }
}

/* How many of the checks found the same, for instance that the host is down which all of these routes call. */
static size_t count_same(const struct probe_targets *targets, const struct duebox_check *check, bool *first) {
  const struct duebox_check *other;
  size_t same = 0;
  *first = false;
  for (size_t i = 0; (other = probe_targets_at(targets, i)); i++) {
    if (other->verdict != check->verdict || strcmp(other->text, check->text) != 0)
      continue;
    *first |= same == 0 && other == check;
    same++;
  }
  return same;
}

static void print_target(struct examination *exam, const struct probe_targets *targets,
                         const struct duebox_check *check) {
  char text[800], more[64] = "";
  bool first;
  size_t same = count_same(targets, check, &first);
  if (!first)
    return;
  if (same > 1)
    snprintf(more, sizeof more, " and %zu more", same - 1);
  snprintf(text, sizeof text, "%s %s%s: %s", check->route ? "route" : "results", check->name, more,
           check->text[0] ? check->text : "the plugin has not said whether its target is there");
  say(exam, check->verdict == DUEBOX_CHECK_WRONG ? FINDING_FAIL : FINDING_WARN, "target", text,
      check->cure[0] ? check->cure : "mend its target, or its keys under routes and results");
}

/* Topics, queues and hosts. Those that are there share a line. Of a destination that cannot be used only what is wrong
 * for sure is news, such as a login that its broker refuses. */
static void check_targets(struct examination *exam, const struct config *config, const struct plugin_config *plugin,
                          bool usable) {
  struct probe_targets *targets = probe_targets(config, plugin);
  const struct duebox_check *check;
  char text[256];
  size_t good = 0, all = 0;
  if (!targets)
    return;
  for (; (check = probe_targets_at(targets, all)); all++)
    if (check->verdict == DUEBOX_CHECK_OK)
      good++;
    else if (usable || check->verdict == DUEBOX_CHECK_WRONG)
      print_target(exam, targets, check);
  snprintf(text, sizeof text, "plugin %s: %zu of %zu targets are there", plugin->name, good, all);
  exam->cli->outlived |= probe_targets_hang(targets);
  if (probe_targets_hang(targets))
    say(exam, FINDING_WARN, "target", "the plugin hangs when it is asked for its targets", "report it to its author");
  else if (good)
    say(exam, FINDING_OK, "target", text, "");
  probe_targets_free(targets);
}

/* By ourselves: what the daemon would meet, whether it runs or not. HTTP connects for each request only. */
static void check_connections(struct examination *exam, const struct config *config) {
  for (size_t i = 0; i < config->plugin_count; i++) {
    const struct plugin_config *plugin = &config->plugins[i];
    char why[512], text[640];
    if (!(plugin->module->capabilities & DUEBOX_CAP_SINK) || (plugin->module->capabilities & DUEBOX_CAP_ANSWERS)) {
      check_targets(exam, config, plugin, true);
      continue;
    }
    enum probe_answer answer = probe_plugin(plugin, why, sizeof why);
    snprintf(text, sizeof text, "plugin %s %s%s%s", plugin->name,
             answer == PROBE_UP      ? "reaches its destination and may log in"
             : answer == PROBE_DOWN  ? "cannot use its destination"
             : answer == PROBE_HANGS ? "hangs when an instance of it is started: it does not come back from a call"
                                     : "has not connected within some seconds",
             why[0] ? ": " : "", why);
    exam->cli->outlived |= answer == PROBE_HANGS;
    say(exam, answer == PROBE_UP ? FINDING_OK : FINDING_WARN, "connection", text,
        answer == PROBE_UP      ? ""
        : answer == PROBE_HANGS ? "start what it speaks to, or report it to its author"
                                : "correct its address, user and password under plugins, or start what it speaks to");
    if (answer == PROBE_UP || answer == PROBE_DOWN)
      check_targets(exam, config, plugin, answer == PROBE_UP);
  }
}

static const char *word(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

/* NULL where the database is not there: then nobody can tell whose daemon answers. */
static const struct operator* outbox_of(const struct examination *exam) {
  return exam->cli->op.ops ? &exam->cli->op : NULL;
}

static void check_admin(struct examination *exam, const struct config *config) {
  struct daemon_client *client;
  struct daemon_answer answer;
  struct err err = {0};
  char text[1200];
  if (!config->admin.host) {
    say(exam, FINDING_WARN, "admin", "admin.listen is off",
        "cancel and reschedule of claimed shards need it; set admin.listen and admin.token_file");
    return;
  }
  if (!daemon_client_new(&config->admin, outbox_of(exam), &client, &err)) {
    say(exam, FINDING_FAIL, "admin", err.text, "");
    return;
  }
  if (!daemon_ask(client, config->admin.url, "/readyz", DAEMON_READY, NULL, HEALTH_TIMEOUT_MS, &answer, &err)) {
    say(exam, FINDING_WARN, "admin", err.text,
        answer.status == DAEMON_UNNAMED ? "" : "start the daemon: duebox run; or mend admin.url");
  } else {
    snprintf(text, sizeof text, "%s: %s", config->admin.url, answer.status == HTTP_OK ? "ready" : answer.detail);
    say(exam, answer.status == HTTP_OK ? FINDING_OK : FINDING_WARN, "admin", text,
        answer.status == HTTP_OK ? "" : "look into the daemon's log");
    json_decref(answer.body);
  }
  if (!config->admin.token)
    say(exam, FINDING_WARN, "admin token",
        "no token: the listener takes no commands, so tasks of held shards cannot "
        "be cancelled from here",
        "set admin.token_file");
  daemon_client_free(&client);
}

/* A route that is suspended, or targets of it that are, each with the task that met the trouble first. */
static unsigned check_route(struct examination *exam, const json_t *route) {
  char text[1200];
  unsigned wrong = 0;
  size_t i;
  json_t *one;
  if (json_is_true(json_object_get(route, "suspended"))) {
    snprintf(text, sizeof text, "route %s is suspended: %s", word(route, "name"), daemon_said(route, "trouble"));
    say(exam, FINDING_WARN, "destinations", text, "mend its destination; its tasks wait and go on by themselves");
    wrong++;
  }
  if (json_integer_value(json_object_get(route, "stalled_us")) > 0) {
    snprintf(text, sizeof text, "route %s is stalled: nothing was confirmed for %.1f s, first task %s%s to %s",
             word(route, "name"), (double)json_integer_value(json_object_get(route, "stalled_us")) / 1e6,
             daemon_said_prefix(route, "stalled_message_id"), daemon_said(route, "stalled_message_id"),
             daemon_said(route, "stalled_target"));
    say(exam, FINDING_WARN, "destinations", text, "look at the destination; the other tasks wait in the table");
    wrong++;
  }
  json_array_foreach(json_object_get(route, "targets"), i, one) {
    snprintf(text, sizeof text, "route %s: target %s is suspended since task %s%s: %s", word(route, "name"),
             daemon_said(one, "target"), daemon_said_prefix(one, "message_id"), daemon_said(one, "message_id"),
             daemon_said(one, "reason"));
    say(exam, FINDING_WARN, "destinations", text, "mend the target or the task; other tasks of the route flow");
    wrong++;
  }
  return wrong;
}

/* What the daemon sees of its destinations: a broker that is away, a topic or queue that is not there. */
static void check_destinations(struct examination *exam, const struct config *config) {
  struct err err = {0};
  char text[1200];
  unsigned wrong = 0;
  size_t i;
  json_t *stats = daemon_get(&config->admin, outbox_of(exam), "/api/v1/stats", DAEMON_ROUTES, &err), *one;
  if (!stats)
    return; /* which is said elsewhere */
  json_array_foreach(json_object_get(stats, "plugins"), i, one) {
    const char *said = daemon_said(one, "text");
    if (json_is_true(json_object_get(one, "up")) || /* some connect for the first task */
        strcmp(said, PLUGIN_UNHEARD) == 0)
      continue;
    snprintf(text, sizeof text, "plugin %s (%s) is down: %s", word(one, "name"), word(one, "role"), said);
    say(exam, FINDING_WARN, "destinations", text, "mend what it speaks to, or its keys under plugins and results");
    wrong++;
  }
  json_array_foreach(json_object_get(stats, "routes"), i, one) wrong += check_route(exam, one);
  if (!wrong)
    say(exam, FINDING_OK, "destinations", "the daemon has met none that is down", "");
  json_decref(stats);
}

static int check_database(struct examination *exam, const struct config *config) {
  const struct operator* op;
  struct err err = {0};
  struct doctor_facts facts = {
      .max_payload = config->engine.max_payload, .wake = config->database.wake, .wall_clock = clock_wall_us};
  char place[300];
  db_place(&config->database, place, sizeof place);
  enum store_status status = cli_connect(exam->cli, config, &op, &err);
  if (status != STORE_OK) {
    say(exam, FINDING_FAIL, "database", err.text, "mend this first; the other checks of the database need it");
    return cli_store_code(status, &err);
  }
  say(exam, FINDING_OK, "database", place, "");
  status = op->ops->doctor(op->self, &facts, say, exam, &err);
  if (status == STORE_OK)
    return EX_OK;
  say(exam, FINDING_FAIL, "database", cli_store_text(&err), "mend this first; the checks behind it were not made");
  return cli_store_code(status, &err);
}

int run_doctor(struct cli *cli, const struct args *args) {
  static const struct column none[] = {{"check", "CHECK", CELL_TEXT, false}};
  struct examination exam = {.cli = cli};
  const struct config *config;
  struct err err = {0};
  int code = cli_config(cli, &config);
  if (code)
    return code;
  if (cli->output.format != OUTPUT_TEXT && !(exam.listing = listing_open(&cli->output, none, ARRAY_LEN(none))))
    return cli_fail(EX_OSERR, "out of memory");
  say(&exam, FINDING_OK, "configuration", cli->config_path, "");
  if (config->admin.host && !admin_check(&config->admin, &err))
    say(&exam, FINDING_FAIL, "configuration", err.text, "");
  check_modules(&exam, config);
  code = check_database(&exam, config);
  check_admin(&exam, config);
  check_connections(&exam, config);
  check_destinations(&exam, config);
  if (exam.listing)
    listing_close(exam.listing, NULL);
  else
    cli_remark(cli, "%u ok, %u warnings, %u failures", exam.found[FINDING_OK], exam.found[FINDING_WARN],
               exam.found[FINDING_FAIL]);
  if (exam.no_memory)
    return cli_fail(EX_OSERR, "out of memory");
  if (code || !exam.found[FINDING_FAIL])
    return code;
  return exam.rights == exam.found[FINDING_FAIL] ? EX_NOPERM : EX_CONFIG;
}
