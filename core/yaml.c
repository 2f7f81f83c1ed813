/* SPDX-License-Identifier: MIT
 *
 * core/yaml.c - libyaml events to a tree. The only file that includes <yaml.h>.
 */
#include "core/yaml.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <yaml.h>

#include "core/base/way.h"

enum { MAX_FILE = 8 * 1024 * 1024, MAX_DEPTH = 16 };

struct reader {
  yaml_parser_t parser;
  yaml_event_t event; /* the current one; owned until the next is read */
  bool has_event;
  const char *file;
  struct arena *arena;
  struct err *err;
};

static bool fail_at(struct reader *r, yaml_mark_t mark, const char *text) {
  return err_set(r->err, 1, "%s:%zu:%zu: %s", r->file, mark.line + 1, mark.column + 1, text);
}

static void drop_event(struct reader *r) {
  if (r->has_event)
    yaml_event_delete(&r->event);
  r->has_event = false;
}

static bool next_event(struct reader *r) {
  drop_event(r);
  if (yaml_parser_parse(&r->parser, &r->event)) {
    r->has_event = true;
    return true;
  }
  const yaml_parser_t *p = &r->parser;
  if (p->error == YAML_READER_ERROR)
    return err_set(r->err, 1, "%s: byte %zu: %s; the file must be UTF-8 text without control characters", r->file,
                   p->problem_offset, p->problem);
  if (p->error == YAML_MEMORY_ERROR)
    return err_set(r->err, 1, "%s: out of memory", r->file);
  char text[256];
  snprintf(text, sizeof text, "not valid YAML: %s%s%s", p->problem ? p->problem : "unreadable", p->context ? " " : "",
           p->context ? p->context : "");
  return fail_at(r, p->problem_mark, text);
}

/* Where a value is to hang; known before the value is read, so that its errors can name their place. */
struct place {
  const struct yaml_node *parent;
  const char *name;
  yaml_mark_t key; /* of name */
};

static struct yaml_node *new_node(struct reader *r, enum yaml_kind kind, const struct place *place) {
  struct yaml_node *node = arena_alloc(r->arena, sizeof *node);
  node->kind = kind;
  node->file = r->file;
  node->parent = place->parent;
  node->index = place->parent ? place->parent->count : 0;
  node->name = place->name;
  node->key_line = place->name ? (unsigned)place->key.line + 1 : 0;
  node->key_column = place->name ? (unsigned)place->key.column + 1 : 0;
  node->line = (unsigned)r->event.start_mark.line + 1;
  node->column = (unsigned)r->event.start_mark.column + 1;
  return node;
}

/* Length of a variable name at text, 0 when there is none. */
static size_t env_name(const char *text) {
  size_t n = 0;
  while (isalnum((unsigned char)text[n]) || text[n] == '_')
    n++;
  return isdigit((unsigned char)text[0]) ? 0 : n;
}

/* Writes the environment's value for the reference at text (behind "${"), and sets *after behind its "}". */
static const char *env_value(struct reader *r, const char *text, const char **after) {
  size_t n = env_name(text);
  if (n == 0 || text[n] != '}') {
    fail_at(r, r->event.start_mark, "\"${\" must be followed by NAME}; write \"$${\" for the characters \"${\"");
    return NULL;
  }
  char name[256], problem[400];
  snprintf(name, sizeof name, "%.*s", (int)(n < 255 ? n : 255), text);
  const char *value = getenv(name);
  if (!value) {
    snprintf(problem, sizeof problem, "the environment variable %s is not set; export it or write the value here",
             name);
    fail_at(r, r->event.start_mark, problem);
  }
  *after = text + n + 1;
  return value;
}

/* What a text becomes, and beside it where each byte came from. */
struct expansion {
  FILE *text, *origin;
};

static void put(const struct expansion *out, const char *bytes, size_t len, char origin) {
  fwrite(bytes, 1, len, out->text);
  for (size_t i = 0; i < len; i++)
    fputc(origin, out->origin);
}

/* Writes text to out with every reference replaced; *any: there was one. */
static bool expand_to(struct reader *r, const char *text, const struct expansion *out, bool *any) {
  while (*text) {
    if (strncmp(text, "$${", 3) == 0) {
      put(out, "${", 2, ' ');
      text += 3;
    } else if (strncmp(text, "${", 2) == 0) {
      const char *after = text;
      const char *value = env_value(r, text + 2, &after);
      if (!value)
        return false;
      put(out, value, strlen(value), '$');
      text = after;
      *any = true;
    } else {
      size_t n = 1 + strcspn(text + 1, "$");
      put(out, text, n, ' ');
      text += n;
    }
  }
  return true;
}

static bool expand(struct reader *r, struct yaml_node *node, const char *text) {
  if (!strchr(text, '$')) {
    node->text = arena_strdup(r->arena, text);
    return true;
  }
  char *expanded = NULL, *origin = NULL;
  size_t len = 0, origin_len = 0;
  struct expansion out = {open_memstream(&expanded, &len), open_memstream(&origin, &origin_len)};
  bool any = false, room = out.text && out.origin;
  bool ok = room && expand_to(r, text, &out, &any);
  room &= !out.text || fclose(out.text) == 0;
  room &= !out.origin || fclose(out.origin) == 0;
  if (ok && room) {
    node->text = arena_strndup(r->arena, expanded, len);
    node->from_env = any ? arena_strndup(r->arena, origin, origin_len) : NULL;
  }
  free(expanded);
  free(origin);
  return room ? ok : err_set(r->err, 1, "%s: out of memory", r->file);
}

static bool scalar_text(struct reader *r, const char **text) {
  if (strlen((const char *)r->event.data.scalar.value) != r->event.data.scalar.length)
    return fail_at(r, r->event.start_mark, "a value must not hold a NUL character");
  *text = (const char *)r->event.data.scalar.value;
  return true;
}

static struct yaml_node *read_text(struct reader *r, const struct place *place) {
  const char *text = NULL;
  if (!scalar_text(r, &text))
    return NULL;
  struct yaml_node *node = new_node(r, YAML_TEXT, place);
  node->empty = text[0] == '\0' && r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
  return expand(r, node, text) ? node : NULL;
}

static struct yaml_node *read_node(struct reader *r, const struct place *place, int depth);

static struct yaml_node *read_list(struct reader *r, const struct place *place, int depth) {
  struct yaml_node *list = new_node(r, YAML_LIST, place);
  for (;;) {
    if (!next_event(r))
      return NULL;
    if (r->event.type == YAML_SEQUENCE_END_EVENT)
      return list;
    struct yaml_node *item = read_node(r, &(struct place){.parent = list}, depth + 1);
    if (!item)
      return NULL;
    yaml_append(r->arena, list, item);
  }
}

static int by_name_then_place(const void *left, const void *right) {
  const struct yaml_node *const *a = left, *const *b = right;
  int order = strcmp((*a)->name, (*b)->name);
  return order ? order : (*a)->index < (*b)->index ? -1 : 1;
}

/* Sorting a copy keeps this cheap for a file with thousands of routes. */
static bool refuse_duplicates(struct reader *r, const struct yaml_node *map) {
  if (map->count < 2)
    return true;
  struct yaml_node **sorted = malloc(map->count * sizeof *sorted);
  if (!sorted)
    return err_set(r->err, 1, "%s: out of memory", r->file);
  memcpy(sorted, map->items, map->count * sizeof *sorted);
  qsort(sorted, map->count, sizeof *sorted, by_name_then_place);
  bool ok = true;
  for (size_t i = 1; ok && i < map->count; i++)
    if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
      ok = yaml_key_err(sorted[i], r->err, "this key was given before, at line %u column %u; remove one of them",
                        sorted[i - 1]->key_line, sorted[i - 1]->key_column);
  free(sorted);
  return ok;
}

static struct yaml_node *read_map(struct reader *r, const struct place *place, int depth) {
  struct yaml_node *map = new_node(r, YAML_MAP, place);
  for (;;) {
    if (!next_event(r))
      return NULL;
    if (r->event.type == YAML_MAPPING_END_EVENT)
      return refuse_duplicates(r, map) ? map : NULL;
    const char *key;
    if (r->event.type != YAML_SCALAR_EVENT) {
      fail_at(r, r->event.start_mark, "a key must be a simple text; anchors, lists and maps cannot be keys");
      return NULL;
    }
    if (r->event.data.scalar.anchor || r->event.data.scalar.tag) {
      fail_at(r, r->event.start_mark, "anchors (&name) and tags (!type) are not supported; write the key plainly");
      return NULL;
    }
    if (!scalar_text(r, &key))
      return NULL;
    struct place at = {map, arena_strdup(r->arena, key), r->event.start_mark};
    struct yaml_node *value = next_event(r) ? read_node(r, &at, depth + 1) : NULL;
    if (!value)
      return NULL;
    yaml_append(r->arena, map, value);
  }
}

/* Reads the value that the current event begins. */
static struct yaml_node *read_node(struct reader *r, const struct place *place, int depth) {
  const yaml_event_t *e = &r->event;
  const yaml_char_t *anchor = NULL, *tag = NULL;
  if (depth > MAX_DEPTH) {
    fail_at(r, e->start_mark, "nested too deeply; nothing in a configuration needs more than 16 levels");
    return NULL;
  }
  if (e->type == YAML_SCALAR_EVENT) {
    anchor = e->data.scalar.anchor;
    tag = e->data.scalar.tag;
  } else if (e->type == YAML_SEQUENCE_START_EVENT) {
    anchor = e->data.sequence_start.anchor;
    tag = e->data.sequence_start.tag;
  } else if (e->type == YAML_MAPPING_START_EVENT) {
    anchor = e->data.mapping_start.anchor;
    tag = e->data.mapping_start.tag;
  }
  if (anchor || e->type == YAML_ALIAS_EVENT) {
    fail_at(r, e->start_mark,
            "anchors (&name) and aliases (*name) are not supported; write the value out, or quote it");
    return NULL;
  }
  if (tag) {
    fail_at(r, e->start_mark, "tags (!type) are not supported; remove it, or quote the value");
    return NULL;
  }
  if (e->type == YAML_SEQUENCE_START_EVENT)
    return read_list(r, place, depth);
  if (e->type == YAML_MAPPING_START_EVENT)
    return read_map(r, place, depth);
  return read_text(r, place);
}

static struct yaml_node *read_document(struct reader *r) {
  static const struct place top = {.parent = NULL};
  if (!next_event(r) || !next_event(r)) /* stream start, then the document or the end */
    return NULL;
  if (r->event.type == YAML_STREAM_END_EVENT)
    return new_node(r, YAML_MAP, &top);
  struct yaml_node *root = next_event(r) ? read_node(r, &top, 0) : NULL;
  if (!root || !next_event(r) || !next_event(r)) /* document end, stream end */
    return NULL;
  if (r->event.type != YAML_STREAM_END_EVENT) {
    fail_at(r, r->event.start_mark, "a second document begins here; remove the \"---\" or use a file in conf.d");
    return NULL;
  }
  if (yaml_absent(root))
    root->kind = YAML_MAP;
  return root;
}

struct yaml_node *yaml_parse(const char *file, const char *text, size_t len, struct arena *arena, struct err *err) {
  struct reader r = {.file = file, .arena = arena, .err = err};
  if (!yaml_parser_initialize(&r.parser)) {
    err_set(err, 1, "%s: out of memory", file);
    return NULL;
  }
  static const char bom[] = "\xef\xbb\xbf"; /* which libyaml does not skip where it is told the encoding */
  size_t skip = len >= sizeof bom - 1 && memcmp(text, bom, sizeof bom - 1) == 0 ? sizeof bom - 1 : 0;
  yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
  yaml_parser_set_input_string(&r.parser, (const unsigned char *)text + skip, len - skip);
  struct yaml_node *root = read_document(&r);
  drop_event(&r);
  yaml_parser_delete(&r.parser);
  return root;
}

static bool read_all(int fd, const char *path, char *text, size_t size, struct err *err) {
  for (size_t have = 0; have < size;) {
    ssize_t n = read(fd, text + have, size - have);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return err_set(err, errno, "%s: cannot be read: %s", path, strerror(errno));
    if (n == 0)
      return err_set(err, 1, "%s: became shorter while it was read; run the command again", path);
    have += (size_t)n;
  }
  return true;
}

/* Whoever writes a configuration decides what code is loaded and where passwords go. */
bool yaml_is_ours(const char *path, const struct stat *st, struct err *err) {
  if (!way_is_ours(st->st_uid))
    return err_set(err, 1, "%s: belongs to another user (uid %u), who could change it; run: chown root %s", path,
                   (unsigned)st->st_uid, path);
  if (st->st_mode & (S_IWGRP | S_IWOTH))
    return err_set(err, 1, "%s: may be written by others (mode %04o); run: chmod go-w %s", path,
                   (unsigned)(st->st_mode & 07777), path);
  return true;
}

struct yaml_node *yaml_load(const char *path, struct arena *arena, struct err *err) {
  struct yaml_node *root = NULL;
  struct stat st;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not hang the start */
  if (fd < 0 || fstat(fd, &st) != 0) {
    err_set(err, errno, "%s: cannot be read: %s", path, strerror(errno));
  } else if (!S_ISREG(st.st_mode)) {
    err_set(err, 1, "%s: is not a file", path);
  } else if (!yaml_is_ours(path, &st, err) || !way_check(path, WAY_OURS, err)) {
    /* said */
  } else if (st.st_size > MAX_FILE) {
    err_set(err, 1, "%s: is larger than 8 MiB; is this the right file?", path);
  } else {
    char *text = arena_alloc(arena, (size_t)st.st_size + 1);
    if (read_all(fd, path, text, (size_t)st.st_size, err))
      root = yaml_parse(path, text, (size_t)st.st_size, arena, err);
  }
  if (fd >= 0)
    close(fd);
  return root;
}
