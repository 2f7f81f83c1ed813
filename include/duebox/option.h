/* SPDX-License-Identifier: MIT
 *
 * duebox/option.h - configuration options as rows of data.
 *
 * One row says everything about an option: its type, default, limits and help. The host parses, checks, redacts and
 * documents from the rows and fills a struct at the given offsets before any function of the plugin runs. The filled
 * struct is const and outlives whatever uses it.
 */
#ifndef DUEBOX_OPTION_H
#define DUEBOX_OPTION_H

#include <stddef.h>
#include <stdint.h>

/* The C type that is stored at `offset` stands beside each. */
enum duebox_option_type {
  DUEBOX_OPT_STRING = 1, /* const char *; NULL when absent without default */
  DUEBOX_OPT_BOOL,       /* bool */
  DUEBOX_OPT_INT,        /* int64_t */
  DUEBOX_OPT_SIZE,       /* int64_t, bytes: "64KiB", "1MiB", "1000000" */
  DUEBOX_OPT_DURATION,   /* int64_t, milliseconds: "250ms", "15m", "1h" */
  DUEBOX_OPT_RATE,       /* double, per second: "100/s", "6000/m"; 0 = no limit */
  DUEBOX_OPT_NUMBER,     /* double */
  DUEBOX_OPT_ENUM,       /* int, index into `choices` */
  DUEBOX_OPT_SECRET,     /* const char *; the key `<name>_file` is accepted too and reads a file; never printed */
  DUEBOX_OPT_LIST,       /* struct duebox_list: a YAML sequence, or one scalar */
  DUEBOX_OPT_DURATIONS,  /* struct duebox_durations: a sequence of durations */
  DUEBOX_OPT_MAP,        /* struct duebox_map: free keys, for pass-through to a vendor's library */
};

struct duebox_list {
  const char *const *items;
  size_t count;
};

struct duebox_durations {
  const int64_t *ms;
  size_t count;
};

struct duebox_pair {
  const char *key;
  const char *value;
};

struct duebox_map {
  const struct duebox_pair *items;
  size_t count;
};

#define DUEBOX_OPT_REQUIRED 0x1u /* must be given */
#define DUEBOX_OPT_TEMPLATE                                                                                            \
  0x2u /* a string in which {task_key}, {route}, {message_id}, {priority}, {header.NAME} expand */
/* Since 1.1. A template of a route that says where its tasks go: topic, exchange, routing key, URL. The expansions of
 * all such options of a route are a task's target, which is suspended by itself (DUEBOX_SCOPE_TARGET). */
#define DUEBOX_OPT_TARGET 0x4u
/* Since 1.1. A STRING that may hold a secret, or a MAP whose values are secrets and never printed: the key
 * `<name>_file` is accepted too. It names a file, for a MAP one for each key, and what comes from there is never
 * printed. */
#define DUEBOX_OPT_FILE 0x8u
/* Since 1.8. A STRING that names a file or folder of the operator's which the plugin opens, such as the certificates
 * that it trusts. A relative one is relative to the configuration, and one that another user could write, or put
 * something else in its place, is refused. It need not be there. */
#define DUEBOX_OPT_PATH 0x10u

struct duebox_option {
  const char *name;
  enum duebox_option_type type;
  const char *def;  /* default as text, parsed like a given value; NULL = none (zero) */
  int64_t min, max; /* for INT, SIZE, DURATION; both 0 = not limited */
  uint32_t flags;
  size_t offset;              /* offsetof() in the struct that is filled */
  const char *const *choices; /* ENUM: NULL-terminated names */
  const char *help;           /* one line, starts in lower case, no full stop */
};

#endif
