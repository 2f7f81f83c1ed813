/* SPDX-License-Identifier: MIT
 *
 * cli/plugin.c - `duebox plugin list` and `plugin info`: which modules there are, what they can do, their options.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cli/cli.h"
#include "core/modules.h"
#include "core/options.h"

/* --- list --- */

static json_t *roles_json(uint32_t capabilities) {
  json_t *roles = json_array();
  if (capabilities & DUEBOX_CAP_SINK)
    json_array_append_new(roles, json_string("sink"));
  if (capabilities & DUEBOX_CAP_SOURCE)
    json_array_append_new(roles, json_string("source"));
  return roles;
}

/* Names of the entries under `plugins:` that use the module. */
static json_t *users_json(const struct config *config, const struct duebox_plugin *plugin) {
  json_t *users = json_array();
  for (size_t i = 0; config && i < config->plugin_count; i++)
    if (config->plugins[i].module == plugin)
      json_array_append_new(users, json_string(config->plugins[i].name));
  return users;
}

static json_t *module_json(const struct config *config, const struct module *module) {
  const struct duebox_plugin *plugin = module->plugin;
  return json_pack("{s:s, s:s, s:s, s:s?, s:s?, s:o, s:o, s:o}", "module", plugin->name, "version", plugin->version,
                   "path", module->path, "library", plugin->vendor, "summary", plugin->summary, "plugin_abi",
                   json_sprintf("%u.%u", plugin->abi_major, plugin->abi_minor), "roles",
                   roles_json(plugin->capabilities), "used_by", users_json(config, plugin));
}

/* Loads every module of a folder, so that the list shows what a configuration could name. */
static void load_folder(struct cli *cli, const char *folder) {
  struct dirent **entries;
  int n = scandir(folder, &entries, NULL, alphasort);
  for (int i = 0; i < n; i++) {
    const char *dot = strrchr(entries[i]->d_name, '.');
    struct err err = {0};
    char *path = NULL;
    if (dot && strcmp(dot, ".so") == 0 && asprintf(&path, "%s/%s", folder, entries[i]->d_name) > 0) {
      char *absolute = realpath(path, NULL);
      if (absolute && !modules_load(cli->modules, absolute, &err))
        cli_remark(cli, "%s", err.text);
      free(absolute);
      free(path);
    }
    free(entries[i]);
  }
  if (n >= 0)
    free(entries);
}

int run_plugin_list(struct cli *cli, const struct args *args) {
  static const struct column columns[] = {
      {"module", "MODULE", CELL_TEXT, false},   {"version", "VERSION", CELL_TEXT, false},
      {"plugin_abi", "ABI", CELL_TEXT, false},  {"roles", "ROLES", CELL_TEXT, false},
      {"library", "LIBRARY", CELL_PROSE, true}, {"used_by", "USED BY", CELL_TEXT, false},
      {"path", "PATH", CELL_PROSE, true}};
  const struct config *config = NULL;
  if (cli->config_path) {
    int code = cli_config(cli, &config);
    if (code)
      return code;
  }
  cli_modules(cli);
  for (size_t i = 0; modules_dir(cli->modules, i); i++)
    load_folder(cli, modules_dir(cli->modules, i));
  struct listing *listing = listing_open(&cli->output, columns, ARRAY_LEN(columns));
  bool ok = listing != NULL;
  for (size_t i = 0; ok && i < modules_count(cli->modules); i++)
    ok = listing_add(listing, module_json(config, modules_at(cli->modules, i)));
  listing_close(listing, "no module in the plugin folders; set DUEBOX_PLUGIN_PATH for a folder of yours");
  return ok ? EX_OK : cli_fail(EX_OSERR, "out of memory");
}

/* --- info --- */

static const char *type_name(enum duebox_option_type type) {
  static const char *const names[] = {
      [DUEBOX_OPT_STRING] = "text",   [DUEBOX_OPT_BOOL] = "true/false",     [DUEBOX_OPT_INT] = "number",
      [DUEBOX_OPT_SIZE] = "size",     [DUEBOX_OPT_DURATION] = "duration",   [DUEBOX_OPT_RATE] = "rate",
      [DUEBOX_OPT_NUMBER] = "number", [DUEBOX_OPT_ENUM] = "word",           [DUEBOX_OPT_SECRET] = "secret",
      [DUEBOX_OPT_LIST] = "list",     [DUEBOX_OPT_DURATIONS] = "durations", [DUEBOX_OPT_MAP] = "map"};
  return (size_t)type < ARRAY_LEN(names) && names[type] ? names[type] : "?";
}

static json_t *choices_json(const struct duebox_option *row) {
  if (row->type != DUEBOX_OPT_ENUM)
    return json_null();
  json_t *choices = json_array();
  for (const char *const *choice = row->choices; *choice; choice++)
    json_array_append_new(choices, json_string(*choice));
  return choices;
}

static bool list_options(struct listing *listing, const char *place, const struct duebox_option *row) {
  bool ok = true;
  for (; ok && row && row->name; row++)
    ok = listing_add(listing,
                     json_pack("{s:s, s:s, s:s, s:b, s:s?, s:o, s:s}", "place", place, "option", row->name, "type",
                               type_name(row->type), "required", (row->flags & DUEBOX_OPT_REQUIRED) != 0, "default",
                               row->def, "choices", choices_json(row), "help", row->help));
  return ok;
}

/* A module by name, or by a path from here: an argument with a slash is a file, as for a shell. */
static const struct module *load_named(struct cli *cli, const char *name, struct err *err) {
  bool is_file = strchr(name, '/') != NULL;
  char *path = is_file ? realpath(name, NULL) : NULL;
  const struct module *module = NULL;
  if (is_file && !path)
    err_set(err, errno, "%s: %s", name, strerror(errno));
  else
    module = modules_load(cli->modules, path ? path : name, err);
  free(path);
  return module;
}

/* It is not there; it cannot be read; or it is there and refused, as a configuration with it would be. */
static int refusal_code(int error) {
  if (error == ENOENT || error == ENOTDIR || error == EINVAL)
    return EX_NOINPUT;
  return error == MODULE_REFUSED || error == ELOOP ? EX_CONFIG : EX_IOERR;
}

int run_plugin_info(struct cli *cli, const struct args *args) {
  static const struct column columns[] = {
      {"place", "WHERE", CELL_TEXT, false},     {"option", "OPTION", CELL_TEXT, false},
      {"type", "TYPE", CELL_TEXT, false},       {"required", "REQUIRED", CELL_TEXT, false},
      {"default", "DEFAULT", CELL_PROSE, true}, {"help", "MEANING", CELL_PROSE, true}};
  struct err err = {0};
  cli_modules(cli);
  const struct module *module = load_named(cli, args->operands[0], &err);
  if (!module)
    return cli_fail(refusal_code(err.code), "plugin info: %s", err.text);
  const struct duebox_plugin *plugin = module->plugin;
  if (cli->output.format == OUTPUT_TEXT)
    cli_remark(cli, "%s %s: %s (ABI %u.%u%s%s) %s", plugin->name, plugin->version, plugin->summary, plugin->abi_major,
               plugin->abi_minor, plugin->vendor ? ", " : "", plugin->vendor ? plugin->vendor : "", module->path);
  struct listing *listing = listing_open(&cli->output, columns, ARRAY_LEN(columns));
  bool ok = listing && list_options(listing, "plugins", plugin->options) &&
            list_options(listing, "routes", plugin->route_options) &&
            list_options(listing, "results", plugin->source_options);
  listing_close(listing, "the module has no options");
  return ok ? EX_OK : cli_fail(EX_OSERR, "out of memory");
}
