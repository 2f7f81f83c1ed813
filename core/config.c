/* SPDX-License-Identifier: MIT
 *
 * core/config.c - loading as a whole, and the sections that describe the daemon itself. Plugins, routes and results
 * are in config_routes.c, files in config_files.c, the option rows in config_rows.c.
 */
#include "core/config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <duebox/link.h>

#include "core/admin_url.h"
#include "core/base/log.h"
#include "core/config_internal.h"
#include "core/config_rows.h"
#include "core/realtime.h"
#include "core/store.h"

enum { TOKEN_MIN = 16, SCHEMA_MAX = 64, TABLE_MAX = 48 };

static bool readable_by_others(const char *file) {
  struct stat st;
  return stat(file, &st) == 0 && (st.st_mode & 077) != 0;
}

bool config_note(const struct config_loader *l) {
  struct config_findings *found = l->found;
  if (!l->err->text[0])
    return false; /* it is noted */
  config_mask(&found->secrets, l->err);
  if (found->count++ == 0)
    *found->first = *l->err;
  if (found->each)
    found->each(found->ctx, l->err->text);
  l->err->text[0] = '\0';
  return false;
}

static void note(void *ctx) { config_note(ctx); }

static void warn_of_secret(const struct duebox_option *row, const struct yaml_node *given) {
  if (given && given->text[0] && !given->from_env && readable_by_others(given->file))
    log_warn("DUEBOX-CONFIG-SECRET",
             "%s:%u:%u: a secret stands in a file that other users may read; use %s_file, or run: chmod 600 %s",
             given->file, given->line, given->column, row->name, given->file);
}

/* A secret that stands in the configuration itself. */
static void remember_secret(const struct config_loader *l, const struct duebox_option *row,
                            const struct yaml_node *given) {
  if (!given || (row->type != DUEBOX_OPT_SECRET && (row->type != DUEBOX_OPT_MAP || !(row->flags & DUEBOX_OPT_FILE))))
    return;
  if (given->kind == YAML_TEXT)
    config_secrets_add(&l->found->secrets, l->arena, given->parent, given->text);
  for (size_t i = 0; i < given->count; i++)
    if (given->items[i]->kind == YAML_TEXT)
      config_secrets_add(&l->found->secrets, l->arena, given, given->items[i]->text);
}

/* Whether a file is that of database.migrate_password alone. */
static bool is_migrators(const struct config_loader *l, const char *ref) {
  const struct yaml_node *database = yaml_get(l->config->tree, "database");
  const struct yaml_node *file = yaml_get(database, "migrate_password_file"),
                         *own = yaml_get(database, "password_file");
  return l->found->map == database && file && strcmp(file->text, ref) == 0 && !(own && strcmp(own->text, ref) == 0);
}

/* What a `<name>_file` key names. The daemon's user need not be able to read the password of `duebox migrate`. */
static const char *read_secret(void *ctx, const char *ref, struct arena *arena, struct err *err) {
  const struct config_loader *l = ctx;
  const char *text = config_read_secret((void *)(uintptr_t)l->dir, ref, arena, err);
  if (!text && err->code == EACCES && is_migrators(l, ref)) {
    l->config->database.migrate_unread = arena_printf(arena, "%s", err->text);
    return "unread";
  }
  if (text)
    config_secrets_add(&l->found->secrets, arena, l->found->map, text);
  return text;
}

/* What an option with DUEBOX_OPT_PATH names. */
static bool take_path(const struct config_loader *l, const struct yaml_node *given, const char **path) {
  struct err why = {0};
  *path = config_beside(l->dir, *path, l->arena);
  return config_check_path(*path, &why) || yaml_err(given, l->err, "%s", why.text);
}

bool config_fill(const struct config_loader *l, const struct duebox_option *rows, const struct yaml_node *node,
                 const char *const *known_elsewhere, void *out) {
  for (const struct duebox_option *row = rows; row && row->name; row++)
    remember_secret(l, row, yaml_get(node, row->name));
  l->found->map = node;
  if (!options_fill_all(rows, node, known_elsewhere, &l->secrets, l->arena, out, note, (void *)(uintptr_t)l, l->err))
    return false;
  bool ok = true;
  for (const struct duebox_option *row = rows; row && row->name; row++) {
    const struct yaml_node *given = yaml_get(node, row->name);
    if (given && row->flags & DUEBOX_OPT_PATH && !take_path(l, given, (const char **)((char *)out + row->offset)))
      ok = config_note(l);
    if (row->type == DUEBOX_OPT_SECRET)
      warn_of_secret(row, given);
    else if (row->type == DUEBOX_OPT_MAP && row->flags & DUEBOX_OPT_FILE)
      for (size_t i = 0; given && i < given->count; i++)
        warn_of_secret(row, given->items[i]);
  }
  return ok;
}

const struct yaml_node *config_place(const struct config_loader *l, const struct yaml_node *map, const char *key) {
  const struct yaml_node *value = yaml_get(map, key);
  return value ? value : map ? map : l->config->tree;
}

bool config_is_loopback(const char *host) { return duebox_link_is_local(host, strlen(host)); }

static bool name_ok(const char *name, size_t max, const char *others) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  size_t n = strlen(name);
  for (size_t i = 0; i < n; i++)
    if (!strchr(letters, name[i]) && !strchr(others, name[i]))
      return false;
  return n > 0 && n <= max;
}

static bool check_database(const struct config_loader *l, const struct yaml_node *node) {
  const struct database_config *db = &l->config->database;
  if (!name_ok(db->name, SCHEMA_MAX, "$-"))
    return yaml_err(config_place(l, node, "name"), l->err,
                    "\"%.80s\" is no schema name; it has 1 to 64 letters, digits, \"_\", \"$\" or \"-\"", db->name);
  if (!name_ok(db->table, TABLE_MAX, ""))
    return yaml_err(config_place(l, node, "table"), l->err,
                    "\"%.80s\" is no table name; it has 1 to 48 letters, digits or \"_\"", db->table);
  if (db->tls_ca && !db->tls)
    return yaml_err(config_place(l, node, "tls_ca"), l->err, "has no effect without tls: true; add it");
  if (db->server_public_key_file && (db->tls || db->socket))
    return yaml_err(config_place(l, node, "server_public_key_file"), l->err,
                    "is for TCP without TLS; remove it, the password is safe with tls and on a socket");
  if ((db->migrate_password || db->migrate_unread) && !db->migrate_user)
    return yaml_err(config_place(l, node, "migrate_user"), l->err, "migrate_password needs migrate_user; add it");
  const struct duebox_link link = {.host = db->host,
                                   .host_len = db->host ? strlen(db->host) : 0,
                                   .tls = db->tls,
                                   .verified = true,
                                   .allow_plaintext = db->allow_plaintext};
  if (duebox_link_judge(&link) != DUEBOX_LINK_ALLOWED)
    return yaml_err(
        config_place(l, node, "host"), l->err,
        "%.200s is another machine and tls is off: passwords and payloads would cross the network readable; "
        "set tls: true (with tls_ca), or allow_plaintext: true",
        db->host);
  return true;
}

static bool load_database(const struct config_loader *l) {
  const struct yaml_node *node = yaml_get(l->config->tree, "database");
  struct database_config *db = &l->config->database;
  if (yaml_absent(node))
    return yaml_key_err(node ? node : l->config->tree, l->err,
                        "%s must be given: database: {socket: /run/mysqld/mysqld.sock, user: duebox, "
                        "password_file: db.secret, name: shop}",
                        node ? "its keys" : "the section \"database\"");
  if (!config_fill(l, config_database_rows, node, NULL, db))
    return false;
  if (db->migrate_unread)
    db->migrate_password = NULL;
  if (db->host && db->socket)
    return yaml_err(yaml_get(node, "socket"), l->err, "host is given too; keep one of the two");
  if (!db->host && !db->socket)
    db->host = "127.0.0.1";
  if (!db->password)
    db->password = "";
  db->outbox = arena_printf(l->arena, "%s.%s", db->name, db->table);
  return check_database(l, node);
}

static bool load_engine(const struct config_loader *l) {
  const struct yaml_node *node = yaml_get(l->config->tree, "engine");
  struct engine_config *engine = &l->config->engine;
  if (!config_fill(l, config_engine_rows, node, NULL, engine))
    return false;
  if (!engine->instance) {
    char host[STORE_INSTANCE_MAX + 1] = "";
    gethostname(host, sizeof host - 1); /* a longer name is cut, which is good enough for a default */
    engine->instance = arena_strdup(l->arena, host[0] ? host : "duebox");
  }
  if (!name_ok(engine->instance, STORE_INSTANCE_MAX, ".:@/-"))
    return yaml_err(config_place(l, node, "instance"), l->err,
                    "\"%.80s\" is no instance name; it has 1 to %d letters, digits or one of _ . : @ / -",
                    engine->instance, STORE_INSTANCE_MAX);
  cpu_set_t ignored;
  if (engine->cpus && !cpus_parse(engine->cpus, &ignored))
    return yaml_err(config_place(l, node, "cpus"), l->err,
                    "\"%.80s\" is no list of processors; write it as 0-3, or 0,2, with numbers as in lscpu -e",
                    engine->cpus);
  if (engine->poll_min_ms > engine->poll_max_ms)
    return yaml_err(config_place(l, node, "poll_min"), l->err, "poll_min is longer than poll_max; swap them");
  return true;
}

/* Takes "host:port" or "[v6]:port" apart. */
static bool parse_listen(const struct config_loader *l, const char *listen, const char **out, uint16_t *out_port) {
  const char *colon = strrchr(listen, ':');
  int64_t port = 0;
  struct err ignored;
  if (!colon || colon == listen || !option_parse_int(colon + 1, &port, &ignored) || port < 1 || port > 65535)
    return false;
  bool brackets = listen[0] == '[' && colon[-1] == ']';
  const char *host = brackets ? arena_strndup(l->arena, listen + 1, (size_t)(colon - listen) - 2)
                              : arena_strndup(l->arena, listen, (size_t)(colon - listen));
  unsigned char address[sizeof(struct in6_addr)];
  bool literal = inet_pton(brackets ? AF_INET6 : AF_INET, host, address) == 1;
  *out = host;
  *out_port = (uint16_t)port;
  return literal || (!brackets && strcmp(host, "localhost") == 0);
}

static bool is_v6(const char *host) { return strchr(host, ':') != NULL; }

static bool is_any(const char *host) {
  struct in6_addr any = IN6ADDR_ANY_INIT, address;
  return strcmp(host, "0.0.0.0") == 0 ||
         (inet_pton(AF_INET6, host, &address) == 1 && memcmp(&any, &address, sizeof any) == 0);
}

/* Whether who listens on `host` takes the port on `other` too: [::] is all addresses, 0.0.0.0 those of IPv4; the name
 * may be either of two. */
static bool covers(const char *host, const char *other) {
  if (strcmp(host, "localhost") == 0)
    return covers("127.0.0.1", other) || covers("::1", other);
  return strcmp(host, other) == 0 || (is_any(host) && (is_v6(host) || !is_v6(other)));
}

/* Who listens on all addresses is asked on this machine's own. */
static const char *default_admin_url(const struct config_loader *l, const struct admin_config *admin) {
  bool v6 = is_v6(admin->host);
  const char *host = !is_any(admin->host) ? admin->host : v6 ? "::1" : "127.0.0.1";
  return arena_printf(l->arena, v6 ? "http://[%s]:%u" : "http://%s:%u", host, admin->port);
}

/* Who owns the file that the token stands in has it already. */
static uid_t token_owner(const struct config_loader *l, const struct yaml_node *admin) {
  struct err err = {0};
  struct stat st;
  const struct yaml_node *token = yaml_get(admin, "token"), *file = yaml_get(admin, "token_file");
  const char *path = file ? config_secret_path(l->dir, file->text, l->arena, &err) : token ? token->file : NULL;
  return path && stat(path, &st) == 0 ? st.st_uid : 0;
}

static bool load_admin(const struct config_loader *l) {
  const struct yaml_node *node = yaml_get(l->config->tree, "admin");
  struct admin_config *admin = &l->config->admin;
  struct admin_rows rows = {0};
  if (!config_fill(l, config_admin_rows, node, NULL, &rows))
    return false;
  *admin = (struct admin_config){.token = rows.token,
                                 .token_owner = token_owner(l, node),
                                 .url = rows.url,
                                 .ca_file = rows.ca_file,
                                 .allow_plaintext = rows.allow_plaintext};
  if (rows.token && strlen(rows.token) < TOKEN_MIN)
    return yaml_err(config_place(l, node, "token"), l->err,
                    "the token is shorter than %d characters; make one with: openssl rand -hex 32", TOKEN_MIN);
  if (strcmp(rows.listen, "off") == 0)
    return true;
  if (!parse_listen(l, rows.listen, &admin->host, &admin->port))
    return yaml_err(config_place(l, node, "listen"), l->err,
                    "\"%.80s\" is no address with port; write it as 127.0.0.1:8321 or [::1]:8321, or off", rows.listen);
  if (!rows.token && !config_is_loopback(admin->host))
    return yaml_err(config_place(l, node, "listen"), l->err,
                    "%.80s is reachable from other machines and there is no token; add token_file, or listen on "
                    "127.0.0.1",
                    rows.listen);
  if (!admin->url)
    admin->url = default_admin_url(l, admin);
  struct err why = {0};
  return admin_url_check(admin->url, admin->token, admin->allow_plaintext, &why) ||
         yaml_err(config_place(l, node, "url"), l->err, "%s", why.text);
}

static bool check_secret(const struct config_loader *l, const struct yaml_node *node, const char *key,
                         const char *secret) {
  return !secret || strlen(secret) >= TOKEN_MIN ||
         yaml_err(config_place(l, node, key), l->err,
                  "the secret is shorter than %d characters; make one with: openssl rand -hex 32", TOKEN_MIN);
}

static bool load_callbacks(const struct config_loader *l) {
  const struct yaml_node *node = yaml_get(l->config->tree, "callbacks");
  struct callbacks_config *callbacks = &l->config->callbacks;
  struct callbacks_rows rows = {0};
  if (!config_fill(l, config_callbacks_rows, node, NULL, &rows) || !check_secret(l, node, "secret", rows.secret) ||
      !check_secret(l, node, "previous_secret", rows.previous_secret))
    return false;
  *callbacks = (struct callbacks_config){.base_url = rows.base_url,
                                         .secret = rows.secret,
                                         .previous_secret = rows.previous_secret,
                                         .outbox = l->config->database.outbox};
  if (strcmp(rows.listen, "off") == 0)
    return true;
  if (!parse_listen(l, rows.listen, &callbacks->host, &callbacks->port))
    return yaml_err(config_place(l, node, "listen"), l->err,
                    "\"%.80s\" is no address with port; write it as 127.0.0.1:8322 or [::1]:8322, or off", rows.listen);
  const struct admin_config *admin = &l->config->admin;
  if (admin->host && admin->port == callbacks->port &&
      (covers(admin->host, callbacks->host) || covers(callbacks->host, admin->host)))
    return yaml_err(config_place(l, node, "listen"), l->err,
                    "port %u is that of admin.listen; consumers answer on a port of their own, such as %u",
                    callbacks->port, callbacks->port == UINT16_MAX ? callbacks->port - 1 : callbacks->port + 1);
  if (!callbacks->secret && l->config->admin.token)
    callbacks->secret = arena_printf(l->arena, "callbacks:%s", l->config->admin.token);
  if (!callbacks->secret)
    return yaml_err(config_place(l, node, "listen"), l->err,
                    "callback URLs must be signed; add secret_file, or a token to admin");
  if (!callbacks->base_url && is_any(callbacks->host))
    return yaml_err(config_place(l, node, "listen"), l->err,
                    "%.80s is every address of this machine and none that consumers reach; add base_url, such as "
                    "http://duebox.example:%u",
                    rows.listen, callbacks->port);
  if (!callbacks->base_url)
    callbacks->base_url = arena_printf(l->arena, "http://%s", rows.listen);
  struct err why = {0};
  return base_url_check(callbacks->base_url, &why) ||
         yaml_err(config_place(l, node, "base_url"), l->err, "%s", why.text);
}

/* The route of that name, or a stand-in: alerts may go to a route that only another daemon knows, as any task may. What
 * looks like a slip of the pen is an error. */
static const struct route_config *alert_route(const struct config_loader *l, const struct yaml_node *node,
                                              const char *name) {
  const struct config *config = l->config;
  const struct route_config *route = config_route(config, name, strlen(name));
  if (route)
    return route;
  const char **names = arena_array(l->arena, config->route_count, sizeof *names);
  for (size_t i = 0; i < config->route_count; i++)
    names[i] = config->routes[i].name;
  const char *near = option_suggest(name, names, config->route_count);
  if (near) {
    yaml_err(node, l->err, "there is no route \"%.80s\"; did you mean \"%s\"?", name, near);
    return NULL;
  }
  log_warn("DUEBOX-CONFIG-ALERT",
           "%s:%u:%u: there is no route \"%s\" here; alerts are held until a daemon has it. Define it under routes",
           node->file, node->line, node->column, node->from_env ? OPTION_MASK : name);
  struct route_config *stand_in = arena_alloc(l->arena, sizeof *stand_in);
  stand_in->name = name;
  return stand_in;
}

static bool load_alerts(const struct config_loader *l) {
  static const char *const kinds[] = {"dead", NULL};
  const struct yaml_node *node = yaml_get(l->config->tree, "alerts"), *dead = yaml_get(node, "dead");
  struct alert_rows rows = {0};
  bool ok = config_fill(l, NULL, node, kinds, NULL);
  if (!dead)
    return ok;
  if (!config_fill(l, config_alert_rows, dead, NULL, &rows))
    return false;
  if (!config_route_name_ok(rows.route))
    return yaml_err(yaml_get(dead, "route"), l->err, "\"%.80s\" is no name of a route", rows.route);
  l->config->dead_alert = alert_route(l, yaml_get(dead, "route"), rows.route);
  return ok && l->config->dead_alert != NULL;
}

static bool load_log(const struct config_loader *l) {
  return config_fill(l, config_log_rows, yaml_get(l->config->tree, "log"), NULL, &l->config->log);
}

/* All sections, whatever is wrong with the others. */
static bool load_all(const struct config_loader *l) {
  static bool (*const sections[])(const struct config_loader *) = {
      load_log,       load_database,       load_engine,         load_admin,
      load_callbacks, config_load_plugins, config_load_sources, config_load_routes,
      load_alerts,    config_check_answers};
  struct config *config = l->config;
  config->tree = config_read_files(config->path, l->dir, l->arena, l->err);
  if (!config->tree)
    return config_note(l);
  config_secrets_of(&l->found->secrets, l->arena, config->tree);
  bool ok = config_fill(l, NULL, config->tree, config_section_keys, NULL);
  for (size_t i = 0; i < ARRAY_LEN(sections); i++)
    if (!sections[i](l))
      ok = config_note(l);
  return ok;
}

bool config_load(const char *path, struct module_registry *modules, struct config **out, struct err *err) {
  return config_examine(path, modules, NULL, NULL, out, err);
}

bool config_examine(const char *path, struct module_registry *modules, config_finding_fn *finding, void *ctx,
                    struct config **out, struct err *err) {
  struct arena *arena = arena_new();
  const char *slash = strrchr(path, '/');
  const char *dir = !slash ? "." : slash == path ? "/" : arena_strndup(arena, path, (size_t)(slash - path));
  struct config *config = arena_alloc(arena, sizeof *config);
  config->path = arena_strdup(arena, path);
  config->arena = arena;
  struct err now = {0};
  struct config_findings found = {.each = finding, .ctx = ctx, .first = err};
  struct config_loader l = {
      .config = config,
      .arena = arena,
      .modules = modules,
      .secrets = {.read = read_secret},
      .dir = dir,
      .err = &now,
      .found = &found,
  };
  l.secrets.ctx = &l;
  *out = load_all(&l) ? config : NULL;
  if (!*out)
    arena_free(&arena);
  return *out != NULL;
}

void config_free(struct config **config) {
  if (!*config)
    return;
  struct arena *arena = (*config)->arena; /* which holds the configuration itself */
  *config = NULL;
  arena_free(&arena);
}

const struct route_config *config_route(const struct config *config, const char *name, size_t name_len) {
  size_t low = 0, high = config->route_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    const struct route_config *route = &config->routes[middle];
    size_t len = strlen(route->name);
    int order = memcmp(route->name, name, len < name_len ? len : name_len);
    if (order == 0 && len == name_len)
      return route;
    if (order < 0 || (order == 0 && len < name_len))
      low = middle + 1;
    else
      high = middle;
  }
  return NULL;
}
