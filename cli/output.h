/* SPDX-License-Identifier: MIT
 *
 * cli/output.h - data on standard output: as a table for people, as JSON, or as JSON lines.
 *
 * A row is a JSON object once and for all; a table is a view of it through columns that name its keys. So the three
 * formats never say different things. Row ids are JSON strings, since 2^53 is not enough for them. Rows stream: a
 * listing keeps at most one screenful-sized page in memory. Texts pass through text_safe() on their way to a terminal.
 */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/base/attr.h"

enum output_format { OUTPUT_TEXT = 0, OUTPUT_JSON, OUTPUT_JSONL };

struct output {
  enum output_format format;
  bool color;
  bool quiet;
};

enum cell_kind {
  CELL_TEXT = 0,
  CELL_NUMBER, /* right-aligned */
  CELL_TIME,   /* RFC 3339 text, shown to the millisecond */
  CELL_STATE,  /* coloured by what the word means: states of tasks, ok/warn/fail, yes/no */
  CELL_NAME,   /* a message id, as commands take it */
  CELL_PROSE,  /* text that is wrapped, not cut, where it shrinks */
  CELL_LINES,  /* text whose line ends are kept; records only */
};

struct column {
  const char *key;   /* of the row object */
  const char *title; /* heading */
  enum cell_kind kind;
  bool shrinks; /* cut, or wrapped, at the width of the terminal before others are */
};

/* A list of rows under construction. */
struct listing;
MUSTCHECK struct listing *listing_open(const struct output *output, const struct column *columns, size_t count);
/* Takes the row over, also when it fails (false: out of memory). */
MUSTCHECK bool listing_add(struct listing *listing, json_t *row);
size_t listing_rows(const struct listing *listing);
/* Prints what is left and frees. `empty` is said on stderr when there were no rows in text format; may be NULL. */
void listing_close(struct listing *listing, const char *empty);

/* Whether whoever read standard output has closed it, as `| head` does: there is no use in writing more, and nothing is
 * wrong. Known only once something could not be written. */
bool output_unwanted(void);

/* One object: "title  value" lines, or JSON. Keys without value are left out of the text. Takes the object over. */
void output_record(const struct output *output, const struct column *columns, size_t count, json_t *object);

/* One JSON value in the format's way, for a text that has no columns. */
void output_json(const struct output *output, const json_t *value);

/* A JSON string of bytes that may be no UTF-8 (those become U+FFFD). NULL data gives null. */
json_t *output_string(const char *data, size_t len);

#endif
