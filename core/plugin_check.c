/* SPDX-License-Identifier: MIT */
#include "core/plugin_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/config_rows.h"
#include "core/options.h"

enum { ROWS_MAX = 256 };

#define SINK_CAPS (DUEBOX_CAP_LONG_CALLS | DUEBOX_CAP_ANSWERS | DUEBOX_CAP_SHARED_LINE)
#define KNOWN_CAPS (DUEBOX_CAP_SINK | DUEBOX_CAP_SOURCE | SINK_CAPS)
#define KNOWN_FLAGS (DUEBOX_OPT_REQUIRED | DUEBOX_OPT_TEMPLATE | DUEBOX_OPT_TARGET | DUEBOX_OPT_FILE | DUEBOX_OPT_PATH)

static void fault(struct plugin_faults *faults, const char *fmt, ...) PRINTF(2, 3);
static void fault(struct plugin_faults *faults, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  if (faults->count < PLUGIN_FAULTS_MAX)
    vsnprintf(faults->text[faults->count], sizeof faults->text[0], fmt, args);
  va_end(args);
  faults->count++;
}

static bool check_prefix(const struct duebox_plugin *p, struct plugin_faults *faults) {
  if (p->magic != DUEBOX_PLUGIN_MAGIC)
    fault(faults, "magic is 0x%08x, wanted 0x%08x: this is no duebox plugin, or its prefix is damaged", p->magic,
          DUEBOX_PLUGIN_MAGIC);
  else if (p->abi_major != DUEBOX_ABI_MAJOR)
    fault(faults, "ABI is %u.%u, wanted %u.x: build the plugin against this duebox's headers", p->abi_major,
          p->abi_minor, DUEBOX_ABI_MAJOR);
  else if (p->abi_minor > DUEBOX_ABI_MINOR)
    fault(faults, "ABI is %u.%u, this duebox offers %u.%u: upgrade duebox, or build the plugin against its headers",
          p->abi_major, p->abi_minor, DUEBOX_ABI_MAJOR, DUEBOX_ABI_MINOR);
  else if (p->size < offsetof(struct duebox_plugin, check_targets))
    fault(faults, "descriptor has %u bytes, wanted at least %zu: it was cut; begin it with DUEBOX_PLUGIN_PREFIX",
          p->size, offsetof(struct duebox_plugin, check_targets));
  return faults->count == 0;
}

/* Size and alignment of what a row of that type fills; 0 for an unknown type. */
static size_t field_size(enum duebox_option_type type, size_t *align) {
#define FIELD(c_type) (*align = _Alignof(c_type), sizeof(c_type))
  switch (type) {
  case DUEBOX_OPT_STRING:
  case DUEBOX_OPT_SECRET:
    return FIELD(const char *);
  case DUEBOX_OPT_BOOL:
    return FIELD(bool);
  case DUEBOX_OPT_INT:
  case DUEBOX_OPT_SIZE:
  case DUEBOX_OPT_DURATION:
    return FIELD(int64_t);
  case DUEBOX_OPT_RATE:
  case DUEBOX_OPT_NUMBER:
    return FIELD(double);
  case DUEBOX_OPT_ENUM:
    return FIELD(int);
  case DUEBOX_OPT_LIST:
    return FIELD(struct duebox_list);
  case DUEBOX_OPT_DURATIONS:
    return FIELD(struct duebox_durations);
  case DUEBOX_OPT_MAP:
    return FIELD(struct duebox_map);
  }
#undef FIELD
  return 0;
}

/* One of the three row tables of a descriptor. */
struct table {
  const char *what;
  const struct duebox_option *rows;
  size_t struct_size;
  const char *const *reserved; /* keys that the core has at the same place */
};

static bool good_name(const char *name) {
  return name[0] && strlen(name) <= 63 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.") == strlen(name);
}

static void check_default(const struct table *t, const struct duebox_option *row, struct plugin_faults *faults) {
  union {
    const char *text;
    int64_t number;
    double fraction;
    struct duebox_list list;
    struct duebox_durations durations;
    struct duebox_map map;
  } field = {0};
  struct err err = {0};
  struct duebox_option rows[2] = {*row, {0}};
  rows[0].offset = 0;
  rows[0].flags &= ~DUEBOX_OPT_REQUIRED;
  struct arena *arena = arena_new();
  if (!options_fill(rows, NULL, NULL, NULL, arena, &field, &err))
    fault(faults, "%s: %s", t->what, err.text);
  arena_free(&arena);
}

static void check_place(const struct table *t, const struct duebox_option *row, struct plugin_faults *faults) {
  size_t align = 1, size = field_size(row->type, &align), ignored;
  if (row->offset > t->struct_size || size > t->struct_size - row->offset)
    fault(faults, "%s: \"%s\" at offset %zu does not fit into the struct of %zu bytes", t->what, row->name, row->offset,
          t->struct_size);
  else if (row->offset % align != 0)
    fault(faults, "%s: \"%s\" lies at offset %zu, which is not aligned for its type", t->what, row->name, row->offset);
  for (const struct duebox_option *other = t->rows; other != row; other++)
    if (other->offset < row->offset + size && row->offset < other->offset + field_size(other->type, &ignored))
      fault(faults, "%s: \"%s\" and \"%s\" overlap in the struct", t->what, other->name, row->name);
}

static void check_names(const struct table *t, const struct duebox_option *row, struct plugin_faults *faults) {
  if (!good_name(row->name))
    fault(faults, "%s: the name \"%.80s\" must have 1 to 63 characters a-z, 0-9, \"_\" or \".\"", t->what, row->name);
  if (!row->help || !row->help[0])
    fault(faults, "%s: \"%s\" has no help text", t->what, row->name);
  for (const char *const *reserved = t->reserved; *reserved; reserved++)
    if (strcmp(*reserved, row->name) == 0)
      fault(faults, "%s: the name \"%s\" belongs to duebox itself", t->what, row->name);
  for (const struct duebox_option *other = t->rows; other != row; other++)
    if (strcmp(other->name, row->name) == 0)
      fault(faults, "%s: \"%s\" is there twice", t->what, row->name);
}

static void check_row(const struct table *t, const struct duebox_option *row, struct plugin_faults *faults) {
  size_t align;
  check_names(t, row, faults);
  if (field_size(row->type, &align) == 0) {
    fault(faults, "%s: \"%s\" has the unknown type %d", t->what, row->name, (int)row->type);
    return;
  }
  check_place(t, row, faults);
  if (row->flags & ~KNOWN_FLAGS)
    fault(faults, "%s: \"%s\" has unknown flags 0x%x", t->what, row->name, row->flags & ~KNOWN_FLAGS);
  if ((row->flags & DUEBOX_OPT_TEMPLATE) && row->type != DUEBOX_OPT_STRING)
    fault(faults, "%s: \"%s\" is a template, but no string", t->what, row->name);
  if ((row->flags & DUEBOX_OPT_TARGET) && !(row->flags & DUEBOX_OPT_TEMPLATE))
    fault(faults, "%s: \"%s\" says where tasks go, but is no template", t->what, row->name);
  if ((row->flags & DUEBOX_OPT_FILE) && row->type != DUEBOX_OPT_STRING && row->type != DUEBOX_OPT_MAP)
    fault(faults, "%s: \"%s\" may come from a file, but is neither string nor map", t->what, row->name);
  if ((row->flags & DUEBOX_OPT_PATH) && row->type != DUEBOX_OPT_STRING)
    fault(faults, "%s: \"%s\" names a file, but is no string", t->what, row->name);
  if (row->min > row->max)
    fault(faults, "%s: \"%s\" has a minimum above its maximum", t->what, row->name);
  if (row->type == DUEBOX_OPT_ENUM && (!row->choices || !row->choices[0]))
    fault(faults, "%s: \"%s\" has no choices", t->what, row->name);
  else
    check_default(t, row, faults);
}

static void check_rows(const struct table *t, struct plugin_faults *faults) {
  size_t count = 0;
  for (const struct duebox_option *row = t->rows; row && row->name; row++) {
    if (++count > ROWS_MAX) {
      fault(faults, "%s: more than %d rows; does the table end with an empty row?", t->what, ROWS_MAX);
      return;
    }
    check_row(t, row, faults);
  }
}

static void check_identity(const struct duebox_plugin *p, struct plugin_faults *faults) {
  if (!p->name || !p->name[0])
    fault(faults, "it has no name");
  if (!p->version || !p->version[0])
    fault(faults, "it has no version");
  if (!p->summary || !p->summary[0])
    fault(faults, "it has no summary");
  if (p->capabilities & ~KNOWN_CAPS)
    fault(faults, "capability bits 0x%x are unknown to this duebox: upgrade duebox", p->capabilities & ~KNOWN_CAPS);
  if (!(p->capabilities & (DUEBOX_CAP_SINK | DUEBOX_CAP_SOURCE)))
    fault(faults, "it is neither a sink nor a source");
  if (!(p->capabilities & DUEBOX_CAP_SINK) && (p->capabilities & SINK_CAPS))
    fault(faults, "long calls, answers and a shared line are capabilities of sinks, and it is none");
}

static void check_ops(const struct duebox_plugin *p, struct plugin_faults *faults) {
  const struct {
    const char *name;
    bool there;
  } lifecycle[] = {{"create", p->create}, {"start", p->start}, {"poll", p->poll},      {"wakeup", p->wakeup},
                   {"close", p->close},   {"stop", p->stop},   {"destroy", p->destroy}};
  for (size_t i = 0; i < ARRAY_LEN(lifecycle); i++)
    if (!lifecycle[i].there)
      fault(faults, "the function %s is missing", lifecycle[i].name);

  bool sink = p->capabilities & DUEBOX_CAP_SINK, source = p->capabilities & DUEBOX_CAP_SOURCE;
  if (sink != (p->sink != NULL))
    fault(faults, sink ? "it says sink, but has no sink functions" : "it has sink functions, but does not say sink");
  else if (sink && (p->sink->struct_size < offsetof(struct duebox_sink_ops, recall) || !p->sink->submit))
    fault(faults, "its sink functions are incomplete: submit is wanted");
  if (source != (p->source != NULL))
    fault(faults,
          source ? "it says source, but has no source functions" : "it has source functions, but does not say source");
  else if (source && (p->source->struct_size < offsetof(struct duebox_source_ops, yield) || !p->source->ack ||
                      !p->source->resume))
    fault(faults, "its source functions are incomplete: ack and resume are wanted");
}

bool plugin_check(const struct duebox_plugin *plugin, struct plugin_faults *faults) {
  *faults = (struct plugin_faults){0};
  if (!check_prefix(plugin, faults))
    return false;
  check_identity(plugin, faults);
  check_ops(plugin, faults);
  const struct table tables[] = {
      {"options", plugin->options, plugin->options_size, config_plugin_keys},
      {"route options", plugin->route_options, plugin->route_size, config_route_keys},
      {"source options", plugin->source_options, plugin->source_size, config_source_keys},
  };
  for (size_t i = 0; i < ARRAY_LEN(tables); i++)
    check_rows(&tables[i], faults);
  return faults->count == 0;
}
