/* SPDX-License-Identifier: MIT
 *
 * core/config_rows.h - the core's own options as rows, section by section. Data only; the same engine as for plugins.
 */
#ifndef CORE_CONFIG_ROWS_H
#define CORE_CONFIG_ROWS_H

#include <duebox/option.h>

#include "core/config.h"

/* A flag of the core's own rows: a change takes effect with a restart only, and a reload refuses it. All other rows
 * take effect with a reload. What a plugin's instance is made of needs a restart, its route options do not. */
#define CONFIG_RESTART 0x80000000u

/* A route's own keys: what one route_config cannot hold in the type that a row fills stands beside it. */
struct route_rows {
  struct route_config route;
  int64_t max_attempts;
};

/* The map `retry` of a route. */
struct retry_rows {
  struct duebox_durations levels;
  int64_t backoff_ms;
  double multiplier;
  int64_t max_ms;
  double jitter;
};

/* `admin` as it is written. */
struct admin_rows {
  const char *listen; /* "host:port" or "off" */
  const char *token;
  const char *url;
  const char *ca_file;
  bool allow_plaintext;
};

/* `callbacks` as it is written. */
struct callbacks_rows {
  const char *listen; /* "host:port" or "off" */
  const char *base_url;
  const char *secret;
  const char *previous_secret;
};

struct alert_rows {
  const char *route;
};

extern const struct duebox_option config_database_rows[];  /* struct database_config */
extern const struct duebox_option config_engine_rows[];    /* struct engine_config */
extern const struct duebox_option config_admin_rows[];     /* struct admin_rows */
extern const struct duebox_option config_callbacks_rows[]; /* struct callbacks_rows */
extern const struct duebox_option config_log_rows[];       /* struct log_config */
extern const struct duebox_option config_route_rows[];     /* struct route_rows */
extern const struct duebox_option config_source_rows[];    /* struct source_config */
extern const struct duebox_option config_retry_rows[];     /* struct retry_rows */
extern const struct duebox_option config_alert_rows[];     /* struct alert_rows */

/* The keys of the file, and those of the core inside a plugin's, a route's and a source's map; each ends with NULL. */
extern const char *const config_section_keys[];
extern const char *const config_plugin_keys[];
extern const char *const config_route_keys[];
extern const char *const config_source_keys[];

/* Built-in waits of a route that gives neither levels nor backoff. */
#define CONFIG_RETRY_LEVELS "5s, 30s, 1m, 10m, 30m, 1h, 6h, 1d, 2d"

#endif
