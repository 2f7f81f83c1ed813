/* SPDX-License-Identifier: MIT
 *
 * admin/admin.c - life of the listener: check, start, stop.
 *
 * Everything here runs on the main thread. Requests are exchange.c's; what they mean is decided by the handlers.
 */
#include "admin/admin.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "admin/server.h"
#include "core/base/log.h"

struct engine *admin_engine(const struct admin *admin) {
  return admin->engine;
}
const struct admin_hooks *admin_hooks(const struct admin *admin) { return &admin->hooks; }
uint16_t admin_port(const struct admin *admin) { return admin->port; }

static bool listens_on_loopback(const struct sockaddr *address) {
  if (address->sa_family == AF_INET)
    return (ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24) == 127;
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

static bool resolve(const char *section, const char *host, uint16_t number, struct addrinfo **out, struct err *err) {
  struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
  char port[8];
  snprintf(port, sizeof(port), "%u", number);
  int rc = getaddrinfo(host, port, &hints, out);
  return rc == 0 || err_set(err, 0, "%s.listen: %s cannot be resolved: %s", section, host, gai_strerror(rc));
}

bool admin_check(const struct admin_config *config, struct err *err) {
  struct auth auth;
  struct addrinfo *address;
  if (!auth_init(&auth, config, err) || !resolve("admin", config->host, config->port, &address, err))
    return false;
  bool safe = config->token || listens_on_loopback(address->ai_addr);
  freeaddrinfo(address);
  return safe || err_set(err, 0,
                         "admin.listen: %s can be reached from other machines, which needs admin.token_file; "
                         "set it, or listen on 127.0.0.1",
                         config->host);
}

static int open_socket(const char *section, const char *host, uint16_t port, struct err *err) {
  struct addrinfo *address;
  if (!resolve(section, host, port, &address, err))
    return -1;
  int yes = 1, fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  bool open = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
              bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0;
  int error = errno;
  freeaddrinfo(address);
  if (open)
    return fd;
  if (fd >= 0)
    close(fd);
  err_set(err, error, "%s.listen: cannot listen on %s port %u: %s%s", section, host, port, strerror(error),
          error == EADDRINUSE ? "; another program listens there, another daemon perhaps, or this one's own "
                                "other listener (`ss -tlnp` names it); give this one another port"
                              : "");
  return -1;
}

static uint16_t bound_port(int fd) {
  union {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
  } address = {0};
  socklen_t len = sizeof(address);
  if (getsockname(fd, &address.any, &len) != 0)
    return 0;
  return ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
}

/* Paths stay encoded until the router has cut them into segments. */
static size_t keep_encoded(void *cls, struct MHD_Connection *connection, char *text) { return strlen(text); }

static void log_library(void *cls, const char *format, va_list args) PRINTF(2, 0);
static void log_library(void *cls, const char *format, va_list args) {
  char text[512];
  vsnprintf(text, sizeof(text), format, args);
  text[strcspn(text, "\n")] = '\0';
  log_debug("DUEBOX-ADMIN-HTTPD", "%s", text);
}

/* The listening socket belongs to the daemon from here on, or is closed. */
static bool start_daemon(struct admin *admin, int fd, size_t connections, struct err *err) {
  admin->daemon = MHD_start_daemon(
      MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC, 0, NULL, NULL,
      exchange_step, admin, MHD_OPTION_EXTERNAL_LOGGER, log_library, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
      MHD_OPTION_CONNECTION_LIMIT, (unsigned)connections, MHD_OPTION_CONNECTION_TIMEOUT,
      (unsigned)(SERVER_STEP_MS / 1000), MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_HEADER_MAX * 2,
      MHD_OPTION_NOTIFY_COMPLETED, exchange_completed, admin, MHD_OPTION_NOTIFY_CONNECTION, exchange_connection, admin,
      MHD_OPTION_UNESCAPE_CALLBACK, keep_encoded, NULL, MHD_OPTION_END);
  if (admin->daemon)
    return true;
  close(fd);
  return err_set(err, 0, "admin.listen: the HTTP library cannot start; raise the limits of threads and open files");
}

static struct admin *new_admin(struct engine *engine) {
  struct admin *admin = calloc(1, sizeof(*admin));
  if (!admin)
    return NULL;
  admin->engine = engine;
  pthread_mutex_init(&admin->lock, NULL);
  pthread_cond_init(&admin->idle, NULL);
  outbox_names_init(&admin->outbox_names, admin);
  return admin;
}

static bool start(struct admin *admin, const char *section, const char *host, uint16_t port, struct err *err) {
  struct rlimit files;
  size_t connections = server_connections(getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur : UINT64_MAX);
  int fd;
  if (!minder_start(connections / 4, &admin->minder, err) || !pool_start(connections, &admin->pool, err) ||
      (fd = open_socket(section, host, port, err)) < 0)
    return false;
  admin->port = bound_port(fd);
  return start_daemon(admin, fd, connections, err);
}

bool admin_start(struct engine *engine, const struct admin_config *config, const struct admin_hooks *hooks,
                 struct admin **out, struct err *err) {
  *out = NULL;
  struct admin *admin = new_admin(engine);
  if (!admin)
    return err_set(err, 0, "admin: out of memory");
  admin->hooks = *hooks;
  if (!admin_check(config, err) || !auth_init(&admin->auth, config, err) ||
      !start(admin, "admin", config->host, config->port, err)) {
    admin_stop(&admin);
    return false;
  }
  log_info("DUEBOX-ADMIN-LISTEN", "API, metrics and page are served host=%s port=%u commands=%s", config->host,
           admin->port, admin->auth.has_token ? "token" : "off");
  *out = admin;
  return true;
}

bool admin_start_callbacks(struct engine *engine, const struct callbacks_config *config, struct admin **out,
                           struct err *err) {
  *out = NULL;
  struct admin *admin = new_admin(engine);
  if (!admin)
    return err_set(err, 0, "callbacks: out of memory");
  admin->callbacks = true;
  if (!start(admin, "callbacks", config->host, config->port, err)) {
    admin_stop(&admin);
    return false;
  }
  log_info("DUEBOX-CALLBACKS-LISTEN", "consumers may answer here host=%s port=%u", config->host, admin->port);
  *out = admin;
  return true;
}

/* Lets answers that are ready go out before their connections are closed. */
static void say_farewell(struct admin *admin) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += SERVER_FAREWELL_MS / 1000;
  pthread_mutex_lock(&admin->lock);
  while (admin->open > 0 && pthread_cond_timedwait(&admin->idle, &admin->lock, &until) == 0)
    continue;
  pthread_mutex_unlock(&admin->lock);
}

void admin_stop(struct admin **admin) {
  struct admin *a = *admin;
  if (!a)
    return;
  atomic_store(&a->stopping, true);
  int fd = a->daemon ? MHD_quiesce_daemon(a->daemon) : -1;
  if (fd >= 0)
    shutdown(fd, SHUT_RDWR); /* nobody is let in; its number stays taken as long as the library may look at it */
  if (a->pool)
    pool_stop(a->pool);
  if (a->daemon) {
    minder_release(a->minder);
    say_farewell(a);
    MHD_stop_daemon(a->daemon); /* no connection is suspended any more: pool and minder have resumed them all */
  }
  if (fd >= 0)
    close(fd);
  pool_free(&a->pool);
  minder_stop(&a->minder);
  outbox_names_destroy(&a->outbox_names);
  pthread_cond_destroy(&a->idle);
  pthread_mutex_destroy(&a->lock);
  free(a);
  *admin = NULL;
}
