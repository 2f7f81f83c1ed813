/* SPDX-License-Identifier: MIT
 *
 * outbox/db_auth.h - how we log in to the server: by methods that do not reveal the password to whoever answers.
 */
#ifndef OUTBOX_DB_AUTH_H
#define OUTBOX_DB_AUTH_H

#include <mysql.h>

#include "core/base/attr.h"
#include "core/base/err.h"
#include "core/config.h"

/* Once, before the first connection: puts our caching_sha2_password in the place of the client library's. */
MUSTCHECK bool db_auth_init(struct err *err);
/* Restricts a connection that is about to be made to the methods that suit it. */
MUSTCHECK bool db_auth_prepare(MYSQL *mysql, const struct database_config *config, struct err *err);

#endif
