/* SPDX-License-Identifier: MIT
 *
 * outbox/db_tail.c - following a binlog with either client library; see db_api.h.
 *
 * Both give events as they are in the log; what they mean is read by binlog_row.c. Connector/C unpacks those that a
 * MariaDB server has compressed.
 */
#include <errmsg.h>
#include <stdlib.h>
#include <string.h>

#include "outbox/binlog_row.h"
#include "outbox/db_api.h"
#include "outbox/db_conn.h"
#include "outbox/db_error.h"

#if DB_API_MARIADB && MARIADB_PACKAGE_VERSION_ID < 30309

static bool cannot(struct err *err) {
  return err_set(err, DB_E_BINLOG,
                 "this build cannot follow the binlog: its MariaDB Connector/C is older than 3.3.9, which fails on "
                 "partitioned tables and on heartbeats");
}

bool db_api_can_tail(MYSQL *mysql, struct err *err) { return cannot(err); }
bool db_api_tail(MYSQL *mysql, const struct database_config *config, const char *file, uint64_t position,
                 uint32_t server_id, size_t largest, struct db_tail **tail, struct err *err) {
  *tail = NULL;
  return cannot(err);
}
bool db_api_tail_next(struct db_tail *tail, struct db_event *event, struct err *err) { return cannot(err); }
void db_api_tail_close(struct db_tail **tail) { *tail = NULL; }

#else

/* Connector/C calls that a lost connection, and yet tells it from one that failed. */
static bool is_too_large(MYSQL *mysql) {
  enum { CONNECTOR_REFUSES = 1 };
  return mysql_errno(mysql) == CR_NET_PACKET_TOO_LARGE || (DB_API_MARIADB && mysql->net.error == CONNECTOR_REFUSES);
}

static bool tail_failed(MYSQL *mysql, const struct database_config *config, struct err *err) {
  static const char what[] = "following the binlog";
  int code = (int)mysql_errno(mysql);
  if (is_too_large(mysql))
    return err_set(err, DB_E_EVENT, "following the binlog: a row of some table is larger than %lu MiB; %s",
                   mysql->net.max_packet_size >> 20, db_error_cure(DB_E_EVENT));
  if (code)
    return db_failed(mysql, config, what, code, db_error_cure(code), err);
  return err_set(err, CR_SERVER_LOST, "%s: the server sends no more of it; %s", what, db_error_cure(CR_SERVER_LOST));
}

/* Header of an event: 4 bytes time, 1 type, 4 server, 4 length, 4 position, 2 flags. Then its body, and a checksum of 4
 * bytes where the log has them: the byte before the checksum of its first event says so. */
static bool cut_event(const uint8_t *data, size_t size, bool *checksums, struct db_event *event, struct err *err) {
  enum { TYPE = 4, HEADER = 19, CHECKSUM = 4 };
  bool format = size > HEADER && data[TYPE] == BINLOG_FORMAT;
  if (size < HEADER + (format ? CHECKSUM + 1 : *checksums ? CHECKSUM : 0))
    return err_set(err, DB_E_PROTOCOL, "following the binlog: an event of %zu bytes", size);
  *event = (struct db_event){.type = data[TYPE], .body = data + HEADER, .len = size - HEADER};
  if (format)
    *checksums = event->body[event->len - CHECKSUM - 1] != 0;
  if (*checksums)
    event->len -= CHECKSUM;
  return true;
}

#if DB_API_MARIADB
#include <mariadb_rpl.h>

struct db_tail {
  MYSQL *mysql;
  const struct database_config *config;
  MARIADB_RPL *rpl;
  MARIADB_RPL_EVENT *event; /* reused */
  bool checksums;           /* as the log file's first event says */
};

bool db_api_can_tail(MYSQL *mysql, struct err *err) {
  (void)mysql, (void)err;
  return true; /* MySQL's log too, but for transactions whose GTID has a tag: see db_api.h */
}

bool db_api_tail(MYSQL *mysql, const struct database_config *config, const char *file, uint64_t position,
                 uint32_t server_id, size_t largest, struct db_tail **out, struct err *err) {
  struct db_tail *tail = *out = calloc(1, sizeof *tail);
  if (!tail || !(tail->rpl = mariadb_rpl_init(mysql))) {
    db_api_tail_close(out);
    return err_set(err, DB_E_NO_MEMORY, "following the binlog: out of memory");
  }
  tail->mysql = mysql;
  tail->config = config;
  mysql->net.max_packet_size = largest;
  mariadb_rpl_optionsv(tail->rpl, MARIADB_RPL_FILENAME, file, strlen(file));
  mariadb_rpl_optionsv(tail->rpl, MARIADB_RPL_START, (unsigned long)position);
  mariadb_rpl_optionsv(tail->rpl, MARIADB_RPL_SERVER_ID, server_id);
  mariadb_rpl_optionsv(tail->rpl, MARIADB_RPL_UNCOMPRESS, 1);
  if (mariadb_rpl_open(tail->rpl) == 0)
    return true;
  (void)tail_failed(mysql, config, err);
  db_api_tail_close(out);
  return false;
}

static struct duebox_bytes bytes_of(const MARIADB_STRING *string) {
  return (struct duebox_bytes){.data = string->str, .len = string->length};
}

bool db_api_tail_next(struct db_tail *tail, struct db_event *event, struct err *err) {
  MARIADB_RPL_EVENT *from = mariadb_rpl_fetch(tail->rpl, tail->event);
  tail->event = from; /* a failing fetch has freed what it was given (3.3.20) */
  if (!from)
    return tail_failed(tail->mysql, tail->config, err);
  size_t size = from->raw_data_size > from->raw_data_ofs ? from->raw_data_size - from->raw_data_ofs : 0;
  if (!cut_event(from->raw_data + from->raw_data_ofs, size, &tail->checksums, event, err))
    return false;
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

struct db_tail {
  MYSQL *mysql;
  const struct database_config *config;
  MYSQL_RPL rpl;
  bool checksums; /* as the log file's first event says */
};

bool db_api_can_tail(MYSQL *mysql, struct err *err) {
  if (strstr(mysql_get_server_info(mysql), "MariaDB"))
    return err_set(err, DB_E_BINLOG,
                   "this build follows the binlog of a MySQL server only; that of a MariaDB server is followed by a "
                   "build with DUEBOX_MYSQL_CLIENT=libmariadb");
  return true;
}

bool db_api_tail(MYSQL *mysql, const struct database_config *config, const char *file, uint64_t position,
                 uint32_t server_id, size_t largest, struct db_tail **out, struct err *err) {
  struct db_tail *tail = *out = calloc(1, sizeof *tail);
  if (!tail)
    return err_set(err, DB_E_NO_MEMORY, "following the binlog: out of memory");
  tail->mysql = mysql;
  tail->config = config;
  mysql->net.max_packet_size = largest;
  tail->rpl = (MYSQL_RPL){
      .file_name = file, .file_name_length = strlen(file), .start_position = position, .server_id = server_id};
  if (mysql_binlog_open(mysql, &tail->rpl) == 0) {
    tail->rpl.file_name = NULL; /* it has been sent, and is not ours to keep */
    return true;
  }
  (void)tail_failed(mysql, config, err);
  db_api_tail_close(out);
  return false;
}

/* The packet's first byte says that it is an event. */
bool db_api_tail_next(struct db_tail *tail, struct db_event *event, struct err *err) {
  if (mysql_binlog_fetch(tail->mysql, &tail->rpl) || tail->rpl.size == 0)
    return tail_failed(tail->mysql, tail->config, err);
  if (!cut_event(tail->rpl.buffer + 1, tail->rpl.size - 1, &tail->checksums, event, err))
    return false;
  if (event->type == BINLOG_QUERY && !binlog_read_query(event->body, event->len, &event->database, &event->statement))
    return err_set(err, DB_E_PROTOCOL, "following the binlog: a statement that is cut");
  return true;
}

void db_api_tail_close(struct db_tail **tail) {
  if (!*tail)
    return;
  mysql_binlog_close((*tail)->mysql, &(*tail)->rpl);
  free(*tail);
  *tail = NULL;
}

#endif
#endif
