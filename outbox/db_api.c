/* SPDX-License-Identifier: MIT */
#include "outbox/db_api.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include <duebox/link.h>

#include "outbox/db_auth.h"
#include "outbox/db_error.h"
#include "outbox/db_watch.h"

#if DB_API_MARIADB
typedef my_bool api_bool;
#else
typedef bool api_bool;
#endif

bool db_api_init(struct err *err) {
  if (mysql_library_init(0, NULL, NULL))
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
  unsigned connect = whole_seconds(config->connect_timeout_ms), io = whole_seconds(config->read_timeout_ms);
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
