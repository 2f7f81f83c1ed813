/* SPDX-License-Identifier: MIT
 *
 * core/options.h - the option engine: rows of data (duebox/option.h) to a filled struct, for core and plugins alike.
 *
 * Pure: no files except those that a secret's `<name>_file` names, which are read through the reader given. Everything
 * allocated belongs to the arena given and lives as long as the configuration. Option structs are const after filling.
 */
#ifndef CORE_OPTIONS_H
#define CORE_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include <duebox/option.h>

#include "core/base/attr.h"
#include "core/base/err.h"

struct yaml_node; /* core/yaml.h: one value of the file with its line and column */
struct arena;     /* core/base/arena.h: memory that is freed at once */

/* Resolves what a secret refers to. ref is the text after `<name>_file:`; relative paths are relative to the
 * configuration file; `credential:NAME` reads $CREDENTIALS_DIRECTORY/NAME. The text returned belongs to the arena. A
 * file that others may read is refused. */
struct secret_reader {
  void *ctx;
  const char *(*read)(void *ctx, const char *ref, struct arena *arena, struct err *err);
};

/* Fills out (size bytes, zeroed by the caller) from the mapping `node` (NULL = empty mapping) by `rows` (ends with a
 * NULL name). Keys listed in `known_elsewhere` (NULL-terminated, may be NULL) are left to the caller. An unknown key, a
 * wrong type, a value out of limits or a missing required key is an error with file:line:column and a suggestion. */
MUSTCHECK bool options_fill(const struct duebox_option *rows, const struct yaml_node *node,
                            const char *const *known_elsewhere, const struct secret_reader *secrets,
                            struct arena *arena, void *out, struct err *err);

/* The same, but goes on: `wrong` is called with ctx for everything that is wrong, each time with another text in err.
 */
MUSTCHECK bool options_fill_all(const struct duebox_option *rows, const struct yaml_node *node,
                                const char *const *known_elsewhere, const struct secret_reader *secrets,
                                struct arena *arena, void *out, void (*wrong)(void *ctx), void *ctx, struct err *err);

/* Whether the key `<name>_file` is accepted too. */
bool option_has_file(const struct duebox_option *row);

/* Parses one text by type; used for defaults, command-line values and tests alike. */
MUSTCHECK bool option_parse_duration(const char *text, int64_t *ms, struct err *err);
MUSTCHECK bool option_parse_size(const char *text, int64_t *bytes, struct err *err);
MUSTCHECK bool option_parse_rate(const char *text, double *per_second, struct err *err);
MUSTCHECK bool option_parse_int(const char *text, int64_t *value, struct err *err);
MUSTCHECK bool option_parse_number(const char *text, double *value, struct err *err);
MUSTCHECK bool option_parse_bool(const char *text, bool *value, struct err *err);

/* What is printed in place of a secret. */
#define OPTION_MASK "***"

/* Writes the effective value of one row as text (OPTION_MASK for a secret that is set). Returns the length as snprintf.
 */
size_t option_print(const struct duebox_option *row, const void *filled, char *out, size_t cap);
/* A duration by itself: "7d". */
size_t option_print_duration(int64_t ms, char *out, size_t cap);

/* Whether two structs that the same rows filled hold the same values; secrets are compared by content. */
bool options_equal(const struct duebox_option *rows, const void *a, const void *b);

/* The known word nearest to `word` (edit distance at most 3, and less than half of the length), or NULL. */
const char *option_suggest(const char *word, const char *const *known, size_t count);

#endif
