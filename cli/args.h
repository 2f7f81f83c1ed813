/* SPDX-License-Identifier: MIT
 *
 * cli/args.h - the command line, taken apart by the table of commands.
 *
 * Global options may stand anywhere; a command takes its own and the global ones, in any order with its operands; "--"
 * ends options. Values are texts until a command asks for a type; what it gets is checked and the error names the
 * option. Everything points into argv. getopt's globals are used, so parsing belongs to the main thread.
 */
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/command.h"
#include "core/base/err.h"

struct given_option {
  enum option_id id;
  const char *value; /* "" for a flag */
};

struct args {
  const struct command *command; /* NULL: help was asked for, or nothing was given */
  bool help;                     /* of `command`, of `noun`, or of the whole */
  const char *noun, *verb;       /* as given, or NULL */
  struct given_option *given;
  size_t given_count;
  char **operands;
  int operand_count;
};

/* False: the line is wrong and err says how to mend it. So it is with an empty value where none makes sense, and with
 * options of which one at most makes sense, whatever the command. Free with args_free in both cases. */
MUSTCHECK bool args_parse(int argc, char **argv, struct args *args, struct err *err);
void args_free(struct args *args);

bool args_has(const struct args *args, enum option_id id);
/* Its value, of several (headers) the last; NULL = not given. */
const char *args_text(const struct args *args, enum option_id id);

/* Typed values. The output keeps its value where the option was not given. */
MUSTCHECK bool args_int(const struct args *args, enum option_id id, int64_t min, int64_t max, int64_t *out,
                        struct err *err);
MUSTCHECK bool args_duration(const struct args *args, enum option_id id, int64_t *ms, struct err *err);
MUSTCHECK bool args_rate(const struct args *args, enum option_id id, double *per_second, struct err *err);

/* A time as people write it: absolute, or relative to now by the database's clock. */
struct when {
  bool given;
  bool relative;
  int64_t us; /* since 1970 UTC, or after now */
};
MUSTCHECK bool args_when(const struct args *args, enum option_id id, struct when *out, struct err *err);

#endif
