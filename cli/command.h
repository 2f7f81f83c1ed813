/* SPDX-License-Identifier: MIT
 *
 * cli/command.h - the one table of commands and options, from which parsing, help, completion and the manual come.
 *
 * A command is a noun with a verb ("task list") or a noun alone ("migrate"). Its function runs in the main thread and
 * returns an exit code of <sysexits.h>; it has printed its own errors by then.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/attr.h"

struct args;
struct cli;

enum option_id {
#define OPTION(id, name, letter, metavar, words, help) OPT_##id,
#include "cli/options.def"
#undef OPTION
  OPTIONS,
};

struct option_row {
  const char *name;
  char letter;         /* 0 = none */
  const char *metavar; /* NULL = a flag */
  const char *words;   /* values known beforehand, or NULL */
  const char *help;
};
extern const struct option_row option_rows[OPTIONS];
enum { GLOBAL_OPTIONS = OPT_HELP + 1 }; /* the first rows, taken by every command */

struct command {
  const char *noun;
  const char *verb;              /* NULL: the noun is the command */
  const char *operands;          /* as shown in the synopsis; "" = none */
  int min, max;                  /* number of operands; max < 0 = any */
  const enum option_id *options; /* beside the global ones; ends with OPTIONS */
  const char *summary;           /* one line, starts in lower case */
  const char *details;           /* paragraphs with line ends, or NULL */
  const char *examples;          /* lines with line ends */
  int (*run)(struct cli *cli, const struct args *args);
};

struct noun {
  const char *name;
  const char *summary;
};

extern const struct command commands[];
extern const size_t command_count;
extern const struct noun nouns[];
extern const size_t noun_count;

/* The command of these words, or NULL. verb may be NULL. */
const struct command *command_find(const char *noun, const char *verb);
const struct noun *noun_find(const char *name);
/* Whether it takes that option of its own; the global ones every command does. */
bool command_takes(const struct command *command, enum option_id id);
/* The word of the table nearest to `word`, or NULL. Of a noun's verbs when noun is given, else of all nouns. */
const char *command_suggest(const char *noun, const char *word);

#endif
