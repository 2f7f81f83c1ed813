/* SPDX-License-Identifier: MIT
 *
 * core/options.c - filling a struct from a YAML map by option rows. Pure but for the secret reader it is given.
 */
#include "core/options.h"

#include <stdio.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/template.h"
#include "core/yaml.h"

struct fill {
  const struct duebox_option *rows;
  const struct yaml_node *node; /* NULL = empty */
  const char *const *known_elsewhere;
  const struct secret_reader *secrets;
  struct arena *arena;
  struct err *err;
};

bool option_has_file(const struct duebox_option *row) {
  return row->type == DUEBOX_OPT_SECRET || row->flags & DUEBOX_OPT_FILE;
}

static bool is_file_key(const char *key, const struct duebox_option *row) {
  size_t n = strlen(row->name);
  return option_has_file(row) && strncmp(key, row->name, n) == 0 && strcmp(key + n, "_file") == 0;
}

static bool key_known(const struct fill *f, const char *key) {
  for (const struct duebox_option *row = f->rows; row && row->name; row++)
    if (strcmp(row->name, key) == 0 || is_file_key(key, row))
      return true;
  for (const char *const *known = f->known_elsewhere; known && *known; known++)
    if (strcmp(*known, key) == 0)
      return true;
  return false;
}

/* All keys that may stand here, in the arena. */
static size_t all_keys(const struct fill *f, const char ***out) {
  size_t room = 0, n = 0;
  for (const struct duebox_option *row = f->rows; row && row->name; row++)
    room += 2;
  for (const char *const *known = f->known_elsewhere; known && *known; known++)
    room++;
  const char **keys = arena_array(f->arena, room, sizeof *keys);
  for (const char *const *known = f->known_elsewhere; known && *known; known++)
    keys[n++] = *known;
  for (const struct duebox_option *row = f->rows; row && row->name; row++) {
    keys[n++] = row->name;
    if (option_has_file(row))
      keys[n++] = arena_printf(f->arena, "%s_file", row->name);
  }
  *out = keys;
  return n;
}

static bool unknown_key(const struct fill *f, const struct yaml_node *item) {
  const char **keys;
  size_t count = all_keys(f, &keys);
  const char *near = option_suggest(item->name, keys, count);
  if (near)
    return yaml_key_err(item, f->err, "unknown key; did you mean \"%s\"?", near);
  if (count == 0)
    return yaml_key_err(item, f->err, "unknown key; no keys are known here, remove it");
  char list[600] = "";
  for (size_t i = 0; i < count; i++) {
    size_t used = strlen(list);
    snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", keys[i]);
  }
  return yaml_key_err(item, f->err, "unknown key; known keys here: %s", list);
}

static bool set_enum(const struct duebox_option *row, const char *text, int *value, struct err *err) {
  char list[400] = "";
  size_t count = 0;
  for (; row->choices[count]; count++) {
    if (strcmp(row->choices[count], text) == 0) {
      *value = (int)count;
      return true;
    }
    size_t used = strlen(list);
    snprintf(list + used, sizeof list - used, "%s%s", count ? ", " : "", row->choices[count]);
  }
  const char *near = option_suggest(text, row->choices, count);
  if (near)
    return err_set(err, 1, "\"%.64s\" is not a choice; did you mean \"%s\"?", text, near);
  return err_set(err, 1, "\"%.64s\" is not a choice; choose one of: %s", text, list);
}

/* min and max as the user would write them. */
static bool check_limits(const struct duebox_option *row, int64_t value, const char *text, struct err *err) {
  if ((row->min == 0 && row->max == 0) || (value >= row->min && value <= row->max))
    return true;
  int64_t limit = value < row->min ? row->min : row->max;
  struct duebox_option as_is = {.type = row->type};
  char limit_text[32];
  option_print(&as_is, &limit, limit_text, sizeof limit_text);
  return err_set(err, 1, "%.64s is too %s; the %s is %s", text, value < row->min ? "small" : "large",
                 value < row->min ? "smallest" : "largest", limit_text);
}

static bool set_string(const struct fill *f, const struct duebox_option *row, const char *text, const char **value,
                       struct err *err) {
  if ((row->flags & DUEBOX_OPT_TEMPLATE) && !template_check(text, err))
    return false;
  *value = arena_strdup(f->arena, text);
  return true;
}

static bool set_duration_text(const struct fill *f, const char *text, struct duebox_durations *out, struct err *err) {
  size_t commas = 0;
  for (const char *p = text; *p; p++)
    commas += *p == ',';
  int64_t *ms = arena_array(f->arena, commas + 1, sizeof *ms);
  out->ms = ms;
  for (const char *p = text; out->count <= commas;) {
    p += strspn(p, " ");
    size_t n = strcspn(p, ", ");
    char one[65];
    snprintf(one, sizeof one, "%.*s", (int)(n < 64 ? n : 64), p);
    if (!option_parse_duration(one, &ms[out->count], err))
      return false;
    out->count++;
    p += n;
    p += strspn(p, " ");
    if (*p == ',')
      p++;
    else if (*p)
      return err_set(err, 1, "\"%.64s\" is not a list of durations; separate them by commas: 5s, 30s, 1m", text);
  }
  return true;
}

/* Stores one text, given or default, by the row's type. The text of err has no place in front. */
static bool set_text(const struct fill *f, const struct duebox_option *row, const char *text, void *field,
                     struct err *err) {
  switch (row->type) {
  case DUEBOX_OPT_STRING:
  case DUEBOX_OPT_SECRET:
    return set_string(f, row, text, field, err);
  case DUEBOX_OPT_BOOL:
    return option_parse_bool(text, field, err);
  case DUEBOX_OPT_INT:
    return option_parse_int(text, field, err) && check_limits(row, *(int64_t *)field, text, err);
  case DUEBOX_OPT_SIZE:
    return option_parse_size(text, field, err) && check_limits(row, *(int64_t *)field, text, err);
  case DUEBOX_OPT_DURATION:
    return option_parse_duration(text, field, err) && check_limits(row, *(int64_t *)field, text, err);
  case DUEBOX_OPT_RATE:
    return option_parse_rate(text, field, err);
  case DUEBOX_OPT_NUMBER:
    return option_parse_number(text, field, err);
  case DUEBOX_OPT_ENUM:
    return set_enum(row, text, field, err);
  case DUEBOX_OPT_LIST: {
    const char **items = arena_array(f->arena, 1, sizeof *items);
    *(struct duebox_list *)field = (struct duebox_list){.items = items, .count = 1};
    return set_string(f, row, text, items, err);
  }
  case DUEBOX_OPT_DURATIONS:
    return set_duration_text(f, text, field, err);
  case DUEBOX_OPT_MAP:
    break;
  }
  return err_set(err, 1, "must be a map of keys and values, not \"%.64s\"", text);
}

/* The text of a scalar node, or NULL with an error at its place. */
static const char *scalar(const struct fill *f, const struct yaml_node *node) {
  if (node->kind != YAML_TEXT)
    yaml_err(node, f->err, "must be one value, not a %s", node->kind == YAML_LIST ? "list" : "map");
  else if (node->empty)
    yaml_err(node, f->err, "has no value; write one, \"\" for an empty text, or remove the key");
  else
    return node->text;
  return NULL;
}

static bool set_scalar(const struct fill *f, const struct duebox_option *row, const struct yaml_node *node,
                       void *field) {
  struct err why = {0};
  const char *text = scalar(f, node);
  if (!text)
    return false;
  return set_text(f, row, text, field, &why) || yaml_err(node, f->err, "%s", why.text);
}

static bool set_list(const struct fill *f, const struct duebox_option *row, const struct yaml_node *node,
                     struct duebox_list *list) {
  const char **items = arena_array(f->arena, node->count, sizeof *items);
  struct duebox_option one = {.type = DUEBOX_OPT_STRING, .flags = row->flags};
  for (size_t i = 0; i < node->count; i++)
    if (!set_scalar(f, &one, node->items[i], &items[i]))
      return false;
  *list = (struct duebox_list){.items = items, .count = node->count};
  return true;
}

static bool set_durations(const struct fill *f, const struct yaml_node *node, struct duebox_durations *list) {
  int64_t *ms = arena_array(f->arena, node->count, sizeof *ms);
  static const struct duebox_option one = {.type = DUEBOX_OPT_DURATION};
  for (size_t i = 0; i < node->count; i++)
    if (!set_scalar(f, &one, node->items[i], &ms[i]))
      return false;
  *list = (struct duebox_durations){.ms = ms, .count = node->count};
  return true;
}

static bool set_map(const struct fill *f, const struct yaml_node *node, struct duebox_map *map) {
  struct duebox_pair *items = arena_array(f->arena, node->count, sizeof *items);
  for (size_t i = 0; i < node->count; i++) {
    items[i].key = node->items[i]->name;
    items[i].value = scalar(f, node->items[i]);
    if (!items[i].value)
      return false;
  }
  *map = (struct duebox_map){.items = items, .count = node->count};
  return true;
}

/* The content of the file that node names; NULL with an error at its place. */
static const char *read_file(const struct fill *f, const struct yaml_node *node) {
  struct err why = {0};
  const char *ref = scalar(f, node), *value = NULL;
  if (ref && !f->secrets) {
    yaml_err(node, f->err, "secret files cannot be read here; give the value itself");
  } else if (ref) {
    value = f->secrets->read(f->secrets->ctx, ref, f->arena, &why);
    if (!value)
      yaml_err(node, f->err, "%s", why.text);
  }
  return value;
}

static bool set_from_file(const struct fill *f, const struct duebox_option *row, const struct yaml_node *node,
                          void *field) {
  struct err why = {0};
  const char *text;
  if (row->type != DUEBOX_OPT_MAP) {
    text = read_file(f, node);
    return text && (set_string(f, row, text, field, &why) || yaml_err(node, f->err, "%s", why.text));
  }
  if (node->kind != YAML_MAP)
    return yaml_err(node, f->err, "must be a map of keys and the files that hold their values");
  struct duebox_pair *items = arena_array(f->arena, node->count, sizeof *items);
  for (size_t i = 0; i < node->count; i++) {
    items[i] = (struct duebox_pair){node->items[i]->name, read_file(f, node->items[i])};
    if (!items[i].value)
      return false;
  }
  *(struct duebox_map *)field = (struct duebox_map){.items = items, .count = node->count};
  return true;
}

static bool set_given(const struct fill *f, const struct duebox_option *row, const struct yaml_node *node,
                      void *field) {
  if (row->type == DUEBOX_OPT_LIST && node->kind == YAML_LIST)
    return set_list(f, row, node, field);
  if (row->type == DUEBOX_OPT_DURATIONS && node->kind == YAML_LIST)
    return set_durations(f, node, field);
  if (row->type == DUEBOX_OPT_MAP && node->kind == YAML_MAP)
    return set_map(f, node, field);
  if (row->type == DUEBOX_OPT_MAP && node->kind == YAML_LIST)
    return yaml_err(node, f->err, "must be a map of keys and values, not a list");
  return set_scalar(f, row, node, field);
}

static bool set_default(const struct fill *f, const struct duebox_option *row, void *field) {
  struct err why = {0};
  if (row->def)
    return set_text(f, row, row->def, field, &why) ||
           err_set(f->err, 1, "the built-in default of \"%s\" is wrong: %s", row->name, why.text);
  if (!(row->flags & DUEBOX_OPT_REQUIRED))
    return true;
  bool has_file = option_has_file(row);
  if (!f->node)
    return err_set(f->err, 1, "\"%s\" must be given: %s", row->name, row->help);
  return yaml_key_err(f->node, f->err, "\"%s\"%s%s%s must be given: %s", row->name, has_file ? " or \"" : "",
                      has_file ? row->name : "", has_file ? "_file\"" : "", row->help);
}

static bool fill_row(const struct fill *f, const struct duebox_option *row, void *field) {
  const struct yaml_node *given = yaml_get(f->node, row->name), *file = NULL;
  for (size_t i = 0; option_has_file(row) && f->node && i < f->node->count; i++)
    if (is_file_key(f->node->items[i]->name, row))
      file = f->node->items[i];
  if (given && file)
    return yaml_key_err(file, f->err, "\"%s\" is given too, at line %u; keep one of the two", given->name,
                        given->key_line);
  if (file)
    return set_from_file(f, row, file, field);
  return given ? set_given(f, row, given, field) : set_default(f, row, field);
}

bool options_fill_all(const struct duebox_option *rows, const struct yaml_node *node,
                      const char *const *known_elsewhere, const struct secret_reader *secrets, struct arena *arena,
                      void *out, void (*wrong)(void *ctx), void *ctx, struct err *err) {
  struct fill f = {rows, node, known_elsewhere, secrets, arena, err};
  bool ok = true;
  if (node && node->kind != YAML_MAP && !yaml_absent(node)) {
    yaml_err(node, err, "must be a map of keys and values, not a %s",
             node->kind == YAML_LIST ? "list" : "single value");
    wrong(ctx);
    return false;
  }
  for (size_t i = 0; node && i < node->count; i++)
    if (!key_known(&f, node->items[i]->name)) {
      ok = unknown_key(&f, node->items[i]);
      wrong(ctx);
    }
  for (const struct duebox_option *row = rows; row && row->name; row++)
    if (!fill_row(&f, row, (char *)out + row->offset)) {
      ok = false;
      wrong(ctx);
    }
  return ok;
}

/* Keeps the first. */
struct first {
  struct err *now, kept;
  bool any;
};

static void keep_first(void *ctx) {
  struct first *first = ctx;
  if (!first->any)
    first->kept = *first->now;
  first->any = true;
}

bool options_fill(const struct duebox_option *rows, const struct yaml_node *node, const char *const *known_elsewhere,
                  const struct secret_reader *secrets, struct arena *arena, void *out, struct err *err) {
  struct first first = {.now = err};
  if (options_fill_all(rows, node, known_elsewhere, secrets, arena, out, keep_first, &first, err))
    return true;
  *err = first.kept;
  return false;
}
