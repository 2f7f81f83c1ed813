/* SPDX-License-Identifier: MIT */
#include "cli/output.h"

#include <libsmartcols.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/text.h"
#include "core/base/utf8.h"

enum { PAGE_ROWS = 1000 };

struct listing {
  const struct output *output;
  const struct column *columns;
  size_t column_count;
  struct libscols_table *table; /* the page being filled; text format only */
  size_t page_rows, rows;
};

/* --- JSON --- */

/* Writes a dump so that a terminal shows it and does not obey it: JSON escapes what is below U+0020 only. A part is
 * never cut within a character. */
static int print_json_part(const char *part, size_t len, void *stream) {
  for (size_t i = 0, size; i < len; i += size) {
    unsigned code = 0;
    size = utf8_decode(part + i, len - i, &code);
    if (code >= 0x7f && utf8_is_unsafe(code))
      fprintf(stream, "\\u%04x", code);
    else
      fwrite(part + i, 1, size ? size : 1, stream);
    size = size ? size : 1;
  }
  return 0;
}

static void print_json(const json_t *value, size_t flags) {
  json_dump_callback(value, print_json_part, stdout, flags | JSON_ENCODE_ANY);
}

void output_json(const struct output *output, const json_t *value) {
  print_json(value, output->format == OUTPUT_JSONL ? JSON_COMPACT : JSON_INDENT(2));
  putchar('\n');
}

json_t *output_string(const char *data, size_t len) {
  if (!data)
    return json_null();
  if (text_is_utf8(data, len))
    return json_stringn(data, len);
  char *clean = malloc(len * 3 + 1);
  if (!clean)
    return NULL;
  size_t used = 0;
  for (size_t i = 0, size; i < len; i += size ? size : 1) {
    unsigned code;
    size = utf8_decode(data + i, len - i, &code);
    memcpy(clean + used, size ? data + i : "\xef\xbf\xbd", size ? size : 3);
    used += size ? size : 3;
  }
  json_t *string = json_stringn(clean, used);
  free(clean);
  return string;
}

/* --- text --- */

static char *time_cell(const char *text) {
  char shown[sizeof "2026-01-31 08:00:00.000"];
  snprintf(shown, sizeof shown, "%s", text);
  char *t = strchr(shown, 'T');
  if (t)
    *t = ' ';
  return text_safe(shown, strlen(shown), TEXT_ONE_LINE);
}

static char *json_cell(const json_t *value) {
  char *dump = json_dumps(value, JSON_COMPACT);
  char *text = dump ? text_safe(dump, strlen(dump), TEXT_ONE_LINE) : NULL;
  free(dump);
  return text;
}

/* A list of words with commas; NULL when it is empty. */
static char *list_cell(const json_t *list) {
  char *text = NULL;
  size_t i;
  const json_t *item;
  json_array_foreach(list, i, item) {
    char *longer = NULL;
    const char *word = json_string_value(item);
    if (asprintf(&longer, "%s%s%s", text ? text : "", text ? ", " : "", word ? word : "?") < 0)
      longer = NULL;
    free(text);
    text = longer;
  }
  char *safe = text ? text_safe(text, strlen(text), TEXT_ONE_LINE) : NULL;
  free(text);
  return safe;
}

/* In one line. A blank at either end is written as \x20: the key "17 " is another one than "17", and nobody sees it. */
static char *text_cell(const char *text, size_t len) {
  static const char blank[] = "\\x20";
  size_t from = len > 0 && text[0] == ' ', to = len > from && text[len - 1] == ' ' ? len - 1 : len;
  char *inside = text_safe(text + from, to - from, TEXT_ONE_LINE), *cell = NULL;
  if (inside && asprintf(&cell, "%s%s%s", from ? blank : "", inside, to < len ? blank : "") < 0)
    cell = NULL;
  free(inside);
  return cell;
}

static char *name_cell(const char *message_id) {
  char *name = NULL;
  if (asprintf(&name, "%s%s", text_name_prefix(message_id), message_id) < 0)
    return NULL;
  char *safe = text_safe(name, strlen(name), TEXT_ONE_LINE);
  free(name);
  return safe;
}

/* The text of a value, to free(); NULL where there is nothing to show. */
static char *cell_text(const json_t *value, enum cell_kind kind) {
  char *text = NULL;
  switch (value ? json_typeof(value) : JSON_NULL) {
  case JSON_NULL:
    return NULL;
  case JSON_STRING:
    if (json_string_length(value) == 0)
      return NULL;
    if (kind == CELL_TIME)
      return time_cell(json_string_value(value));
    if (kind == CELL_NAME)
      return name_cell(json_string_value(value));
    if (kind == CELL_TEXT)
      return text_cell(json_string_value(value), json_string_length(value));
    return text_safe(json_string_value(value), json_string_length(value),
                     kind == CELL_LINES ? TEXT_KEEP_LINES : TEXT_ONE_LINE);
  case JSON_INTEGER:
    return asprintf(&text, "%" JSON_INTEGER_FORMAT, json_integer_value(value)) < 0 ? NULL : text;
  case JSON_REAL:
    return asprintf(&text, "%g", json_real_value(value)) < 0 ? NULL : text;
  case JSON_TRUE:
    return strdup("yes");
  case JSON_FALSE:
    return strdup("no");
  case JSON_ARRAY:
    return list_cell(value);
  case JSON_OBJECT:
    return json_cell(value);
  }
  return NULL;
}

/* An ANSI sequence for a word of state, or NULL. */
static const char *state_color(const char *word) {
  static const struct {
    const char *word, *color;
  } colors[] = {{"done", "\033[32m"},     {"ok", "\033[32m"},        {"up", "\033[32m"},
                {"dead", "\033[31m"},     {"fail", "\033[31m"},      {"expired", "\033[31m"},
                {"warn", "\033[33m"},     {"held", "\033[33m"},      {"blocked", "\033[33m"},
                {"paused", "\033[33m"},   {"claimed", "\033[36m"},   {"awaiting", "\033[36m"},
                {"cancelled", "\033[2m"}, {"scheduled", "\033[34m"}, {"suspended", "\033[31m"},
                {"stalled", "\033[31m"},  {"not loaded", "\033[33m"}};
  for (size_t i = 0; i < ARRAY_LEN(colors); i++)
    if (strcmp(colors[i].word, word) == 0)
      return colors[i].color;
  return NULL;
}

/* A terminal's table is as wide as the terminal. What goes into a file or another program is not cut, unless COLUMNS
 * says how wide it may be. */
static void fit_width(struct libscols_table *table) {
  enum { UNCUT = 65535 };
  const char *columns = getenv("COLUMNS");
  long wide = columns ? strtol(columns, NULL, 10) : 0;
  if (isatty(STDOUT_FILENO))
    return;
  scols_table_set_termforce(table, SCOLS_TERMFORCE_ALWAYS);
  scols_table_set_termwidth(table, wide > 0 && wide < UNCUT ? (size_t)wide : UNCUT);
}

static bool open_page(struct listing *listing) {
  struct libscols_table *table = scols_new_table();
  if (!table)
    return false;
  scols_table_enable_noheadings(table, listing->rows > 0);
  scols_table_enable_noencoding(table, 1); /* text_safe() has done it */
  scols_table_enable_colors(table, listing->output->color);
  fit_width(table);
  for (size_t i = 0; i < listing->column_count; i++) {
    const struct column *column = &listing->columns[i];
    int shrink = column->kind == CELL_PROSE ? SCOLS_FL_WRAP : SCOLS_FL_TRUNC;
    int flags = (column->kind == CELL_NUMBER ? SCOLS_FL_RIGHT : 0) | (column->shrinks ? shrink : 0);
    if (!scols_table_new_column(table, column->title, 0, flags)) {
      scols_unref_table(table);
      return false;
    }
  }
  listing->table = table;
  listing->page_rows = 0;
  return true;
}

static void print_page(struct listing *listing) {
  if (listing->page_rows > 0)
    scols_print_table(listing->table);
  scols_unref_table(listing->table);
  listing->table = NULL;
}

static bool add_line(struct listing *listing, const json_t *row) {
  if (!listing->table && !open_page(listing))
    return false;
  struct libscols_line *line = scols_table_new_line(listing->table, NULL);
  if (!line)
    return false;
  for (size_t i = 0; i < listing->column_count; i++) {
    const struct column *column = &listing->columns[i];
    char *text = cell_text(json_object_get(row, column->key), column->kind);
    if (!text && !(text = strdup("-")))
      return false;
    const char *color = column->kind == CELL_STATE ? state_color(text) : NULL;
    if (color)
      scols_cell_set_color(scols_line_get_cell(line, i), color);
    int refused = scols_line_set_data(line, i, text); /* keeps a copy */
    free(text);
    if (refused)
      return false;
  }
  listing->page_rows++;
  return true;
}

/* errno may be of another call by now, so the stream is asked: only a pipe or socket whose reader has gone says so. */
bool output_unwanted(void) {
  struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
  return ferror(stdout) && poll(&out, 1, 0) == 1 && out.revents & (POLLERR | POLLHUP);
}

struct listing *listing_open(const struct output *output, const struct column *columns, size_t count) {
  struct listing *listing = calloc(1, sizeof *listing);
  if (listing)
    *listing = (struct listing){.output = output, .columns = columns, .column_count = count};
  return listing;
}

bool listing_add(struct listing *listing, json_t *row) {
  if (!row)
    return false;
  bool ok = true;
  switch (listing->output->format) {
  case OUTPUT_TEXT:
    ok = add_line(listing, row);
    break;
  case OUTPUT_JSON:
    fputs(listing->rows ? ",\n" : "[\n", stdout);
    print_json(row, JSON_COMPACT);
    break;
  case OUTPUT_JSONL:
    print_json(row, JSON_COMPACT);
    putchar('\n');
    break;
  }
  json_decref(row);
  listing->rows++;
  if (listing->page_rows == PAGE_ROWS)
    print_page(listing), listing->page_rows = 0;
  return ok;
}

size_t listing_rows(const struct listing *listing) { return listing->rows; }

void listing_close(struct listing *listing, const char *empty) {
  if (!listing)
    return;
  if (listing->table)
    print_page(listing);
  if (listing->output->format == OUTPUT_JSON)
    puts(listing->rows ? "\n]" : "[]");
  if (listing->output->format == OUTPUT_TEXT && listing->rows == 0 && empty && !listing->output->quiet)
    fprintf(stderr, "%s\n", empty);
  free(listing);
}

static void print_field(const struct output *output, const struct column *column, const char *text, int width) {
  const char *color = output->color && column->kind == CELL_STATE ? state_color(text) : NULL;
  const char *bold = output->color ? "\033[1m" : "", *plain = output->color ? "\033[0m" : "";
  if (column->kind == CELL_LINES && strchr(text, '\n'))
    printf("%s%s%s\n%s\n", bold, column->title, plain, text);
  else
    printf("%s%-*s%s  %s%s%s\n", bold, width, column->title, plain, color ? color : "", text, color ? plain : "");
}

void output_record(const struct output *output, const struct column *columns, size_t count, json_t *object) {
  if (output->format != OUTPUT_TEXT) {
    output_json(output, object);
    json_decref(object);
    return;
  }
  int width = 0;
  for (size_t i = 0; i < count; i++)
    if ((int)strlen(columns[i].title) > width)
      width = (int)strlen(columns[i].title);
  for (size_t i = 0; i < count; i++) {
    char *text = cell_text(json_object_get(object, columns[i].key), columns[i].kind);
    if (text)
      print_field(output, &columns[i], text, width);
    free(text);
  }
  json_decref(object);
}
