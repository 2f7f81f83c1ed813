/* SPDX-License-Identifier: MIT
 *
 * plugins/http where no request may leave: no connection, no trust, a refused address. Nothing is sent then, no attempt
 * is burnt, and the text says why. And the ways in that an operator opens: client certificates, networks.
 */
#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "plugins/http/http_lookup.h"
#include "plugins/http/http_resolver.h"
#include "tests/contract/hostile_server.h"
#include "tests/contract/http_case.h"

static struct hostile_server *server;

/* ---- nothing sent ---- */

struct unreachable {
  const char *scheme, *host, *listener;
  const char *error_class, *text;
};

static void check_unavailable(const struct http_options *o, const struct unreachable *u) {
  struct fake_host *host = http_case_open(o);
  char url[HTTP_CASE_URL];
  struct http_route route =
      http_case_route(u->scheme, u->host, u->listener ? hostile_server_port(server, u->listener) : 1, "/ok", url);
  struct fake_outcome outcome = http_case_send(host, &route, 15000);
  if (outcome.cls != DUEBOX_UNAVAILABLE || outcome.scope != DUEBOX_SCOPE_ROUTE ||
      strcmp(outcome.error_class, u->error_class) != 0 || (u->text && !strstr(outcome.message, u->text)))
    fail_msg("%s: class %d, scope %d, \"%s\": %s", url, (int)outcome.cls, (int)outcome.scope, outcome.error_class,
             outcome.message);
  assert_int_equal(hostile_server_copies(server, outcome.message_id), 0);
  fake_host_free(host);
}

static void without_a_connection_nothing_is_burnt(void **state) {
  char *ca = strdup(hostile_server_file(server, "ca.pem"));
  struct http_options o = http_case_options();
  o.ca_file = ca;
  const struct unreachable rows[] = {
      {"http", "127.0.0.1", NULL, "http.connect", "nothing was sent"}, /* port 1 */
      {"http", "no-such-host.invalid", "plain", "http.dns", "no-such-host.invalid"},
      {"https", "127.0.0.1", "wronghost", "http.tls", "127.0.0.1"},
      {"https", "localhost", "wronghost", "http.tls", NULL},
      {"https", "127.0.0.1", "expired", "http.tls", "expired"},
      {"https", "127.0.0.1", "future", "http.tls", "not yet valid"},
      {"https", "127.0.0.1", "selfsigned", "http.tls", "self-signed"},
      {"https", "127.0.0.1", "tls11", "http.tls", NULL},
      {"https", "127.0.0.1", "plain", "http.timeout", NULL}, /* a plain port waits for a request */
      {"https", "127.0.0.1", "mutual12", "http.tls", NULL},
      {"https", "127.0.0.1", "cut", "http.tls", NULL},
      {"https", "127.0.0.1", "finite-field", "http.tls", "finite-field Diffie-Hellman (DHE, ffdhe) is not used"},
      {"https", "127.0.0.1", "finite-field-13", "http.tls", "must offer ECDHE (X25519 or P-256)"},
      {"https", "127.0.0.1", "own-curves", "http.tls", "let it be issued with a named curve"},
      {"https", "127.0.0.1", "own-curve-13", "http.tls", "let it be issued with a named curve"},
      {"https", "127.0.0.1", "many-certificates", "http.tls", "more than 10 certificates, or 32 KiB"},
      {"https", "127.0.0.1", "large-certificates", "http.tls", "more than 10 certificates, or 32 KiB"},
      {"https", "127.0.0.1", "silent", "http.timeout", "nothing was sent"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    /* Short where the time-out is what is tested; otherwise it must not come first on a busy machine. */
    o.connect_timeout_ms = strcmp(rows[i].error_class, "http.timeout") == 0 ? 500 : 10000;
    check_unavailable(&o, &rows[i]);
  }
  o.connect_timeout_ms = 10000;
  o.ca_file = NULL; /* the system knows nothing of the test's authority */
  check_unavailable(&o, &(struct unreachable){"https", "127.0.0.1", "good", "http.tls", "certificate"});
  free(ca);
}

/* Stands in front of the C library's: a name that a resolver does not answer for, until the test lets it, and one that
 * does not exist, which the machine's own resolver may take any time to find out. */
static pthread_mutex_t resolver = PTHREAD_MUTEX_INITIALIZER;
static atomic_int lookups, under_way, most;

__attribute__((visibility("default"))) int getaddrinfo(const char *node, const char *service,
                                                       const struct addrinfo *hints, struct addrinfo **result) {
  typedef int function(const char *, const char *, const struct addrinfo *, struct addrinfo **);
  if (strstr(node, "silent.invalid") || strcmp(node, "slow.invalid") == 0) {
    int now = atomic_fetch_add(&under_way, 1) + 1;
    if (now > atomic_load(&most))
      atomic_store(&most, now);
    atomic_fetch_add(&lookups, 1);
    pthread_mutex_lock(&resolver);
    pthread_mutex_unlock(&resolver);
    atomic_fetch_sub(&under_way, 1);
    if (strcmp(node, "slow.invalid") != 0)
      return EAI_AGAIN;
    node = "127.0.0.1";
  }
  if (strcmp(node, "no-such-host.invalid") == 0)
    return EAI_NONAME;
  bool two = strcmp(node, "two-addresses.invalid") == 0;
  function *real = (function *)dlsym(RTLD_NEXT, "getaddrinfo");
  int failed = real(two ? "127.0.0.2" : node, service, hints, result);
  return two && !failed ? real("127.0.0.1", service, hints, &(*result)->ai_next) : failed;
}

/* A time-out must not wait for the resolver's thread: all routes of the instance would stand still meanwhile. */
static void a_silent_resolver_holds_nobody_up(void **state) {
  struct http_options o = http_case_options();
  o.connect_timeout_ms = 2000; /* enough for the good one, whose connection is new */
  struct fake_host *host = http_case_open(&o);
  char silent_url[HTTP_CASE_URL], good_url[HTTP_CASE_URL];
  int port = hostile_server_port(server, "plain");
  struct http_route silent = http_case_route("http", "silent.invalid", port, "/ok", silent_url);
  struct http_route good = http_case_route("http", "127.0.0.1", port, "/ok", good_url);
  pthread_mutex_lock(&resolver);
  struct fake_outcome outcome = http_case_send(host, &silent, 0);
  assert_int_equal(outcome.cls, DUEBOX_UNAVAILABLE);
  assert_string_equal(outcome.error_class, "http.timeout");
  assert_int_equal(http_case_send(host, &good, 0).cls, DUEBOX_DELIVERED);
  fake_host_free(host); /* does not wait either */
  pthread_mutex_unlock(&resolver);
}

/* Where few files may be open, lookups are few; as many as the system lets us have, as the daemon does it. */
enum { FEW_FILES = 1024, FEW_NEW = HTTP_LOOKUPS_LEAST - HTTP_LOOKUPS_KNOWN, FEW_UNFOUND = FEW_NEW - HTTP_LOOKUPS_NEW };

static rlim_t allow_files(rlim_t wanted) {
  struct rlimit files;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = wanted < files.rlim_max ? wanted : files.rlim_max;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
  return files.rlim_cur;
}

/* An instance with room for many tasks. */
static struct fake_host *open_wide(const struct http_options *o) {
  extern const struct duebox_plugin duebox_plugin_v1;
  return fake_host_open(&(struct fake_host_config){
      .plugin = &duebox_plugin_v1, .role = DUEBOX_ROLE_SINK, .options = o, .max_inflight = 400});
}

static void add_short(struct fake_host *host, size_t count, const struct http_route *route, uint32_t timeout_ms) {
  for (size_t i = 0; i < count; i++)
    fake_host_add(host, &(struct fake_task){.timeout_ms = timeout_ms, .payload = {"{}", 2}, .route_data = route});
}

static void add(struct fake_host *host, size_t count, const struct http_route *route) {
  add_short(host, count, route, 15000);
}

static bool lookups_begun(void *least) { return atomic_load(&lookups) >= *(int *)least; }
static bool lookups_ended(void *ctx) { return atomic_load(&under_way) == 0; }
static bool all_but_one_completed(void *host) { return fake_host_completed(host) + 1 >= fake_host_tasks(host); }

/* The route to one of any number of names that the resolver does not answer for. Of the test until its end. */
static const struct http_route *silent_route(size_t number) {
  enum { NAMES = 300 };
  static char urls[NAMES][HTTP_CASE_URL];
  static struct http_route routes[NAMES];
  char name[64];
  assert_in_range(number, 0, NAMES - 1);
  snprintf(name, sizeof(name), "%zu.silent.invalid", number);
  routes[number] = http_case_route("http", name, hostile_server_port(server, "plain"), "/ok", urls[number]);
  return &routes[number];
}

/* A task for each of so many of them; the resolver is asked for as many as that of them at least. */
static void offer_silent(struct fake_host *host, size_t count, int asked_for) {
  for (size_t i = 0; i < count; i++)
    add(host, 1, silent_route(i));
  fake_host_offer(host);
  assert_true(fake_host_wait(host, lookups_begun, &asked_for, HTTP_CASE_LIMIT_MS));
}

/* Every lookup is a thread, for as long as the resolver takes: the process may have some hundred of them. */
static void a_silent_resolver_does_not_take_all_threads(void **state) {
  enum { TASKS = 300, NAMES = FEW_NEW + 8 };
  int unfound = FEW_UNFOUND;
  struct http_options o = http_case_options();
  o.connect_timeout_ms = 2000;
  allow_files(FEW_FILES);
  struct fake_host *one = open_wide(&o), *many = open_wide(&o), *other = http_case_open(&o);
  char url[HTTP_CASE_URL], good_url[HTTP_CASE_URL];
  int port = hostile_server_port(server, "plain");
  struct http_route silent = http_case_route("http", "silent.invalid", port, "/ok", url);
  struct http_route good = http_case_route("http", "localhost", port, "/ok", good_url);
  atomic_store(&most, 0);
  pthread_mutex_lock(&resolver);
  add(one, TASKS, &silent);
  assert_true(fake_host_settle(one, HTTP_CASE_LIMIT_MS));
  assert_in_range(atomic_load(&most), 1, 2);
  for (size_t i = 0; i < TASKS; i++) {
    struct fake_outcome outcome = fake_host_outcome(one, i);
    assert_int_equal(outcome.cls, DUEBOX_UNAVAILABLE);
    assert_string_equal(outcome.error_class, "http.timeout");
    assert_non_null(strstr(outcome.message, "Resolving timed out after 2000 milliseconds; nothing was sent"));
  }
  assert_int_equal(http_case_send(one, &good, 0).cls, DUEBOX_DELIVERED);
  for (size_t i = 0; i < NAMES; i++)
    add_short(many, 4, silent_route(i), 3000);
  assert_true(fake_host_settle(many, HTTP_CASE_LIMIT_MS));
  assert_in_range(atomic_load(&most), FEW_NEW, FEW_NEW + 2);
  assert_int_equal(fake_host_count(many, DUEBOX_UNAVAILABLE), NAMES * 4);
  assert_non_null(strstr(fake_host_outcome(many, NAMES * 4 - 1).message, "has not answered for others"));
  assert_int_equal(http_case_send(other, &good, 0).cls, DUEBOX_DELIVERED);
  pthread_mutex_unlock(&resolver);
  assert_true(fake_host_wait(many, lookups_ended, NULL, HTTP_CASE_LIMIT_MS));
  pthread_mutex_lock(&resolver); /* those that were not found do not take all of them once more */
  atomic_store(&lookups, 0);
  for (size_t i = 0; i < FEW_NEW; i++)
    add(many, 1, silent_route(i));
  fake_host_offer(many);
  assert_true(fake_host_wait(many, lookups_begun, &unfound, HTTP_CASE_LIMIT_MS));
  assert_int_equal(http_case_send(many, &good, 0).cls, DUEBOX_DELIVERED);
  assert_int_equal(atomic_load(&lookups), unfound);
  pthread_mutex_unlock(&resolver);
  assert_true(fake_host_settle(many, HTTP_CASE_LIMIT_MS));
  fake_host_free(one);
  fake_host_free(many);
  fake_host_free(other);
}

/* New names without an answer, however many, leave those alone that were found before: another port of such a host is
 * asked for anew, as is any host after a minute. */
static void silent_names_do_not_hold_up_one_that_was_found(void **state) {
  enum { NAMES = 300 };
  struct http_options o = http_case_options();
  char *ca = strdup(hostile_server_file(server, "ca.pem"));
  char plain_url[HTTP_CASE_URL], good_url[HTTP_CASE_URL];
  int plain_port = hostile_server_port(server, "plain");
  struct http_route plain = http_case_route("http", "localhost", plain_port, "/ok", plain_url);
  struct http_route good = http_case_route("https", "localhost", hostile_server_port(server, "good"), "/ok", good_url);
  o.ca_file = ca;
  o.connect_timeout_ms = 10000;
  allow_files(FEW_FILES);
  struct fake_host *host = open_wide(&o);
  assert_int_equal(http_case_send(host, &plain, 0).cls, DUEBOX_DELIVERED);
  atomic_store(&lookups, 0);
  pthread_mutex_lock(&resolver);
  offer_silent(host, NAMES, FEW_NEW);
  struct fake_outcome outcome = http_case_send(host, &good, 0);
  pthread_mutex_unlock(&resolver);
  assert_int_equal(outcome.cls, DUEBOX_DELIVERED);
  assert_true(fake_host_wait(host, lookups_ended, NULL, HTTP_CASE_LIMIT_MS));
  fake_host_free(host);
  free(ca);
}

/* A host that is called for the first time needs no luck while the servers of tens of other new names are dead. And
 * where these take all lookups, its task waits in the queue: nothing is said against a host that nobody has asked for.
 */
static void silent_new_names_do_not_fail_another_new_one(void **state) {
  enum { NAMES = FEW_NEW };
  _Static_assert(NAMES >= 40, "tens of dead names");
  struct http_options o = http_case_options();
  char good_url[HTTP_CASE_URL], slow_url[HTTP_CASE_URL];
  int port = hostile_server_port(server, "plain"), all = NAMES;
  struct http_route good = http_case_route("http", "localhost", port, "/ok", good_url);
  struct http_route slow = http_case_route("http", "slow.invalid", port, "/ok", slow_url);
  o.connect_timeout_ms = 3000;
  allow_files(FEW_FILES);
  struct fake_host *host = open_wide(&o);
  atomic_store(&lookups, 0);
  pthread_mutex_lock(&resolver);
  offer_silent(host, NAMES - 1, NAMES - 1);
  assert_int_equal(http_case_send(host, &good, 0).cls, DUEBOX_DELIVERED);
  add(host, 1, silent_route(NAMES - 1));
  fake_host_offer(host);
  assert_true(fake_host_wait(host, lookups_begun, &all, HTTP_CASE_LIMIT_MS));
  size_t waits = NAMES + 1; /* behind those of the dead names and the good one */
  add_short(host, 1, &slow, 25000);
  add(host, 1, silent_route(0)); /* whose time to connect ends after that of the one before would have */
  fake_host_offer(host);
  assert_true(fake_host_wait(host, all_but_one_completed, host, HTTP_CASE_LIMIT_MS));
  pthread_mutex_unlock(&resolver);
  assert_true(fake_host_settle(host, HTTP_CASE_LIMIT_MS));
  struct fake_outcome outcome = fake_host_outcome(host, waits);
  if (outcome.cls != DUEBOX_DELIVERED)
    fail_msg("class %d: %s", (int)outcome.cls, outcome.message);
  fake_host_free(host);
}

/* After a start no name is known, and those of hundreds of dead servers may stand before another one: it had to wait
 * until the resolver had given up for the first of them, and once more for the next ones. */
static void hundreds_of_silent_names_hold_up_no_new_one(void **state) {
  enum { NAMES = 220 };
  struct http_options o = http_case_options();
  char good_url[HTTP_CASE_URL];
  int port = hostile_server_port(server, "plain");
  struct http_route good = http_case_route("http", "localhost", port, "/ok", good_url);
  if (allow_files(RLIM_INFINITY) < 2 * HTTP_LOOKUPS * HTTP_LOOKUP_FILES)
    skip();
  struct fake_host *host = open_wide(&o);
  atomic_store(&lookups, 0);
  pthread_mutex_lock(&resolver);
  offer_silent(host, NAMES, HTTP_LOOKUPS_AT_ONCE);
  struct fake_outcome outcome = http_case_send(host, &good, 0);
  pthread_mutex_unlock(&resolver);
  if (outcome.cls != DUEBOX_DELIVERED)
    fail_msg("class %d: %s", (int)outcome.cls, outcome.message);
  assert_true(fake_host_wait(host, lookups_ended, NULL, HTTP_CASE_LIMIT_MS));
  fake_host_free(host);
}

/* All who wait for a name go on with the one answer, and end with the one failure. */
static void a_lookup_serves_all_who_wait_for_the_name(void **state) {
  enum { TASKS = 300 };
  struct http_options o = http_case_options();
  o.connect_timeout_ms = 20000;
  char slow_url[HTTP_CASE_URL], silent_url[HTTP_CASE_URL];
  int port = hostile_server_port(server, "plain"), both = 2;
  struct http_route slow = http_case_route("http", "slow.invalid", port, "/ok", slow_url);
  struct http_route silent = http_case_route("http", "silent.invalid", port, "/ok", silent_url);
  struct fake_host *host = open_wide(&o);
  atomic_store(&lookups, 0);
  pthread_mutex_lock(&resolver);
  add(host, TASKS / 2, &slow);
  add(host, TASKS / 2, &silent);
  fake_host_offer(host);
  assert_true(fake_host_wait(host, lookups_begun, &both, HTTP_CASE_LIMIT_MS));
  for (size_t turns = 0; turns < TASKS; turns++) /* some begin in each */
    fake_host_poll(host, 0);
  assert_int_equal(fake_host_completed(host), 0);
  pthread_mutex_unlock(&resolver);
  assert_true(fake_host_settle(host, HTTP_CASE_LIMIT_MS));
  assert_int_equal(atomic_load(&lookups), 2);
  assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED), TASKS / 2);
  struct fake_outcome failed = fake_host_outcome(host, TASKS - 1);
  assert_string_equal(failed.error_class, "http.dns");
  assert_string_equal(failed.message, fake_host_outcome(host, TASKS / 2).message);
  fake_host_free(host);
}

static void a_missing_ca_file_concerns_the_instance(void **state) {
  struct http_options o = http_case_options();
  o.ca_file = "/nonexistent/ca.pem";
  struct fake_host *host = http_case_open(&o);
  char url[HTTP_CASE_URL];
  struct http_route route = http_case_route("https", "127.0.0.1", hostile_server_port(server, "good"), "/ok", url);
  struct fake_outcome outcome = http_case_send(host, &route, 0);
  assert_int_equal(outcome.cls, DUEBOX_UNAVAILABLE);
  assert_int_equal(outcome.scope, DUEBOX_SCOPE_INSTANCE);
  assert_string_equal(outcome.error_class, "http.tls");
  assert_non_null(strstr(outcome.message, "/nonexistent/ca.pem"));
  fake_host_free(host);
}

/* Stands in front of the TLS library's: the folder of the system's authorities is one of the test. */
static const char *system_folder;

int X509_STORE_load_path(void *store, const char *path);
__attribute__((visibility("default"))) int X509_STORE_load_path(void *store, const char *path) {
  typedef int function(void *, const char *);
  return ((function *)dlsym(RTLD_NEXT, "X509_STORE_load_path"))(store, system_folder ? system_folder : path);
}

/* ca_file names whom to trust: an authority that only the system trusts opens nothing then. */
static void copy_file(const char *from, const char *to) {
  char buffer[65536];
  FILE *in = fopen(from, "r"), *out = fopen(to, "w");
  assert_non_null(in);
  assert_non_null(out);
  for (size_t n; (n = fread(buffer, 1, sizeof(buffer), in)) > 0;)
    assert_int_equal(fwrite(buffer, 1, n, out), n);
  fclose(in);
  assert_int_equal(fclose(out), 0);
}

/* An authority that is added to the file counts without a restart. */
static void a_changed_ca_file_is_read(void **state) {
  char path[] = "/tmp/duebox-ca-XXXXXX", url[HTTP_CASE_URL];
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  copy_file("/etc/ssl/certs/ca-certificates.crt", path);
  struct http_options o = http_case_options();
  o.ca_file = path;
  struct http_route route = http_case_route("https", "127.0.0.1", hostile_server_port(server, "good"), "/ok", url);
  struct fake_host *host = http_case_open(&o);
  assert_string_equal(http_case_send(host, &route, 0).error_class, "http.tls");
  copy_file(hostile_server_file(server, "ca.pem"), path);
  struct fake_outcome outcome = http_case_send(host, &route, 0);
  for (int waited_ms = 0; outcome.cls != DUEBOX_DELIVERED && waited_ms < HTTP_CASE_LIMIT_MS; waited_ms += 100) {
    usleep(100 * 1000);
    outcome = http_case_send(host, &route, 0);
  }
  assert_int_equal(outcome.cls, DUEBOX_DELIVERED);
  fake_host_free(host);
  unlink(path);
}

static void ca_file_takes_the_place_of_the_systems_authorities(void **state) {
  char *ca = strdup(hostile_server_file(server, "ca.pem"));
  char *other = strdup(hostile_server_file(server, "selfsigned.pem"));
  char folder[] = "/tmp/duebox-authorities-XXXXXX", command[1024];
  assert_non_null(mkdtemp(folder));
  snprintf(command, sizeof command, "cp %s %s/ca.pem && openssl rehash %s", ca, folder, folder);
  assert_int_equal(system(command), 0);
  system_folder = folder;
  struct http_options o = http_case_options();
  char url[HTTP_CASE_URL];
  struct http_route route = http_case_route("https", "localhost", hostile_server_port(server, "good"), "/ok", url);
  struct fake_host *host = http_case_open(&o);
  assert_int_equal(http_case_send(host, &route, 15000).cls, DUEBOX_DELIVERED); /* the system's are what we think */
  fake_host_free(host);
  o.ca_file = other;
  check_unavailable(&o, &(struct unreachable){"https", "localhost", "good", "http.tls", "certificate"});
  char proxy[64]; /* nor a way through a proxy */
  snprintf(proxy, sizeof proxy, "https://localhost:%d", hostile_server_port(server, "good"));
  o.proxy = proxy;
  check_unavailable(&o, &(struct unreachable){"https", "crm.invalid", "good", "http.tls", "certificate"});
  system_folder = NULL;
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
  free(ca);
  free(other);
}

static void a_client_certificate_opens_the_door(void **state) {
  char *ca = strdup(hostile_server_file(server, "ca.pem"));
  char *cert = strdup(hostile_server_file(server, "client.pem"));
  char *key = strdup(hostile_server_file(server, "client.key"));
  struct http_options o = http_case_options();
  o.ca_file = ca;
  o.client_cert = cert;
  o.client_key = key;
  struct fake_host *host = http_case_open(&o);
  static const char *const listeners[] = {"mutual", "mutual12"};
  for (size_t i = 0; i < 2; i++) {
    char url[HTTP_CASE_URL];
    struct http_route route =
        http_case_route("https", "localhost", hostile_server_port(server, listeners[i]), "/ok", url);
    struct fake_outcome outcome = http_case_send(host, &route, 0);
    if (outcome.cls != DUEBOX_DELIVERED)
      fail_msg("%s: %s", url, outcome.message);
  }
  fake_host_free(host);
  free(ca);
  free(cert);
  free(key);
}

/* ---- addresses ---- */

static void refused_addresses_are_not_connected_to(void **state) {
  static const struct unreachable rows[] = {
      {"http", "127.0.0.1", "plain", "http.address_denied", "loopback address 127.0.0.1"},
      {"http", "2130706433", "plain", "http.address_denied", "allow_private"},
      {"http", "0x7f.1", "plain", "http.address_denied", "loopback address 127.0.0.1"},
      {"http", "0177.0.0.1", "plain", "http.address_denied", "loopback address 127.0.0.1"},
      {"http", "127.1", "plain", "http.address_denied", "loopback address 127.0.0.1"},
      {"http", "0", "plain", "http.address_denied", "special-purpose address 0.0.0.0"},
      {"http", "localhost", "plain", "http.address_denied", "localhost:"},
      {"http", "[::1]", "plain", "http.address_denied", "loopback address ::1"},
      {"http", "[::ffff:127.0.0.1]", "plain", "http.address_denied", "loopback address 127.0.0.1"},
      {"http", "[::ffff:7f00:1]", "plain", "http.address_denied", "loopback address 127.0.0.1"},
      {"http", "[::]", "plain", "http.address_denied", "special-purpose address ::"},
      {"https", "127.0.0.1", "good", "http.address_denied", "loopback address 127.0.0.1"},
  };
  struct http_options o = http_case_options();
  o.allow_private = false;
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    check_unavailable(&o, &rows[i]);
}

static void the_environment_does_not_open_a_way_round(void **state) {
  struct http_options o = http_case_options();
  char proxy[64];
  snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%d", hostile_server_port(server, "plain"));
  setenv("http_proxy", proxy, 1);
  setenv("https_proxy", proxy, 1);
  setenv("ALL_PROXY", proxy, 1);
  o.allow_private = false;
  check_unavailable(&o, &(struct unreachable){"http", "127.0.0.1", "plain", "http.address_denied", NULL});
  check_unavailable(&o, &(struct unreachable){"http", "no-such-host.invalid", "plain", "http.dns", NULL});
  unsetenv("http_proxy");
  unsetenv("https_proxy");
  unsetenv("ALL_PROXY");
}

static void a_listed_network_is_open(void **state) {
  struct http_options o = http_case_options();
  const char *networks[] = {"127.0.0.0/8"};
  o.allow_private = false;
  o.allow_networks = (struct duebox_list){networks, 1};
  struct fake_host *host = http_case_open(&o);
  char url[HTTP_CASE_URL];
  struct http_route route = http_case_route("http", "127.0.0.1", hostile_server_port(server, "plain"), "/ok", url);
  assert_int_equal(http_case_send(host, &route, 0).cls, DUEBOX_DELIVERED);
  fake_host_free(host);
}

/* Of two addresses one is refused, and the other one is merely down: that is no mistake of the configuration. */
static void a_refused_address_does_not_hide_that_another_is_down(void **state) {
  struct http_options o = http_case_options();
  const char *networks[] = {"127.0.0.1"};
  o.allow_private = false;
  o.allow_networks = (struct duebox_list){networks, 1};
  check_unavailable(&o, &(struct unreachable){"http", "two-addresses.invalid", NULL, "http.connect", "nothing was"});
  struct http_route route = {.url = "http://two-addresses.invalid:1/"};
  struct duebox_check check = {.struct_size = sizeof(check), .route = &route}, *checks[] = {&check};
  http_check_targets(&o, checks, 1, 10000);
  assert_int_equal(check.verdict, DUEBOX_CHECK_UNSURE);
  assert_null(strstr(check.text, "refuses to call"));
  o.allow_networks.count = 0;
  check_unavailable(&o, &(struct unreachable){"http", "two-addresses.invalid", NULL, "http.address_denied", NULL});
  http_check_targets(&o, checks, 1, 10000);
  assert_int_equal(check.verdict, DUEBOX_CHECK_WRONG);
}

/* ---- the group ---- */

static int start(void **state) {
  server = hostile_server_start();
  return 0;
}

static int stop(void **state) {
  hostile_server_stop(server);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_a_connection_nothing_is_burnt),
      cmocka_unit_test(a_silent_resolver_holds_nobody_up),
      cmocka_unit_test(a_silent_resolver_does_not_take_all_threads),
      cmocka_unit_test(silent_names_do_not_hold_up_one_that_was_found),
      cmocka_unit_test(silent_new_names_do_not_fail_another_new_one),
      cmocka_unit_test(hundreds_of_silent_names_hold_up_no_new_one),
      cmocka_unit_test(a_lookup_serves_all_who_wait_for_the_name),
      cmocka_unit_test(a_missing_ca_file_concerns_the_instance),
      cmocka_unit_test(a_changed_ca_file_is_read),
      cmocka_unit_test(ca_file_takes_the_place_of_the_systems_authorities),
      cmocka_unit_test(a_client_certificate_opens_the_door),
      cmocka_unit_test(refused_addresses_are_not_connected_to),
      cmocka_unit_test(the_environment_does_not_open_a_way_round),
      cmocka_unit_test(a_listed_network_is_open),
      cmocka_unit_test(a_refused_address_does_not_hide_that_another_is_down),
  };
  return cmocka_run_group_tests_name("http_unreachable", tests, start, stop);
}
