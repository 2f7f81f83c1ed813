/* SPDX-License-Identifier: MIT
 *
 * admin/look.h - the engine's state as a caller may see it: the only way in which handlers get it.
 *
 * Without a token configured whoever has an account on this machine may ask how the daemon is, and is not told what
 * tasks hold: keys and ids, the addresses they make, what endpoints and consumers answered, what operators wrote.
 * None of it is in the snapshot then, so that no handler can show it.
 */
#ifndef ADMIN_LOOK_H
#define ADMIN_LOOK_H

#include "admin/http.h"

struct look {
  struct engine_status status;
  bool all; /* nothing was taken out */
};

/* Takes a snapshot, to be given back with look_end(). False: the response says that there is none. */
MUSTCHECK bool look_at(struct admin *admin, const struct request *request, struct look *out, struct response *response);
void look_end(struct look *look);
/* A text that is taken out of what the caller sees, or may be: null there. */
json_t *look_said(const struct look *look, const char *text);

#endif
