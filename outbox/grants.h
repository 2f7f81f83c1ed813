/* SPDX-License-Identifier: MIT
 *
 * outbox/grants.h - the lines of SHOW GRANTS: what the session may do, by its user and by its active roles.
 * information_schema has only what was given to the user directly. Pure.
 */
#ifndef OUTBOX_GRANTS_H
#define OUTBOX_GRANTS_H

#include <stdbool.h>

/* Rights on one table, and on the whole server. */
struct grants {
  const char *database, *table;
  bool case_counts; /* the server tells names apart that differ in case alone */
  unsigned rights;  /* enum right, on that table */
  bool super, replica, status;
};

/* Adds what one line gives. */
void grants_add(struct grants *grants, const char *line);

#endif
