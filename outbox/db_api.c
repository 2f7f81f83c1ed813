/* SPDX-License-Identifier: MIT */
#include "outbox/db_api.h"

#include <errmsg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <duebox/link.h>

#include "outbox/binlog_row.h"
#include "outbox/db_auth.h"
#include "outbox/db_error.h"

#if defined(MARIADB_BASE_VERSION) || defined(MARIADB_PACKAGE_VERSION_ID)
#define IS_MARIADB 1
typedef my_bool api_bool;
#else
#define IS_MARIADB 0
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
#if IS_MARIADB
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

static void prepare_limits(MYSQL *mysql, const struct database_config *config, bool patient) {
  unsigned connect = whole_seconds(config->connect_timeout_ms), io = whole_seconds(config->read_timeout_ms);
  mysql_options(mysql, MYSQL_OPT_CONNECT_TIMEOUT, &connect);
  if (!patient)
    mysql_options(mysql, MYSQL_OPT_READ_TIMEOUT, &io);
  mysql_options(mysql, MYSQL_OPT_WRITE_TIMEOUT, &io);
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

void db_api_interrupt(MYSQL *mysql) {
#if IS_MARIADB
  my_socket fd = mysql_get_socket(mysql);
#else
  int fd = mysql->net.fd;
#endif
  (void)shutdown(fd, SHUT_RDWR);
}

#if IS_MARIADB && MARIADB_PACKAGE_VERSION_ID >= 30309 /* earlier ones fail on partitioned tables and on heartbeats */
#include <mariadb_rpl.h>

struct db_tail {
  MYSQL *mysql;
  MARIADB_RPL *rpl;
  MARIADB_RPL_EVENT *event; /* reused */
  bool checksums;           /* as the log file's first event says */
};

bool db_api_can_tail(MYSQL *mysql, struct err *err) {
  if (!mariadb_connection(mysql))
    return err_set(err, DB_E_BINLOG, "only the binlog of a MariaDB server can be followed");
  return true;
}

static bool tail_failed(struct db_tail *tail, struct err *err) {
  int code = (int)mysql_errno(tail->mysql);
  const char *text = code ? mysql_error(tail->mysql) : "the server sends no more of it";
  code = code ? code : CR_SERVER_LOST;
  const char *cure = db_error_cure(code);
  return err_set(err, code, "following the binlog: %s (error %d)%s%s", text, code, *cure ? "; " : "", cure);
}

bool db_api_tail(MYSQL *mysql, const char *file, uint64_t position, uint32_t server_id, struct db_tail **out,
                 struct err *err) {
  struct db_tail *tail = *out = calloc(1, sizeof *tail);
  if (!tail || !(tail->rpl = mariadb_rpl_init(mysql))) {
    db_api_tail_close(out);
    return err_set(err, DB_E_NO_MEMORY, "following the binlog: out of memory");
  }
  tail->mysql = mysql;
  mariadb_rpl_optionsv(tail->rpl, MARIADB_RPL_FILENAME, file, strlen(file));
  mariadb_rpl_optionsv(tail->rpl, MARIADB_RPL_START, (unsigned long)position);
  mariadb_rpl_optionsv(tail->rpl, MARIADB_RPL_SERVER_ID, server_id);
  mariadb_rpl_optionsv(tail->rpl, MARIADB_RPL_UNCOMPRESS, 1);
  if (mariadb_rpl_open(tail->rpl) == 0)
    return true;
  (void)tail_failed(tail, err);
  db_api_tail_close(out);
  return false;
}

static struct duebox_bytes bytes_of(const MARIADB_STRING *string) {
  return (struct duebox_bytes){.data = string->str, .len = string->length};
}

/* Header of an event: 4 bytes time, 1 type, 4 server, 4 length, 4 position, 2 flags. Then its body, and a checksum of 4
 * bytes where the log has them: the byte before the checksum of its first event says so. */
bool db_api_tail_next(struct db_tail *tail, struct db_event *event, struct err *err) {
  enum { HEADER = 19, CHECKSUM = 4 };
  MARIADB_RPL_EVENT *from = mariadb_rpl_fetch(tail->rpl, tail->event);
  tail->event = from; /* a failing fetch has freed what it was given (3.3.20) */
  if (!from)
    return tail_failed(tail, err);
  if (from->raw_data_size < from->raw_data_ofs + HEADER + CHECKSUM + 1)
    return err_set(err, DB_E_PROTOCOL, "following the binlog: an event of %zu bytes", from->raw_data_size);
  const uint8_t *body = from->raw_data + from->raw_data_ofs + HEADER;
  size_t len = from->raw_data_size - from->raw_data_ofs - HEADER;
  *event = (struct db_event){.type = (uint8_t)from->event_type, .body = body, .len = len};
  if (event->type == BINLOG_FORMAT)
    tail->checksums = body[len - CHECKSUM - 1] != 0;
  if (tail->checksums)
    event->len -= CHECKSUM;
  if (event->type == BINLOG_QUERY || event->type == BINLOG_QUERY_COMPRESSED) {
    event->database = bytes_of(&from->event.query.database);
    event->statement = bytes_of(&from->event.query.statement);
  } else if (binlog_adds_rows(event->type) && from->event.rows.compressed) {
    event->plain = (struct duebox_bytes){.data = from->event.rows.row_data, .len = from->event.rows.row_data_size};
  }
  return true;
}

void db_api_tail_close(struct db_tail **tail) {
  if (!*tail)
    return;
  if ((*tail)->event)
    mariadb_free_rpl_event((*tail)->event);
  mariadb_rpl_close((*tail)->rpl);
  free(*tail);
  *tail = NULL;
}

#else

static bool cannot(struct err *err) {
  return err_set(err, DB_E_BINLOG,
                 "this build cannot follow the binlog: it needs MariaDB Connector/C 3.3.9 or later, and was built with "
                 "another client library");
}

bool db_api_can_tail(MYSQL *mysql, struct err *err) { return cannot(err); }
bool db_api_tail(MYSQL *mysql, const char *file, uint64_t position, uint32_t server_id, struct db_tail **tail,
                 struct err *err) {
  *tail = NULL;
  return cannot(err);
}
bool db_api_tail_next(struct db_tail *tail, struct db_event *event, struct err *err) { return cannot(err); }
void db_api_tail_close(struct db_tail **tail) { *tail = NULL; }

#endif
