/* SPDX-License-Identifier: MIT
 *
 * core/base/way.h - whether another user of this machine could put something else in the place of a path.
 *
 * A path is as safe as the folders and symbolic links that it leads through: root or our user owns each of them, and
 * nobody else may write into the folders. A sticky folder (/tmp) protects what is in it, if not what is yet to come. A
 * folder that is mounted read-only by itself, as Kubernetes mounts a ConfigMap, may have any mode.
 */
#ifndef CORE_BASE_WAY_H
#define CORE_BASE_WAY_H

#include <stdbool.h>
#include <sys/types.h>

#include "core/base/attr.h"
#include "core/base/err.h"

/* Who may own what. In a folder that nobody else may write into, what belongs to another user is what root or we have
 * given to him. */
enum way_end {
  WAY_OURS,   /* all of it is root's or ours */
  WAY_GIVEN,  /* the file may have been given to another user: a secret, to the daemon's user */
  WAY_SERVER, /* so may the folders: a socket, in its server's */
};

/* Whether the user is root or the one we run as. */
bool way_is_ours(uid_t uid);
/* Whether the folder is a volume that is mounted read-only. */
bool way_is_sealed(const char *folder);
/* Judges every folder and link that leads to the path, and the path. That need not be there, unless it is to be ours,
 * while nobody else could make it. False: err names the place and what mends it, and err->code is the errno where
 * something is not there. */
MUSTCHECK bool way_check(const char *path, enum way_end end, struct err *err);

#endif
