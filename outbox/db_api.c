/* SPDX-License-Identifier: MIT */
#include "outbox/db_api.h"

#include <errmsg.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include <duebox/link.h>

#include "core/base/way.h"
#include "outbox/db_auth.h"
#include "outbox/db_conn.h"
#include "outbox/db_error.h"
#include "outbox/db_watch.h"

#if DB_API_MARIADB
typedef my_bool api_bool;
#else
typedef bool api_bool;
#endif

#if DB_API_MARIADB

/* Exported for the library's own tracing plug-ins; no header has it. The callback follows each read of any connection,
 * on the thread that reads: mode 0 is a read, length what it has given, (size_t)-1 after one that failed. */
int ma_pvio_register_callback(my_bool add,
                              void (*callback)(int mode, MYSQL *mysql, const unsigned char *data, size_t length));

static const char allowance_key[] = "duebox_allowance";

/* The kernel still gives what it has received before a shutdown, and the library would take it. */
static void end_reading(MYSQL *mysql) {
  char away[DB_API_READ_AHEAD];
  db_api_interrupt(mysql);
  while (recv(db_api_socket(mysql), away, sizeof away, MSG_DONTWAIT) > 0)
    continue;
}

static void has_read(int mode, MYSQL *mysql, const unsigned char *data, size_t length) {
  (void)data;
  void *found = NULL;
  if (mode != 0 || (ssize_t)length <= 0 ||
      mysql_get_optionv(mysql, MARIADB_OPT_USERDATA, (void *)(uintptr_t)allowance_key, &found) || !found)
    return;
  struct db_allowance *allowance = found;
  if (length <= allowance->left) {
    allowance->left -= length;
    return;
  }
  allowance->left = 0;
  allowance->exceeded = true;
  end_reading(mysql);
}

void db_api_count(MYSQL *mysql, struct db_allowance *allowance) {
  mysql_optionsv(mysql, MARIADB_OPT_USERDATA, allowance_key, (void *)allowance);
}

/* Each time it is registered it is called once more for a read. */
static pthread_once_t registered = PTHREAD_ONCE_INIT;
static void register_once(void) { (void)ma_pvio_register_callback(1, has_read); } /* fails without a callback only */
static bool count_reads(void) { return pthread_once(&registered, register_once) == 0; }

#else

void db_api_count(MYSQL *mysql, struct db_allowance *allowance) { (void)mysql, (void)allowance; }
static bool count_reads(void) { return true; }

#endif

bool db_api_init(struct err *err) {
  if (mysql_library_init(0, NULL, NULL) || !count_reads())
    return err_set(err, DB_E_NO_MEMORY, "the MySQL client library does not start: out of memory");
  return db_auth_init(err);
}

void db_api_thread(void) { mysql_thread_init(); }

/* Connector/C 3.3 asks for TLS with SSL_ENFORCE alone and then goes on in plaintext when the server offers none; only
 * verification makes it refuse (measured with 3.3.20). Connector/C 3.4 verifies unless told not to. */
static void prepare_tls(MYSQL *mysql, const struct database_config *config) {
#if DB_API_MARIADB
  api_bool on = config->tls;
  mysql_options(mysql, MYSQL_OPT_SSL_ENFORCE, &on);
  mysql_options(mysql, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &on);
  if (config->tls)
    mysql_options(mysql, MARIADB_OPT_TLS_VERSION, "TLSv1.2,TLSv1.3");
#else
  unsigned mode = config->tls ? SSL_MODE_VERIFY_IDENTITY : SSL_MODE_DISABLED;
  mysql_options(mysql, MYSQL_OPT_SSL_MODE, &mode);
  if (config->tls)
    mysql_options(mysql, MYSQL_OPT_TLS_VERSION, "TLSv1.2,TLSv1.3");
#endif
  if (config->tls && config->tls_ca)
    mysql_options(mysql, MYSQL_OPT_SSL_CA, config->tls_ca);
}

static unsigned whole_seconds(int64_t ms) {
  int64_t seconds = (ms + 999) / 1000;
  return seconds < 1 ? 1 : seconds > 3600 ? 3600 : (unsigned)seconds;
}

#if DB_API_MARIADB
/* The library waits by this from connecting on, the only place where it lets its socket be seen during a login. */
static int wait_for_socket(my_socket fd, my_bool is_read, int timeout_ms) {
  struct pollfd waits = {.fd = fd, .events = is_read ? POLLIN : POLLOUT};
  int ready;
  db_watch_socket(fd);
  do {
    ready = poll(&waits, 1, timeout_ms ? timeout_ms : -1);
  } while (ready == -1 && errno == EINTR);
  if (ready == 0)
    errno = ETIMEDOUT;
  return ready;
}
#endif

static void prepare_limits(MYSQL *mysql, const struct database_config *config, bool patient) {
  /* The watch (db_watch.h) has the limit; where it is late, or there is none, the library's own follows. */
  unsigned connect = whole_seconds(config->connect_timeout_ms), io = whole_seconds(config->read_timeout_ms) + 1;
  mysql_options(mysql, MYSQL_OPT_CONNECT_TIMEOUT, &connect);
  if (!patient)
    mysql_options(mysql, MYSQL_OPT_READ_TIMEOUT, &io);
  mysql_options(mysql, MYSQL_OPT_WRITE_TIMEOUT, &io);
#if DB_API_MARIADB
  mysql_optionsv(mysql, MARIADB_OPT_IO_WAIT, wait_for_socket);
#endif
  unsigned long packet = 1024ul * 1024 * 1024;
  mysql_options(mysql, MYSQL_OPT_MAX_ALLOWED_PACKET, &packet);
  /* A server must not be able to ask for files of this machine. */
  unsigned local_infile = 0;
  mysql_options(mysql, MYSQL_OPT_LOCAL_INFILE, &local_infile);
}

/* Before each connection: whoever answers is sent the password and believed. An abstract socket is in no folder. */
static bool check_socket(const char *path, struct err *err) {
  struct err why = {0};
  if (path[0] == '@')
    return err_set(err, DB_E_SOCKET, "database %s: is no path, so any user may listen there; %s", path,
                   db_error_cure(DB_E_SOCKET));
  if (way_check(path, WAY_SERVER, &why))
    return true;
  int code = why.code == 1 ? DB_E_SOCKET : CR_CONNECTION_ERROR;
  return err_set(err, code, "database %s; %s", why.text, db_error_cure(code));
}

bool db_api_prepare(MYSQL *mysql, const struct database_config *config, bool patient, const char *purpose,
                    struct err *err) {
  const struct duebox_link link = {.host = config->socket ? NULL : config->host,
                                   .host_len = config->socket ? 0 : strlen(config->host),
                                   .tls = config->tls,
                                   .verified = true,
                                   .allow_plaintext = config->allow_plaintext};
  if (duebox_link_judge(&link) != DUEBOX_LINK_ALLOWED)
    return err_set(err, DB_E_PLAINTEXT, "database %s: the connection would not be encrypted; %s", config->host,
                   db_error_cure(DB_E_PLAINTEXT));
  if (config->socket && !check_socket(config->socket, err))
    return false;
  /* Without this, "localhost" silently means the unix socket. */
  unsigned protocol = config->socket ? MYSQL_PROTOCOL_SOCKET : MYSQL_PROTOCOL_TCP;
  mysql_options(mysql, MYSQL_OPT_PROTOCOL, &protocol);
  prepare_limits(mysql, config, patient);
  if (!config->socket)
    prepare_tls(mysql, config);
#ifdef DUEBOX_CLIENT_PLUGIN_DIR
  /* Else an environment variable could make the client load code from anywhere. */
  mysql_options(mysql, MYSQL_PLUGIN_DIR, DUEBOX_CLIENT_PLUGIN_DIR);
#endif
  mysql_options(mysql, MYSQL_SET_CHARSET_NAME, "utf8mb4");
  mysql_options4(mysql, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", "duebox");
  mysql_options4(mysql, MYSQL_OPT_CONNECT_ATTR_ADD, "duebox_purpose", purpose);
  return db_auth_prepare(mysql, config, err);
}

bool db_api_verify(MYSQL *mysql, const struct database_config *config, struct err *err) {
  if (config->tls && !config->socket && !mysql_get_ssl_cipher(mysql))
    return err_set(err, DB_E_TLS, "database %s: the connection is not encrypted though database.tls is set; %s",
                   config->host, db_error_cure(DB_E_TLS));
  return true;
}

int db_api_socket(MYSQL *mysql) {
#if DB_API_MARIADB
  return mysql_get_socket(mysql);
#else
  return mysql->net.fd;
#endif
}

void db_api_interrupt(MYSQL *mysql) { (void)shutdown(db_api_socket(mysql), SHUT_RDWR); }
