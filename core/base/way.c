/* SPDX-License-Identifier: MIT */
#include "core/base/way.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

struct way {
  const char *path; /* what is judged */
  enum way_end end;
  bool closed; /* nobody but its owner, root and us may write into the folder that was come to last */
  int links;
};

bool way_is_ours(uid_t uid) { return uid == 0 || uid == geteuid(); }

/* A sandbox (ProtectSystem= of systemd) shows us read-only what others write: only a volume of its own is so for all.
 */
bool way_is_sealed(const char *folder) {
  struct statx at;
  struct statvfs volume;
  return statx(AT_FDCWD, folder, 0, 0, &at) == 0 && (at.stx_attributes & STATX_ATTR_MOUNT_ROOT) &&
         statvfs(folder, &volume) == 0 && (volume.f_flag & ST_RDONLY);
}

/* Whether a group other than root's may write there; where there is an ACL, its bits are those of anybody that it
 * names. */
static bool group_writes(const char *folder, const struct stat *st) {
  return (st->st_mode & S_IWGRP) && (st->st_gid != 0 || getxattr(folder, "system.posix_acl_access", NULL, 0) > 0);
}

static bool may_own(const struct way *way, const struct stat *st) {
  bool given = way->end == WAY_SERVER || (way->end == WAY_GIVEN && S_ISREG(st->st_mode));
  return way_is_ours(st->st_uid) || (given && way->closed);
}

static bool check_folder(struct way *way, const char *folder, const struct stat *st, struct err *err) {
  const char *path = way->path;
  if (!may_own(way, st))
    return err_set(err, 1,
                   "%s: its folder %s belongs to another user (uid %u) who could swap it; run: chown root %s, or use "
                   "a folder of root",
                   path, folder, (unsigned)st->st_uid, folder);
  bool everybody = st->st_mode & S_IWOTH, group = group_writes(folder, st);
  way->closed = (!everybody && !group) || way_is_sealed(folder);
  if (way->closed || (st->st_mode & S_ISVTX))
    return true;
  if (everybody)
    return err_set(err, 1, "%s: everybody may write into its folder %s; run: chmod o-w %s", path, folder, folder);
  return err_set(err, 1, "%s: a group (gid %u) or an ACL lets others write into its folder %s; run: chmod g-w %s", path,
                 (unsigned)st->st_gid, folder, folder);
}

static bool walk(struct way *way, const char *steps, struct err *err);

/* A link is judged with all that it leads through. */
static bool check_link(struct way *way, const char *link, const struct stat *st, struct err *err) {
  enum { LINKS_MAX = 16 };
  char target[PATH_MAX], steps[2 * PATH_MAX];
  if (!may_own(way, st))
    return err_set(err, 1, "%s: the symbolic link %s belongs to another user (uid %u) who could point it elsewhere",
                   way->path, link, (unsigned)st->st_uid);
  ssize_t n = readlink(link, target, sizeof target - 1);
  if (n <= 0 || way->links++ == LINKS_MAX)
    return err_set(err, ELOOP, "%s: %s: %s", way->path, link, strerror(ELOOP));
  target[n] = '\0';
  int folder = (int)(strrchr(link, '/') - link);
  bool whole = target[0] == '/';
  snprintf(steps, sizeof steps, "%.*s/%s", whole ? 0 : folder, link, whole ? target + 1 : target);
  return strlen(steps) < PATH_MAX ? walk(way, steps, err)
                                  : err_set(err, ENAMETOOLONG, "%s: %s", way->path, strerror(ENAMETOOLONG));
}

static bool check_file(const struct way *way, const char *file, const struct stat *st, struct err *err) {
  return may_own(way, st) || err_set(err, 1,
                                     "%s: %s belongs to another user (uid %u); run: chown root %s, or keep it in a "
                                     "folder that only its owner may write into",
                                     way->path, file, (unsigned)st->st_uid, file);
}

/* From the root on, as the system does it, so that links within links are judged too. */
static bool walk(struct way *way, const char *steps, struct err *err) {
  char at[PATH_MAX];
  struct stat st;
  size_t len = strlen(steps);
  for (size_t end = 0;; end += 1 + strcspn(steps + end + 1, "/")) {
    snprintf(at, sizeof at, "%.*s", end ? (int)end : 1, steps); /* the root, and every name behind it */
    if (lstat(at, &st) != 0)
      return (errno == ENOENT && way->end != WAY_OURS && way->closed) ||
             err_set(err, errno, "%s: %s", way->path, strerror(errno));
    bool ok = S_ISDIR(st.st_mode)   ? check_folder(way, at, &st, err)
              : S_ISLNK(st.st_mode) ? check_link(way, at, &st, err)
                                    : check_file(way, at, &st, err);
    if (!ok || end >= len)
      return ok;
  }
}

bool way_check(const char *path, enum way_end end, struct err *err) {
  char here[PATH_MAX], steps[2 * PATH_MAX];
  struct way way = {.path = path, .end = end};
  if (path[0] == '/')
    return walk(&way, path, err);
  if (!getcwd(here, sizeof here))
    return err_set(err, errno, "%s: %s", path, strerror(errno));
  snprintf(steps, sizeof steps, "%s/%s", here, path);
  return walk(&way, steps, err);
}
