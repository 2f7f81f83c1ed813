/* SPDX-License-Identifier: MIT
 *
 * core/config_files.c - the main file, its drop-ins, and the secret files. Reads files, keeps nothing.
 *
 * Drop-ins are conf.d/ *.yaml beside the main file, in the order of their names. Maps are merged key by key and a later
 * value replaces an earlier one, except: a plugin or route may stand in one file only, and results are appended.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/way.h"
#include "core/config_internal.h"

enum { SECRET_MAX = 64 * 1024 };

static bool merge_map(struct arena *arena, struct yaml_node *base, const struct yaml_node *over, int depth,
                      struct err *err);

static struct yaml_node *find(const struct yaml_node *map, const char *key) {
  for (size_t i = 0; i < map->count; i++)
    if (strcmp(map->items[i]->name, key) == 0)
      return map->items[i];
  return NULL;
}

/* Plugins and routes: two definitions of one name would hide each other. */
static bool union_map(struct arena *arena, struct yaml_node *base, const struct yaml_node *over, struct err *err) {
  for (size_t i = 0; i < over->count; i++) {
    const struct yaml_node *twin = find(base, over->items[i]->name);
    if (twin)
      return yaml_key_err(over->items[i], err, "is defined in %s:%u:%u too; remove one of them", twin->file,
                          twin->key_line, twin->key_column);
    yaml_append(arena, base, over->items[i]);
  }
  return true;
}

static bool merge_item(struct arena *arena, struct yaml_node *base, struct yaml_node *mine, struct yaml_node *item,
                       int depth, struct err *err) {
  const char *name = item->name;
  bool top = depth == 0, both_maps = mine->kind == YAML_MAP && item->kind == YAML_MAP;
  if (top && both_maps && (strcmp(name, "routes") == 0 || strcmp(name, "plugins") == 0))
    return union_map(arena, mine, item, err);
  if (top && mine->kind == YAML_LIST && item->kind == YAML_LIST && strcmp(name, "results") == 0) {
    for (size_t i = 0; i < item->count; i++)
      yaml_append(arena, mine, item->items[i]);
    return true;
  }
  if (both_maps)
    return merge_map(arena, mine, item, depth + 1, err);
  item->parent = base;
  item->index = mine->index;
  base->items[mine->index] = item;
  return true;
}

static bool merge_map(struct arena *arena, struct yaml_node *base, const struct yaml_node *over, int depth,
                      struct err *err) {
  for (size_t i = 0; i < over->count; i++) {
    struct yaml_node *item = over->items[i], *mine = find(base, item->name);
    if (!mine)
      yaml_append(arena, base, item);
    else if (!yaml_absent(item) && !merge_item(arena, base, mine, item, depth, err))
      return false;
  }
  return true;
}

static int is_dropin(const struct dirent *entry) {
  size_t n = strlen(entry->d_name);
  return entry->d_name[0] != '.' && n > 5 && strcmp(entry->d_name + n - 5, ".yaml") == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

static struct yaml_node *load_one(const char *path, struct arena *arena, struct err *err) {
  struct yaml_node *root = yaml_load(path, arena, err);
  if (root && root->kind != YAML_MAP) {
    yaml_err(root, err, "a configuration is a map of sections such as database: and routes:");
    return NULL;
  }
  return root;
}

/* Whoever may write there, or point a link there, decides which files are read, if not what is in them. */
static bool check_dropins(const char *folder, struct err *err) {
  struct stat st;
  if (stat(folder, &st) != 0)
    return true; /* one that cannot be read is said by who reads it */
  return (way_is_sealed(folder) || yaml_is_ours(folder, &st, err)) && way_check(folder, WAY_OURS, err);
}

struct yaml_node *config_read_files(const char *path, const char *dir, struct arena *arena, struct err *err) {
  struct yaml_node *root = load_one(path, arena, err);
  if (!root)
    return NULL;
  const char *folder = arena_printf(arena, "%s/conf.d", dir);
  struct dirent **names = NULL;
  if (!check_dropins(folder, err))
    return NULL;
  int count = scandir(folder, &names, is_dropin, by_name);
  bool ok = count >= 0 || errno == ENOENT;
  if (!ok)
    err_set(err, errno, "%s: cannot be read: %s", folder, strerror(errno));
  for (int i = 0; i < count; i++) {
    struct yaml_node *over = ok ? load_one(arena_printf(arena, "%s/%s", folder, names[i]->d_name), arena, err) : NULL;
    ok = over && merge_map(arena, root, over, 0, err);
    free(names[i]);
  }
  free(names);
  return ok ? root : NULL;
}

const char *config_beside(const char *dir, const char *file, struct arena *arena) {
  return file[0] == '/' ? file : arena_printf(arena, "%s/%s", dir, file);
}

bool config_check_path(const char *path, struct err *err) {
  struct stat st;
  bool there = stat(path, &st) == 0;
  if (there && !S_ISREG(st.st_mode)) /* whoever reads a FIFO or a device may wait for ever, or read for ever */
    return err_set(err, 1, "%s is not a file; name a regular file there", path);
  if (there && (st.st_mode & (S_IWGRP | S_IWOTH)) && !way_is_sealed(path))
    return err_set(err, 1, "%s may be written by others (mode %04o); run: chmod go-w %s", path,
                   (unsigned)(st.st_mode & 07777), path);
  return way_check(path, WAY_GIVEN, err);
}

/* Systemd hands credentials over in a folder that is private to the service. */
const char *config_secret_path(const char *dir, const char *ref, struct arena *arena, struct err *err) {
  static const char prefix[] = "credential:";
  if (strncmp(ref, prefix, sizeof prefix - 1) != 0)
    return config_beside(dir, ref, arena);
  const char *name = ref + sizeof prefix - 1, *folder = getenv("CREDENTIALS_DIRECTORY");
  if (!folder) {
    err_set(err, 1, "CREDENTIALS_DIRECTORY is not set; add LoadCredential=%s:/path/to/secret to the service", name);
    return NULL;
  }
  if (!name[0] || strchr(name, '/')) {
    err_set(err, 1, "\"%s\" names no credential; write credential:NAME", ref);
    return NULL;
  }
  return arena_printf(arena, "%s/%s", folder, name);
}

/* The daemon's user owns what only he may read, so commands of root meet files of his. */
static bool check_secret(const char *path, bool credential, const struct stat *st, struct err *err) {
  if (!S_ISREG(st->st_mode))
    return err_set(err, 1, "%s is not a file; name a regular file there", path);
  if (!credential && (st->st_mode & 077))
    return err_set(err, 1, "%s may be used by other users (mode %04o); run: chmod 600 %s", path,
                   (unsigned)(st->st_mode & 07777), path);
  if (st->st_size > SECRET_MAX)
    return err_set(err, 1, "%s has %lld bytes, a secret has at most %d; is this the right file?", path,
                   (long long)st->st_size, SECRET_MAX);
  return credential || way_check(path, WAY_GIVEN, err);
}

static const char *secret_text(int fd, const char *path, struct arena *arena, struct err *err) {
  char *text = arena_alloc(arena, SECRET_MAX + 1);
  size_t len = 0;
  ssize_t n;
  while (len < SECRET_MAX && (n = read(fd, text + len, SECRET_MAX - len)) != 0) {
    if (n < 0 && errno != EINTR) {
      err_set(err, errno, "%s cannot be read: %s", path, strerror(errno));
      return NULL;
    }
    len += n > 0 ? (size_t)n : 0;
  }
  if (strlen(text) != len) {
    err_set(err, 1, "%s holds a NUL character, a secret is text", path);
    return NULL;
  }
  while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
    text[--len] = '\0';
  if (len == 0) {
    err_set(err, 1, "%s is empty; write the secret into it", path);
    return NULL;
  }
  return text;
}

const char *config_read_secret(void *ctx, const char *ref, struct arena *arena, struct err *err) {
  const char *text = NULL, *path = config_secret_path(ctx, ref, arena, err);
  struct stat st;
  if (!path)
    return NULL;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not hang the start */
  if (fd < 0 || fstat(fd, &st) != 0)
    err_set(err, errno, "%s cannot be read: %s", path, strerror(errno));
  else if (check_secret(path, strncmp(ref, "credential:", 11) == 0, &st, err))
    text = secret_text(fd, path, arena, err);
  if (fd >= 0)
    close(fd);
  return text;
}
