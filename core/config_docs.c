/* SPDX-License-Identifier: MIT
 *
 * core/config_docs.c - the option rows as Markdown tables.
 */
#include <string.h>

#include "core/config_rows.h"
#include "core/config_show.h"
#include "core/options.h"

static const char *const type_names[] = {
    [DUEBOX_OPT_STRING] = "text",   [DUEBOX_OPT_BOOL] = "boolean",        [DUEBOX_OPT_INT] = "whole number",
    [DUEBOX_OPT_SIZE] = "size",     [DUEBOX_OPT_DURATION] = "duration",   [DUEBOX_OPT_RATE] = "rate",
    [DUEBOX_OPT_NUMBER] = "number", [DUEBOX_OPT_ENUM] = "choice",         [DUEBOX_OPT_SECRET] = "secret",
    [DUEBOX_OPT_LIST] = "list",     [DUEBOX_OPT_DURATIONS] = "durations", [DUEBOX_OPT_MAP] = "map",
};

/* A bar would end the cell, and <name> would be taken for HTML. */
static void print_cell(const char *text, FILE *out) {
  for (; *text; text++) {
    if (*text == '|' || *text == '<')
      fputc('\\', out);
    fputc(*text, out);
  }
}

static void print_limit(const struct duebox_option *row, int64_t limit, FILE *out) {
  char text[32];
  option_print(&(struct duebox_option){.type = row->type}, &limit, text, sizeof text);
  fputs(text, out);
}

static void print_type(const struct duebox_option *row, FILE *out) {
  fputs(row->flags & DUEBOX_OPT_TEMPLATE ? "template"
        : row->flags & DUEBOX_OPT_PATH   ? "path"
                                         : type_names[row->type],
        out);
  if (row->type == DUEBOX_OPT_ENUM)
    for (size_t i = 0; row->choices[i]; i++)
      fprintf(out, "%s`%s`", i ? ", " : ": ", row->choices[i]);
  if (row->min != 0 || row->max != 0) {
    fputs(", ", out);
    print_limit(row, row->min, out);
    fputs(" to ", out);
    print_limit(row, row->max, out);
  }
}

static void print_rows(const char *heading, const char *note, const struct duebox_option *rows, FILE *out) {
  if (!rows || !rows->name)
    return;
  fprintf(out, "\n### %s\n\n%s%s| Key | Type | Default | Meaning |\n|---|---|---|---|\n", heading, note,
          note[0] ? "\n\n" : "");
  for (; rows->name; rows++) {
    fprintf(out, "| `%s`", rows->name);
    if (option_has_file(rows))
      fprintf(out, " or `%s_file`", rows->name);
    fputs(" | ", out);
    print_type(rows, out);
    fputs(" | ", out);
    if (rows->def && rows->def[0])
      fprintf(out, "`%s`", rows->def);
    else
      fputs(rows->flags & DUEBOX_OPT_REQUIRED ? "**required**" : rows->def ? "empty" : "-", out);
    fputs(" | ", out);
    print_cell(rows->help, out);
    fputs(rows->flags & CONFIG_RESTART ? " (restart)" : "", out);
    fputs(" |\n", out);
  }
}

void config_docs(const struct duebox_plugin *const *modules, size_t count, FILE *out) {
  char heading[128];
  print_rows("database", "", config_database_rows, out);
  print_rows("routes: keys of every route", "`via` names an entry under `plugins`; `retry` is a map, see below.",
             config_route_rows, out);
  print_rows("routes: the map retry", "", config_retry_rows, out);
  print_rows("results: keys of every entry", "`via` names an entry under `plugins`.", config_source_rows, out);
  print_rows("engine", "", config_engine_rows, out);
  print_rows("admin", "", config_admin_rows, out);
  print_rows("callbacks", "", config_callbacks_rows, out);
  print_rows("alerts: the map dead", "", config_alert_rows, out);
  print_rows("log", "", config_log_rows, out);
  for (size_t i = 0; i < count; i++) {
    snprintf(heading, sizeof heading, "plugins: module %s", modules[i]->name);
    print_rows(heading, "A change of an instance needs a restart.", modules[i]->options, out);
    snprintf(heading, sizeof heading, "routes: keys for module %s", modules[i]->name);
    print_rows(heading, "", modules[i]->route_options, out);
    snprintf(heading, sizeof heading, "results: keys for module %s", modules[i]->name);
    print_rows(heading, "A change of a source needs a restart.", modules[i]->source_options, out);
  }
}
