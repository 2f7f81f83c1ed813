/* SPDX-License-Identifier: MIT
 *
 * core/config_internal.h - what the files config*.c share while a configuration is being loaded. Nobody else includes
 * it.
 */
#ifndef CORE_CONFIG_INTERNAL_H
#define CORE_CONFIG_INTERNAL_H

#include "core/base/arena.h"
#include "core/config.h"
#include "core/config_mask.h"
#include "core/modules.h"
#include "core/options.h"
#include "core/yaml.h"

/* What is wrong, as far as the search has come. */
struct config_findings {
  config_finding_fn *each; /* NULL = nobody hears */
  void *ctx;
  struct err *first;
  size_t count;
  bool sources;                  /* an entry of results is wrong */
  struct config_secrets secrets; /* what no text may show */
  const struct yaml_node *map;   /* which is being filled */
};

struct config_loader {
  struct config *config;
  struct arena *arena;
  struct module_registry *modules;
  struct secret_reader secrets;
  const char *dir; /* of the configuration file; secret files are relative to it */
  struct err *err; /* the present failure */
  struct config_findings *found;
};

/* Takes note of the present failure, so that the search may go on; returns false. */
bool config_note(const struct config_loader *l);

/* options_fill_all, with a note of each failure, and a warning for each secret that stands literally in a file which
 * others may read. */
MUSTCHECK bool config_fill(const struct config_loader *l, const struct duebox_option *rows,
                           const struct yaml_node *node, const char *const *known_elsewhere, void *out);

/* The value of the key, else the map itself, else the root: the best place to show for a value that may be a default.
 */
const struct yaml_node *config_place(const struct config_loader *l, const struct yaml_node *map, const char *key);

/* One after the other: each needs what the one before has made. They have noted what is wrong. */
MUSTCHECK bool config_load_plugins(const struct config_loader *l);
MUSTCHECK bool config_load_sources(const struct config_loader *l);
MUSTCHECK bool config_load_routes(const struct config_loader *l);

/* What the consumers of a route are told where its configuration does not say: NULL = nothing. */
const char *config_reply_to(const struct config *config, const struct route_config *route);
/* What route->answers_at is to be. */
struct duebox_list config_answers_at(const struct config_loader *l, const struct route_config *route);
/* What route->answer_to is to be. */
uint64_t config_told_to(const struct config *config, const struct route_config *route);
/* What route->result_awaited is to be. */
bool config_result_awaited(const struct config *config, const struct route_config *route);

/* The key routes of an entry of results, and what results and routes, both loaded, are to each other. */
MUSTCHECK bool config_check_patterns(const struct config_loader *l, const struct yaml_node *entry,
                                     const struct duebox_list *routes);
MUSTCHECK bool config_check_answers(const struct config_loader *l);

/* 1 to 64 letters, digits or one of _ . : / -, the first a letter or digit. */
bool config_route_name_ok(const char *name);

/* Reads a secret that `<name>_file` refers to; ctx is the folder of the configuration file. */
const char *config_read_secret(void *ctx, const char *ref, struct arena *arena, struct err *err);

/* The path of the file that it reads. */
const char *config_secret_path(const char *dir, const char *ref, struct arena *arena, struct err *err);

/* Where a file is that the configuration names: relative to it, not to who starts the daemon. */
const char *config_beside(const char *dir, const char *file, struct arena *arena);

/* Whether nobody else could write the file or folder, or put another in its place. It need not be there. */
MUSTCHECK bool config_check_path(const char *path, struct err *err);

/* The main file with its drop-ins merged into one tree. NULL on failure. */
struct yaml_node *config_read_files(const char *path, const char *dir, struct arena *arena, struct err *err);

/* Whether a host name or address is this machine: localhost, 127.0.0.0/8, ::1. */
bool config_is_loopback(const char *host);

#endif
