/* SPDX-License-Identifier: MIT
 *
 * outbox/db_error.h - what a database error means for us: a table from error number to class, and the cure to print.
 *
 * Pure data. Numbers are those of MySQL 8 and MariaDB 10.6 and later; client errors are 2000-2999; our own start at
 * DB_E_FIRST, above both.
 */
#ifndef OUTBOX_DB_ERROR_H
#define OUTBOX_DB_ERROR_H

#include <stdbool.h>

#include "core/store.h"

/* How far the trouble reaches and what to do about it. */
enum db_class {
  DB_CONFLICT,  /* another transaction was in the way: roll back and redo the unit (InnoDB does not always roll back) */
  DB_LOST,      /* this connection is gone: connect again and redo the unit */
  DB_DOWN,      /* no usable server at the moment */
  DB_READ_ONLY, /* a replica, or a primary that is being replaced: all connections of the store are to be closed */
  DB_FULL,      /* the server has no room, or its system refuses it something else that it needs */
  DB_REFUSED,   /* rights, schema or settings: an operator must act */
  DB_CLASSES,
};

enum {
  DB_LOCK_WAIT = 1205, /* waited for a row that another transaction holds */
  DB_DEADLOCK = 1213,  /* the transaction was undone in favour of another one */
  DB_NO_ROW_ID = 1467, /* the counter of row ids has come to its end, and no lock was met (next_id.h) */
  DB_GUARD = 1690,     /* a guard (guard.h) did not hold */
  DB_METHOD = 5010,    /* the server asks for a login method that is not permitted here, says Connector/C */
};

/* Errors that we find ourselves. */
enum db_own_error {
  DB_E_FIRST = 100000,
  DB_E_NO_MEMORY = DB_E_FIRST,
  DB_E_PLAINTEXT,    /* no TLS to a host that is not loopback */
  DB_E_TLS,          /* TLS was asked for and is not there */
  DB_E_PASSWORD,     /* logging in would reveal the password */
  DB_E_SOCKET,       /* another user could listen on the socket */
  DB_E_RIGHTS,       /* the user lacks rights on our tables */
  DB_E_SESSION,      /* time zone, isolation level or SQL mode is not what we set */
  DB_E_READ_ONLY,    /* the server says that it is read-only */
  DB_E_NOT_MIGRATED, /* the schema is missing or older than this program */
  DB_E_NEWER,        /* the schema is newer than this program */
  DB_E_PACKET,       /* max_allowed_packet is smaller than what must be sent */
  DB_E_ROW,          /* a row that the schema does not allow */
  DB_E_VALUE,        /* a value that nothing can be computed from: error 1690, and no guard's */
  DB_E_PROTOCOL,     /* the server's answer is not what the statement gives */
  DB_E_BINLOG,       /* there is no binlog that could be followed */
  DB_E_EVENT,        /* an event of the binlog is too large to be read */
  DB_E_LOGIN,        /* a login did not end in time */
  DB_E_LATE,         /* an answer was not there, or not all of it, in time */
  DB_E_FILES,        /* the process has no file left for a connection */
  DB_E_NOT_TAKEN,    /* rows that are locked were not written as they were given, and the server says no more of it */
  DB_E_END,
};

/* Whether the server refused what one statement wrote, and may take it in another form. */
bool db_error_is_refusal(int code);
/* Whether a CHECK of a table refused a row. */
bool db_error_is_check(int code);
/* Whether a value is one that the table does not allow: of the statement, or of a row whose client had switched the
 * table's CHECKs off. */
bool db_error_is_value(int code);
/* Whether the session lacks a right. Those on a database, and those of roles, a server fixes when a session begins. */
bool db_error_is_right(int code);
/* Whether the server does not let the user in: a wrong password, or one that has expired. */
bool db_error_is_login(int code);
/* Whether a right, a table or a column is missing: an operator must act, and what needs it waits for that as it is. */
bool db_error_is_denied(int code);
/* Whether it is the server's answer to one statement, and those behind it were not run. Otherwise nobody knows how far
 * the server, or a proxy before it, has come. */
bool db_error_ends_script(int code);
/* The class of an error number; unknown ones are DB_REFUSED. */
enum db_class db_error_class(int code);
/* What an operator can do about it, "" when the server's text says it all. */
const char *db_error_cure(int code);
/* The same where `duebox migrate` meets it. */
const char *db_error_cure_migrating(int code);
/* What a unit returns when it gives up with that class. */
enum store_status db_class_status(enum db_class cls);

#endif
