/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_config_errors.c - every bad configuration gets its error, word for word: the place and the cure.
 *
 * A row is one file (and perhaps a drop-in); each row is a test of its own. "@/" stands for the folder of the file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "config_fixture.h"

struct row {
  const char *name;
  const char *yaml;
  const char *error;
  const char *dropin; /* conf.d/10.yaml, or NULL */
};

#define DB "database: {user: duebox, name: shop}\n"
#define BUS DB "plugins: {bus: {module: \"null\"}}\n"
#define LONG DB "plugins: {hooks: {module: null_long}}\n"

static const struct row rows[] = {
    /* The file as such. */
    {"not yaml", "database: {user: duebox\n",
     "@/duebox.yaml:2:1: not valid YAML: did not find expected ',' or '}' while parsing a flow mapping", NULL},
    {"list at the root", "- a\n",
     "@/duebox.yaml:1:1: a configuration is a map of sections such as database: and routes:", NULL},
    {"text at the root", "hello\n",
     "@/duebox.yaml:1:1: a configuration is a map of sections such as database: and routes:", NULL},
    {"empty file", "",
     "@/duebox.yaml:1:1: the section \"database\" must be given: database: {socket: /run/mysqld/mysqld.sock, user: "
     "duebox, password_file: db.secret, name: shop}",
     NULL},
    {"unknown section", DB "plugin: {}\n", "@/duebox.yaml:2:1: plugin: unknown key; did you mean \"plugins\"?", NULL},
    {"far section", DB "telemetry: {}\n",
     "@/duebox.yaml:2:1: telemetry: unknown key; known keys here: database, plugins, routes, results, alerts, engine, "
     "admin, callbacks, log",
     NULL},
    {"a key that swallowed its value", DB "log: {level:hunter2}\n",
     "@/duebox.yaml:2:7: log.level:..: unknown key; known keys here: level, format; a value needs a blank behind its "
     "key's colon",
     NULL},
    {"a key of any name that did", "database: {user: u, name: s, password:\"hunter2\": x}\n",
     "@/duebox.yaml:1:30: database.password:..: unknown key; known keys here: host, port, socket, user, password, "
     "password_file, name, table, tls, tls_ca, server_public_key_file, allow_plaintext, connect_timeout, read_timeout, "
     "wake, migrate_user, migrate_password, migrate_password_file; a value needs a blank behind its key's colon",
     NULL},
    {"key twice", DB "log: {level: info}\nlog: {level: warn}\n",
     "@/duebox.yaml:3:1: log: this key was given before, at line 2 column 1; remove one of them", NULL},
    {"anchor", DB "log: &x {level: info}\n",
     "@/duebox.yaml:2:6: anchors (&name) and aliases (*name) are not supported; write the value out, or quote it",
     NULL},
    {"alias", DB "log: *x\n",
     "@/duebox.yaml:2:6: anchors (&name) and aliases (*name) are not supported; write the value out, or quote it",
     NULL},
    {"tag", DB "log: {level: !!str info}\n",
     "@/duebox.yaml:2:14: tags (!type) are not supported; remove it, or quote the value", NULL},
    {"two documents", DB "---\nlog: {}\n",
     "@/duebox.yaml:2:1: a second document begins here; remove the \"---\" or use a file in conf.d", NULL},
    {"map as key", DB "{a: b}: c\n",
     "@/duebox.yaml:2:1: a key must be a simple text; anchors, lists and maps cannot be keys", NULL},
    {"too deep", DB "log: [[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]\n",
     "@/duebox.yaml:2:22: nested too deeply; nothing in a configuration needs more than 16 levels", NULL},
    {"unset variable", "database: {user: duebox, name: \"${DUEBOX_NOT_SET}\"}\n",
     "@/duebox.yaml:1:32: the environment variable DUEBOX_NOT_SET is not set; export it or write the value here", NULL},
    {"broken variable", "database: {user: duebox, name: \"a${1x}\"}\n",
     "@/duebox.yaml:1:32: \"${\" must be followed by NAME}; write \"$${\" for the characters \"${\"", NULL},

    /* database */
    {"no user", "database: {name: shop}\n",
     "@/duebox.yaml:1:1: database: \"user\" must be given: user that the daemon logs in as", NULL},
    {"empty section", "database:\n",
     "@/duebox.yaml:1:1: database: its keys must be given: database: {socket: /run/mysqld/mysqld.sock, user: duebox, "
     "password_file: db.secret, name: shop}",
     NULL},
    {"list for a section", "database: [a]\n",
     "@/duebox.yaml:1:11: database: must be a map of keys and values, not a list", NULL},
    {"port no number", "database: {user: duebox, name: shop, port: 33o6}\n",
     "@/duebox.yaml:1:44: database.port: \"33o6\" is not a whole number; write digits only, such as 25", NULL},
    {"port too large", "database: {user: duebox, name: shop, port: 70000}\n",
     "@/duebox.yaml:1:44: database.port: 70000 is too large; the largest is 65535", NULL},
    {"port zero", "database: {user: duebox, name: shop, port: 0}\n",
     "@/duebox.yaml:1:44: database.port: 0 is too small; the smallest is 1", NULL},
    {"key without value", "database:\n  user:\n  name: shop\n",
     "@/duebox.yaml:2:8: database.user: has no value; write one, \"\" for an empty text, or remove the key", NULL},
    {"list for a text", "database: {user: [a, b], name: shop}\n",
     "@/duebox.yaml:1:18: database.user: must be one value, not a list", NULL},
    {"map for a text", "database: {user: {a: b}, name: shop}\n",
     "@/duebox.yaml:1:18: database.user: must be one value, not a map", NULL},
    {"host and socket", "database: {user: duebox, name: shop, host: localhost, socket: /run/s}\n",
     "@/duebox.yaml:1:63: database.socket: host is given too; keep one of the two", NULL},
    {"schema name", "database: {user: duebox, name: \"a b\"}\n",
     "@/duebox.yaml:1:32: database.name: \"a b\" is no schema name; it has 1 to 64 letters, digits, \"_\", \"$\" or "
     "\"-\"",
     NULL},
    {"table name", "database: {user: duebox, name: shop, table: out-box}\n",
     "@/duebox.yaml:1:45: database.table: \"out-box\" is no table name; it has 1 to 48 letters, digits or \"_\"", NULL},
    {"plaintext", "database: {user: duebox, name: shop, host: db.example}\n",
     "@/duebox.yaml:1:44: database.host: db.example is another machine and tls is off: passwords and payloads would "
     "cross the network readable; set tls: true (with tls_ca), or allow_plaintext: true",
     NULL},
    {"tls_ca alone", "database: {user: duebox, name: shop, tls_ca: ca.pem}\n",
     "@/duebox.yaml:1:46: database.tls_ca: has no effect without tls: true; add it", NULL},
    {"boolean", "database: {user: duebox, name: shop, tls: maybe}\n",
     "@/duebox.yaml:1:43: database.tls: \"maybe\" is neither true nor false; write true or false", NULL},
    {"migrate password alone", "database: {user: duebox, name: shop, migrate_password: x}\n",
     "@/duebox.yaml:1:11: database: migrate_password needs migrate_user; add it", NULL},
    {"duration without unit", "database: {user: duebox, name: shop, read_timeout: 30}\n",
     "@/duebox.yaml:1:52: database.read_timeout: \"30\" has no unit; write 30s for seconds or 30ms for milliseconds",
     NULL},
    {"duration unit", "database: {user: duebox, name: shop, read_timeout: 30sec}\n",
     "@/duebox.yaml:1:52: database.read_timeout: \"30sec\" is not a duration; the units are ms, s, m, h and d, as in "
     "250ms, 30s, 15m",
     NULL},
    {"duration too short", "database: {user: duebox, name: shop, read_timeout: 10ms}\n",
     "@/duebox.yaml:1:52: database.read_timeout: 10ms is too small; the smallest is 1s", NULL},

    /* secrets */
    {"secret missing", "database: {user: duebox, name: shop, password_file: no.secret}\n",
     "@/duebox.yaml:1:53: database.password_file: @/no.secret cannot be read: No such file or directory", NULL},
    {"secret open to all", "database: {user: duebox, name: shop, password_file: open.secret}\n",
     "@/duebox.yaml:1:53: database.password_file: @/open.secret may be used by other users (mode 0644); run: chmod 600 "
     "@/open.secret",
     NULL},
    {"secret empty", "database: {user: duebox, name: shop, password_file: empty.secret}\n",
     "@/duebox.yaml:1:53: database.password_file: @/empty.secret is empty; write the secret into it", NULL},
    {"secret is a folder", "database: {user: duebox, name: shop, password_file: conf.d}\n",
     "@/duebox.yaml:1:53: database.password_file: @/conf.d is not a file; name a regular file there", NULL},
    {"secret twice", "database: {user: duebox, name: shop, password: x, password_file: db.secret}\n",
     "@/duebox.yaml:1:51: database.password_file: \"password\" is given too, at line 1; keep one of the two", NULL},
    {"no credentials", "database: {user: duebox, name: shop, password_file: \"credential:db\"}\n",
     "@/duebox.yaml:1:53: database.password_file: CREDENTIALS_DIRECTORY is not set; add "
     "LoadCredential=db:/path/to/secret to the service",
     NULL},
    {"secret key misspelt", "database: {user: duebox, name: shop, pasword_file: db.secret}\n",
     "@/duebox.yaml:1:38: database.pasword_file: unknown key; did you mean \"password_file\"?", NULL},

    /* engine, admin, log */
    {"engine key", DB "engine: {leese: 10s}\n",
     "@/duebox.yaml:2:10: engine.leese: unknown key; did you mean \"lease\"?", NULL},
    {"size unit", DB "engine: {max_payload: 1Mb}\n",
     "@/duebox.yaml:2:23: engine.max_payload: \"1Mb\" is not a size; the units are B, KB, MB, GB (1000) and KiB, MiB, "
     "GiB (1024)",
     NULL},
    {"size too large", DB "engine: {max_payload: 2GiB}\n",
     "@/duebox.yaml:2:23: engine.max_payload: 2GiB is too large; the largest is 1GiB", NULL},
    {"poll order", DB "engine: {poll_min: 1s}\n",
     "@/duebox.yaml:2:20: engine.poll_min: poll_min is longer than poll_max; swap them", NULL},
    {"poll mode", DB "engine: {poll_mode: fixed-rat}\n",
     "@/duebox.yaml:2:21: engine.poll_mode: \"fixed-rat\" is not a choice; did you mean \"fixed-rate\"?", NULL},
    {"instance name", DB "engine: {instance: \"a b\"}\n",
     "@/duebox.yaml:2:20: engine.instance: \"a b\" is no instance name; it has 1 to 64 letters, digits or one of _ . : "
     "@ / -",
     NULL},
    {"log level", DB "log: {level: loud}\n",
     "@/duebox.yaml:2:14: log.level: \"loud\" is not a choice; choose one of: error, warn, info, debug", NULL},
    {"listen without port", DB "admin: {listen: localhost}\n",
     "@/duebox.yaml:2:17: admin.listen: \"localhost\" is no address with port; write it as 127.0.0.1:8321 or "
     "[::1]:8321, or off",
     NULL},
    {"listen name", DB "admin: {listen: \"me.example:80\"}\n",
     "@/duebox.yaml:2:17: admin.listen: \"me.example:80\" is no address with port; write it as 127.0.0.1:8321 or "
     "[::1]:8321, or off",
     NULL},
    {"listen port", DB "admin: {listen: \"127.0.0.1:0\"}\n",
     "@/duebox.yaml:2:17: admin.listen: \"127.0.0.1:0\" is no address with port; write it as 127.0.0.1:8321 or "
     "[::1]:8321, or off",
     NULL},
    {"listen to all", DB "admin: {listen: \"0.0.0.0:8321\"}\n",
     "@/duebox.yaml:2:17: admin.listen: 0.0.0.0:8321 is reachable from other machines and there is no token; add "
     "token_file, or listen on 127.0.0.1",
     NULL},
    {"listen to all v6", DB "admin: {listen: \"[::]:8321\"}\n",
     "@/duebox.yaml:2:17: admin.listen: [::]:8321 is reachable from other machines and there is no token; add "
     "token_file, or listen on 127.0.0.1",
     NULL},
    {"short token", DB "admin: {token: geheim}\n",
     "@/duebox.yaml:2:16: admin.token: the token is shorter than 16 characters; make one with: openssl rand -hex 32",
     NULL},
    {"one port for both",
     DB "admin: {listen: \"127.0.0.1:8321\", token: 0123456789abcdef}\ncallbacks: {listen: \"127.0.0.1:8321\"}\n",
     "@/duebox.yaml:3:21: callbacks.listen: port 8321 is that of admin.listen; consumers answer on a port of their "
     "own, such as 8322",
     NULL},
    {"one port by name and by address",
     DB "admin: {listen: \"localhost:8321\", token: 0123456789abcdef}\ncallbacks: {listen: \"[::1]:8321\"}\n",
     "@/duebox.yaml:3:21: callbacks.listen: port 8321 is that of admin.listen; consumers answer on a port of their "
     "own, such as 8322",
     NULL},
    {"callbacks within admin's addresses",
     DB "admin: {listen: \"0.0.0.0:65535\", token: 0123456789abcdef}\ncallbacks: {listen: \"127.0.0.1:65535\"}\n",
     "@/duebox.yaml:3:21: callbacks.listen: port 65535 is that of admin.listen; consumers answer on a port of their "
     "own, such as 65534",
     NULL},
    {"admin within callbacks' addresses",
     DB "admin: {listen: \"[::1]:8321\", token: 0123456789abcdef}\ncallbacks: {listen: \"[::0]:8321\"}\n",
     "@/duebox.yaml:3:21: callbacks.listen: port 8321 is that of admin.listen; consumers answer on a port of their "
     "own, such as 8322",
     NULL},
    {"all of IPv6 are all",
     DB "admin: {listen: \"127.0.0.1:8321\", token: 0123456789abcdef}\ncallbacks: {listen: \"[::]:8321\"}\n",
     "@/duebox.yaml:3:21: callbacks.listen: port 8321 is that of admin.listen; consumers answer on a port of their "
     "own, such as 8322",
     NULL},
    {"callbacks unsigned", DB "callbacks: {listen: \"127.0.0.1:8322\"}\n",
     "@/duebox.yaml:2:21: callbacks.listen: callback URLs must be signed; add secret_file, or a token to admin", NULL},
    {"callbacks secret", DB "callbacks: {listen: \"127.0.0.1:8322\", secret: x}\n",
     "@/duebox.yaml:2:47: callbacks.secret: the secret is shorter than 16 characters; make one with: openssl rand -hex "
     "32",
     NULL},
    {"callbacks told no address", DB "callbacks: {listen: \"0.0.0.0:8322\", secret: 0123456789abcdef}\n",
     "@/duebox.yaml:2:21: callbacks.listen: 0.0.0.0:8322 is every address of this machine and none that consumers "
     "reach; add base_url, such as http://duebox.example:8322",
     NULL},
    {"callbacks told no address of IPv6", DB "callbacks: {listen: \"[::0]:8322\", secret: 0123456789abcdef}\n",
     "@/duebox.yaml:2:21: callbacks.listen: [::0]:8322 is every address of this machine and none that consumers "
     "reach; add base_url, such as http://duebox.example:8322",
     NULL},
    {"callbacks url", DB "callbacks: {listen: \"127.0.0.1:8322\", secret: 0123456789abcdef, base_url: x}\n",
     "@/duebox.yaml:2:75: callbacks.base_url: \"x\" is no URL; it begins with http:// or https://", NULL},
    {"callbacks query",
     DB "callbacks: {listen: \"127.0.0.1:8322\", secret: 0123456789abcdef, base_url: http://x/y?z}\n",
     "@/duebox.yaml:2:75: callbacks.base_url: \"http://x/y?z\" is not what a URL begins with; write it as "
     "https://host:port/path, without ? and #, blanks or control characters",
     NULL},
    {"admin url", DB "admin: {url: \"duebox.example\"}\n",
     "@/duebox.yaml:2:14: admin.url: \"duebox.example\" is no URL; it begins with http:// or https://", NULL},

    /* plugins */
    {"plugins no map", DB "plugins: [a]\n", "@/duebox.yaml:2:10: plugins: must be a map from names to their keys",
     NULL},
    {"plugin no map", DB "plugins: {bus: kafka}\n", "@/duebox.yaml:2:16: plugins.bus: must be a map of keys and values",
     NULL},
    {"no module", DB "plugins: {bus: {}}\n",
     "@/duebox.yaml:2:11: plugins.bus: \"module\" must be given: the plugin module: kafka, amqp, http or a path", NULL},
    {"module as list", DB "plugins: {bus: {module: [a]}}\n",
     "@/duebox.yaml:2:25: plugins.bus.module: must be the plugin module: kafka, amqp, http or a path", NULL},
    {"module path", DB "plugins: {bus: {module: ./null.so}}\n",
     "@/duebox.yaml:2:25: plugins.bus.module: \"./null.so\" is neither a module's name nor an absolute path; write "
     "kafka, amqp, http or /path/to/plugin.so",
     NULL},
    {"module absent", DB "plugins: {bus: {module: /nowhere/x.so}}\n",
     "@/duebox.yaml:2:25: plugins.bus.module: /nowhere/x.so: No such file or directory", NULL},
    {"plugin name", DB "plugins: {\"a b\": {module: \"null\"}}\n",
     "@/duebox.yaml:2:11: plugins.a b: a plugin's name has 1 to 32 letters, digits, \"_\", \"-\" or \".\"", NULL},
    {"plugin key", DB "plugins: {bus: {module: \"null\", dealy: 5s}}\n",
     "@/duebox.yaml:2:33: plugins.bus.dealy: unknown key; did you mean \"delay\"?", NULL},
    {"plugin check", DB "plugins: {bus: {module: \"null\", fail_every: 3}}\n",
     "@/duebox.yaml:2:11: plugins.bus: fail_every has no effect with outcome: delivered; choose another outcome", NULL},
    {"map option", DB "plugins: {bus: {module: \"null\", settings: x}}\n",
     "@/duebox.yaml:2:43: plugins.bus.settings: must be a map of keys and values, not \"x\"", NULL},
    {"list for a map option", DB "plugins: {bus: {module: \"null\", settings: [x]}}\n",
     "@/duebox.yaml:2:43: plugins.bus.settings: must be a map of keys and values, not a list", NULL},
    {"nested map option", DB "plugins: {bus: {module: \"null\", settings: {a: {b: c}}}}\n",
     "@/duebox.yaml:2:47: plugins.bus.settings.a: must be one value, not a map", NULL},

    /* routes */
    {"route without via", BUS "routes: {a: {topic: t}}\n",
     "@/duebox.yaml:3:10: routes.a: \"via\" must be given: the name of an entry under plugins", NULL},
    {"route no map", BUS "routes: {a: bus}\n", "@/duebox.yaml:3:13: routes.a: must be a map of keys and values", NULL},
    {"unknown via", BUS "routes: {a: {via: buss}}\n",
     "@/duebox.yaml:3:19: routes.a.via: there is no plugin \"buss\"; did you mean \"bus\"?", NULL},
    {"far via", BUS "routes: {a: {via: rabbit}}\n",
     "@/duebox.yaml:3:19: routes.a.via: there is no plugin \"rabbit\"; define it under plugins", NULL},
    {"route name", BUS "routes: {\"a b\": {via: bus}}\n",
     "@/duebox.yaml:3:10: routes.a b: a route's name has 1 to 64 letters, digits or one of _ . : / -, and begins with "
     "a letter or digit",
     NULL},
    {"route key", BUS "routes: {orders.cancel: {via: bus, topc: t}}\n",
     "@/duebox.yaml:3:36: routes.orders.cancel.topc: unknown key; did you mean \"topic\"?", NULL},
    {"route key of the core", BUS "routes: {a: {via: bus, concurency: 3}}\n",
     "@/duebox.yaml:3:24: routes.a.concurency: unknown key; did you mean \"concurrency\"?", NULL},
    {"two routes", BUS "routes:\n  a: {via: bus}\n  b: {via: bus}\n  a: {via: bus}\n",
     "@/duebox.yaml:6:3: routes.a: this key was given before, at line 4 column 3; remove one of them", NULL},
    {"two routes in two files", BUS "routes: {a: {via: bus}}\n",
     "@/conf.d/10.yaml:2:3: routes.a: is defined in @/duebox.yaml:3:10 too; remove one of them",
     "routes:\n  a: {via: bus}\n"},
    {"two plugins in two files", BUS,
     "@/conf.d/10.yaml:1:11: plugins.bus: is defined in @/duebox.yaml:2:11 too; remove one of them",
     "plugins: {bus: {module: \"null\"}}\n"},
    {"bad drop-in", BUS, "@/conf.d/10.yaml:1:10: log.x: unknown key; known keys here: level, format",
     "log: {   x: 1}\n"},
    {"template", BUS "routes: {a: {via: bus, topic: t, key: \"{taskkey}\"}}\n",
     "@/duebox.yaml:3:39: routes.a.key: unknown placeholder {taskkey}; did you mean {task_key}?", NULL},
    {"template brace", BUS "routes: {a: {via: bus, topic: t, key: \"{task_key\"}}\n",
     "@/duebox.yaml:3:39: routes.a.key: \"{\" is not closed; write \"{{\" for a brace that is meant literally", NULL},
    {"route check", BUS "routes: {a: {via: bus, key: x}}\n",
     "@/duebox.yaml:3:10: routes.a: key has no effect without topic; add it or remove key", NULL},
    {"rate", BUS "routes: {a: {via: bus, rate: 100}}\n",
     "@/duebox.yaml:3:30: routes.a.rate: \"100\" is not a rate; write 100/s, 100/m or 100/h", NULL},
    {"rate text", BUS "routes: {a: {via: bus, rate: fast}}\n",
     "@/duebox.yaml:3:30: routes.a.rate: \"fast\" is not a rate; write 100/s, 6000/m or 10/h, or 0 for no limit", NULL},
    {"timeout too long", BUS "routes: {a: {via: bus, timeout: 60d}}\n",
     "@/duebox.yaml:3:33: routes.a.timeout: 60d is too large; the largest is 30d", NULL},
    {"for ever", BUS "routes: {a: {via: bus, max_attempts: 0, give_up: 0}}\n",
     "@/duebox.yaml:3:50: routes.a.give_up: without a limit on attempts (max_attempts: 0) and on age (give_up: 0) a "
     "task would be retried for ever; set one of them",
     NULL},
    {"no source", BUS "routes: {a: {via: bus, result: expected}}\n",
     "@/duebox.yaml:3:32: routes.a.result: nothing receives the answers: no entry of results reads via \"bus\"; add "
     "one, or say with reply_to where consumers answer",
     NULL},
    {"result word", BUS "routes: {a: {via: bus, result: yes}}\n",
     "@/duebox.yaml:3:32: routes.a.result: \"yes\" is not a choice; choose one of: none, expected", NULL},

    /* retry */
    {"retry no map", BUS "routes: {a: {via: bus, retry: 5s}}\n",
     "@/duebox.yaml:3:31: routes.a.retry: must be a map of keys and values, not a single value", NULL},
    {"retry key", BUS "routes: {a: {via: bus, retry: {level: 5s}}}\n",
     "@/duebox.yaml:3:32: routes.a.retry.level: unknown key; did you mean \"levels\"?", NULL},
    {"retry level", BUS "routes: {a: {via: bus, retry: {levels: [5s, 1]}}}\n",
     "@/duebox.yaml:3:45: routes.a.retry.levels[1]: \"1\" has no unit; write 1s for seconds or 1ms for milliseconds",
     NULL},
    {"retry no levels", BUS "routes: {a: {via: bus, retry: {levels: []}}}\n",
     "@/duebox.yaml:3:40: routes.a.retry.levels: is empty; list at least one wait, or use max_attempts: 1", NULL},
    {"levels and backoff", BUS "routes: {a: {via: bus, retry: {levels: [5s], backoff: 1s}}}\n",
     "@/duebox.yaml:3:55: routes.a.retry.backoff: levels are given too; keep one of the two", NULL},
    {"multiplier alone", BUS "routes: {a: {via: bus, retry: {multiplier: 3}}}\n",
     "@/duebox.yaml:3:44: routes.a.retry.multiplier: has no effect without backoff; add it or remove this", NULL},
    {"multiplier below 1", BUS "routes: {a: {via: bus, retry: {backoff: 1s, multiplier: 0.5}}}\n",
     "@/duebox.yaml:3:57: routes.a.retry.multiplier: must be from 1 to 100", NULL},
    {"jitter", BUS "routes: {a: {via: bus, retry: {jitter: 20}}}\n",
     "@/duebox.yaml:3:40: routes.a.retry.jitter: must be from 0 to 1", NULL},
    {"jitter word", BUS "routes: {a: {via: bus, retry: {jitter: 20%}}}\n",
     "@/duebox.yaml:3:40: routes.a.retry.jitter: \"20%\" is not a number; write it as 2 or 0.25, with at most 15 "
     "digits",
     NULL},

    /* results and alerts */
    {"results no list", BUS "results: {via: bus}\n",
     "@/duebox.yaml:3:10: results: must be a list, each entry beginning with \"- \"", NULL},
    {"result no map", BUS "results: [bus]\n", "@/duebox.yaml:3:11: results[0]: must be a map of keys and values", NULL},
    {"source required", BUS "results: [{via: bus}]\n",
     "@/duebox.yaml:3:11: results[0]: \"topic\" must be given: where consumers answer", NULL},
    {"source key", BUS "results: [{via: bus, topic: r, grup: g}]\n",
     "@/duebox.yaml:3:32: results[0].grup: unknown key; known keys here: via, routes, topic, records", NULL},
    {"no source capability", LONG "results: [{via: hooks, topic: r}]\n",
     "@/duebox.yaml:3:17: results[0].via: the module null_long of \"hooks\" cannot receive results; name another "
     "plugin",
     NULL},
    {"alert kind", BUS "alerts: {ded: {route: a}}\n",
     "@/duebox.yaml:3:10: alerts.ded: unknown key; did you mean \"dead\"?", NULL},
    {"alert without route", BUS "alerts: {dead: {}}\n",
     "@/duebox.yaml:3:10: alerts.dead: \"route\" must be given: route that carries the alert as a task", NULL},
    {"alert route", BUS "routes: {ops.alert: {via: bus}}\nalerts: {dead: {route: ops.alrt}}\n",
     "@/duebox.yaml:4:24: alerts.dead.route: there is no route \"ops.alrt\"; did you mean \"ops.alert\"?", NULL},
    {"alert route name", BUS "alerts: {dead: {route: \"a b\"}}\n",
     "@/duebox.yaml:3:24: alerts.dead.route: \"a b\" is no name of a route", NULL},
};

enum { FINDINGS_MAX = 8192 };

/* Findings as lines. */
static void collect(void *ctx, const char *text) {
  char *lines = ctx;
  size_t used = strlen(lines);
  snprintf(lines + used, FINDINGS_MAX - used, "%s\n", text);
}

static struct config *examine(const struct config_fixture *f, char *lines, struct err *err) {
  char path[256];
  struct config *config;
  lines[0] = '\0';
  snprintf(path, sizeof path, "%s/duebox.yaml", f->folder);
  return config_examine(path, f->modules, collect, lines, &config, err) ? config : NULL;
}

/* What is wrong in one place gives one finding: nothing is said only because of it. */
static void test_row(void **state) {
  const struct row *row = *state;
  struct config_fixture f;
  struct err err = {0}, first = {0};
  char wanted[1026], lines[FINDINGS_MAX];
  assert_int_equal(config_set_up(&f), 0);
  config_write(&f, "duebox.yaml", row->yaml, 0600);
  config_write(&f, "db.secret", "s3cret\n", 0600);
  config_write(&f, "open.secret", "s3cret\n", 0644);
  config_write(&f, "empty.secret", "\n", 0600);
  if (row->dropin)
    config_write(&f, "conf.d/10.yaml", row->dropin, 0600);
  struct config *config = config_try(&f, &err), *examined = examine(&f, lines, &first);
  config_place_text(&f, row->error, wanted, sizeof wanted);
  config_tear_down(&f);
  assert_null(config);
  assert_null(examined);
  assert_string_equal(err.text, wanted);
  assert_string_equal(first.text, wanted);
  strcat(wanted, "\n");
  assert_string_equal(lines, wanted);
}

static void all_that_is_wrong_is_said_at_once(void **state) {
  static const char yaml[] = "database: {user: duebox, name: shop, port: many, password_file: none.secret, tabel: x}\n"
                             "logs: {}\n"
                             "engine: {max_payload: 1Mb, poll_min: 1s}\n"
                             "plugins:\n"
                             "  gone: {module: nada}\n"
                             "  bus: {module: \"null\", nada: 1}\n"
                             "results:\n"
                             "  - {via: bus}\n"
                             "  - {via: bsu, topic: r}\n"
                             "routes:\n"
                             "  x y: {via: bus}\n"
                             "  a: {via: bus, nada: 1, priority: 12, timeout: [1s], retry: {jitter: 20%, nada: 1}}\n"
                             "  b: {via: gone, whatever: 1}\n"
                             "  c: {via: bus, result: expected}\n"
                             "  ops.alert: {via: bus}\n"
                             "alerts: {dead: {route: ops.alrt}}\n";
  static const char *const places[] = {"2:1: logs: ",
                                       "1:78: database.tabel: ",
                                       "1:44: database.port: ",
                                       "1:65: database.password_file: ",
                                       "3:23: engine.max_payload: ",
                                       "5:18: plugins.gone.module: ",
                                       "6:25: plugins.bus.nada: ",
                                       "8:5: results[0]: ",
                                       "9:11: results[1].via: ",
                                       "11:3: routes.x y: ",
                                       "12:17: routes.a.nada: ",
                                       "12:26: routes.a.priority: ",
                                       "12:49: routes.a.timeout: ",
                                       "12:76: routes.a.retry.nada: ",
                                       "12:71: routes.a.retry.jitter: ",
                                       "16:24: alerts.dead.route: "};
  struct config_fixture f;
  struct err err = {0};
  char lines[FINDINGS_MAX], wanted[256], *rest = NULL;
  assert_int_equal(config_set_up(&f), 0);
  config_write(&f, "duebox.yaml", yaml, 0600);
  assert_null(examine(&f, lines, &err));
  config_tear_down(&f);
  assert_memory_equal(lines, err.text, strlen(err.text));
  char *line = strtok_r(lines, "\n", &rest);
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++, line = strtok_r(NULL, "\n", &rest)) {
    snprintf(wanted, sizeof wanted, "%s/duebox.yaml:%s", f.folder, places[i]);
    assert_non_null(line);
    assert_memory_equal(line, wanted, strlen(wanted));
  }
  assert_null(line);
}

/* Whoever may write the configuration decides what code is loaded, so nobody else may. */
static void what_others_may_write_is_refused(void **state) {
  static const unsigned modes[] = {0666, 0660, 0606, 0620};
  static const char minimal[] = "database: {user: u, name: s}\n";
  struct config_fixture f;
  assert_int_equal(config_set_up(&f), 0);
  for (size_t i = 0; i < sizeof modes / sizeof modes[0] * 2; i++) {
    struct err err = {0};
    bool main_file = i % 2;
    config_write(&f, "duebox.yaml", minimal, main_file ? modes[i / 2] : 0644);
    config_write(&f, "conf.d/10.yaml", "log: {level: info}\n", main_file ? 0644 : modes[i / 2]);
    struct config *config = config_try(&f, &err);
    if (config || !strstr(err.text, "may be written by others") || !strstr(err.text, "chmod go-w"))
      fail_msg("mode %o: %s", modes[i / 2], config ? "loaded" : err.text);
  }
  static const unsigned folders[] = {0777, 0775, 0757, 01777};
  char folder[sizeof f.folder + 16];
  config_write(&f, "conf.d/10.yaml", "log: {level: info}\n", 0644);
  config_write(&f, "duebox.yaml", minimal, 0644);
  snprintf(folder, sizeof folder, "%s/conf.d", f.folder);
  for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
    struct err err = {0};
    assert_int_equal(chmod(folder, folders[i]), 0);
    struct config *config = config_try(&f, &err);
    if (config || !strstr(err.text, "conf.d: may be written by others") || !strstr(err.text, "chmod go-w"))
      fail_msg("folder %o: %s", folders[i], config ? "loaded" : err.text);
  }
  assert_int_equal(chmod(folder, 0755), 0);
  config_tear_down(&f);
}

static void expect_refused(const struct config_fixture *f, const char *wanted) {
  struct err err = {0};
  if (config_try(f, &err) || !strstr(err.text, wanted))
    fail_msg("wanted \"%s\", got \"%s\"", wanted, err.text);
}

static void expect_taken(const struct config_fixture *f) {
  struct err err = {0};
  struct config *config = config_try(f, &err);
  if (!config)
    fail_msg("not taken: %s", err.text);
  config_free(&config);
}

/* Whoever can move a file away can put one of his own there: his token, his brokers, his plugins. */
static void what_others_may_swap_is_refused(void **state) {
  static const uid_t stranger = 65534;
  struct config_fixture f;
  char link[128], target[128];
  assert_int_equal(config_set_up(&f), 0);
  config_write(&f, "duebox.yaml", "database: {user: u, name: s, password_file: db.secret}\n", 0644);
  config_write(&f, "db.secret", "geheim\n", 0600);
  assert_int_equal(chmod(f.folder, 0777), 0);
  expect_refused(&f, "run: chmod o-w /tmp/");
  assert_int_equal(chmod(f.folder, 01777), 0);
  expect_taken(&f);
  if (geteuid() == 0) {
    snprintf(link, sizeof link, "%s/conf.d", f.folder);
    snprintf(target, sizeof target, "%s/attic", f.folder);
    assert_int_equal(rename(link, target), 0);
    assert_int_equal(symlink(target, link), 0);
    expect_taken(&f);
    assert_int_equal(lchown(link, stranger, stranger), 0);
    expect_refused(&f, "conf.d belongs to another user (uid 65534) who could point it elsewhere");
    assert_int_equal(unlink(link), 0);
    snprintf(link, sizeof link, "%s/db.secret", f.folder);
    assert_int_equal(chown(link, stranger, stranger), 0);
    expect_refused(&f, "db.secret belongs to another user (uid 65534)");
    assert_int_equal(chmod(f.folder, 0755), 0); /* where root alone can have given it to him: the daemon's user */
    expect_taken(&f);
    assert_int_equal(chown(f.folder, stranger, stranger), 0);
    expect_refused(&f, "belongs to another user (uid 65534) who could swap it");
  }
  config_tear_down(&f);
}

/* Whoever writes a file of authorities says who may pass for the database, a broker or a daemon. */
static void what_others_may_make_us_trust_is_refused(void **state) {
  static const char *const files[] = {
      "database: {user: u, name: s, tls: true, tls_ca: ca.pem}\n",
      "database: {user: u, name: s, server_public_key_file: ca.pem}\n",
      "database: {user: u, name: s}\nadmin: {ca_file: ca.pem}\n",
      "database: {user: u, name: s}\nplugins: {bus: {module: \"null\", ca_file: ca.pem}}\n",
  };
  struct config_fixture f;
  assert_int_equal(config_set_up(&f), 0);
  for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
    config_write(&f, "duebox.yaml", files[i], 0644);
    config_write(&f, "ca.pem", "authorities\n", 0666);
    expect_refused(&f, "ca.pem may be written by others (mode 0666); run: chmod go-w /tmp/");
    config_write(&f, "ca.pem", "authorities\n", 0644);
    expect_taken(&f);
  }
  char path[128];
  snprintf(path, sizeof path, "%s/ca.pem", f.folder);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(mkfifo(path, 0600), 0);
  expect_refused(&f, "ca.pem is not a file; name a regular file there"); /* whoever opens it would wait for ever */
  assert_int_equal(unlink(path), 0);
  assert_int_equal(mkdir(path, 0700), 0);
  expect_refused(&f, "ca.pem is not a file; name a regular file there");
  assert_int_equal(rmdir(path), 0);
  config_write(&f, "ca.pem", "authorities\n", 0644);
  assert_int_equal(chmod(f.folder, 01777), 0); /* it is ours, and nobody can move it away ... */
  expect_taken(&f);
  config_write(&f, "duebox.yaml", "database: {user: u, name: s, tls: true, tls_ca: none.pem}\n", 0644);
  expect_refused(&f, "none.pem: No such file or directory"); /* ... and anybody could make this one */
  assert_int_equal(chmod(f.folder, 0755), 0);
  expect_taken(&f);
  config_tear_down(&f);
}

int main(void) {
  struct CMUnitTest tests[sizeof rows / sizeof rows[0] + 4];
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    tests[i] =
        (struct CMUnitTest){.name = rows[i].name, .test_func = test_row, .initial_state = (void *)(uintptr_t)&rows[i]};
  tests[sizeof rows / sizeof rows[0]] = (struct CMUnitTest)cmocka_unit_test(all_that_is_wrong_is_said_at_once);
  tests[sizeof rows / sizeof rows[0] + 1] = (struct CMUnitTest)cmocka_unit_test(what_others_may_write_is_refused);
  tests[sizeof rows / sizeof rows[0] + 2] = (struct CMUnitTest)cmocka_unit_test(what_others_may_swap_is_refused);
  tests[sizeof rows / sizeof rows[0] + 3] =
      (struct CMUnitTest)cmocka_unit_test(what_others_may_make_us_trust_is_refused);
  unsetenv("CREDENTIALS_DIRECTORY");
  unsetenv("DUEBOX_NOT_SET");
  return cmocka_run_group_tests(tests, NULL, NULL);
}
