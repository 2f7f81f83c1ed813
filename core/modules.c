/* SPDX-License-Identifier: MIT */
#include "core/modules.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/arena.h"
#include "core/base/way.h"
#include "core/plugin_check.h"

enum { MAX_DIRS = 16, MAX_MODULES = 64 };

struct loaded {
  struct module module;
  dev_t dev;
  ino_t ino;
};

struct module_registry {
  struct arena *arena;
  const char *dirs[MAX_DIRS];
  size_t dir_count;
  struct loaded loaded[MAX_MODULES];
  size_t count;
};

static void add_dir(struct module_registry *modules, const char *dir, size_t len) {
  if (len > 0 && modules->dir_count < MAX_DIRS)
    modules->dirs[modules->dir_count++] = arena_strndup(modules->arena, dir, len);
}

/* The folders relative to the executable: in a build tree, and as installed. An installed tree may be moved. */
static void add_beside_executable(struct module_registry *modules) {
  static const char *const places[] = {"../plugins", DUEBOX_PLUGIN_DIR_FROM_BIN};
  char path[PATH_MAX], from_bin[2 * PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  if (n <= 0) { /* no /proc */
    add_dir(modules, DUEBOX_PLUGIN_DIR, strlen(DUEBOX_PLUGIN_DIR));
    return;
  }
  path[n] = '\0';
  char *slash = strrchr(path, '/');
  for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
    snprintf(from_bin, sizeof from_bin, "%.*s/%s", (int)(slash - path), path, places[i]);
    char *dir = realpath(from_bin, NULL); /* one that is not there is still named when a module is not found */
    add_dir(modules, dir ? dir : from_bin, strlen(dir ? dir : from_bin));
    free(dir);
  }
}

struct module_registry *modules_new(void) {
  struct arena *arena = arena_new();
  struct module_registry *modules = arena_alloc(arena, sizeof *modules);
  modules->arena = arena;
  const char *env = getenv("DUEBOX_PLUGIN_PATH");
  while (env && *env) {
    size_t n = strcspn(env, ":");
    add_dir(modules, env, n);
    env += n + (env[n] == ':');
  }
  add_beside_executable(modules);
  return modules;
}

void modules_free(struct module_registry **modules) {
  if (!*modules)
    return;
  struct arena *arena = (*modules)->arena;
  arena_free(&arena);
  *modules = NULL;
}

size_t modules_count(const struct module_registry *modules) { return modules->count; }

const struct module *modules_at(const struct module_registry *modules, size_t i) { return &modules->loaded[i].module; }

const char *modules_dir(const struct module_registry *modules, size_t i) {
  return i < modules->dir_count ? modules->dirs[i] : NULL;
}

static bool check_file(const char *path, const struct stat *st, struct err *err) {
  if (!S_ISREG(st->st_mode))
    return err_set(err, MODULE_REFUSED, "%s: is not a regular file", path);
  if (!way_is_ours(st->st_uid))
    return err_set(err, MODULE_REFUSED,
                   "%s: belongs to another user (uid %u), wanted root or the daemon's user (uid %u); run: "
                   "chown root %s",
                   path, (unsigned)st->st_uid, (unsigned)geteuid(), path);
  if (st->st_mode & (S_IWGRP | S_IWOTH))
    return err_set(err, MODULE_REFUSED, "%s: may be written by others (mode %04o); run: chmod go-w %s", path,
                   (unsigned)(st->st_mode & 07777), path);
  return way_check(path, WAY_OURS, err);
}

/* Whether the file has all that its header promises: of what is cut short the dynamic loader maps pages that are not
 * there, and touching them ends the process. What is no such file at all it refuses by itself. */
static bool check_whole(int fd, const char *path, const struct stat *st, struct err *err) {
  enum { SEGMENTS_MAX = 64 };
  ElfW(Ehdr) head;
  ElfW(Phdr) segments[SEGMENTS_MAX];
  uint64_t size = (uint64_t)st->st_size;
  if (pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_phentsize != sizeof segments[0] || head.e_phnum > SEGMENTS_MAX)
    return true;
  size_t len = head.e_phnum * sizeof segments[0];
  bool whole = head.e_phoff <= size && pread(fd, segments, len, (off_t)head.e_phoff) == (ssize_t)len;
  for (size_t i = 0; whole && i < head.e_phnum; i++)
    whole = segments[i].p_type != PT_LOAD ||
            (segments[i].p_offset <= size && segments[i].p_filesz <= size - segments[i].p_offset);
  return whole || err_set(err, MODULE_REFUSED, "%s: is cut short; install it again", path);
}

/* Opens and distrusts the file; -1 with err->code ENOENT when there is none. */
static int open_module(const char *path, struct stat *st, struct err *err) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0 && errno == ELOOP) {
    err_set(err, ELOOP, "%s: is a symbolic link; name the file itself", path);
    return -1;
  }
  if (fd < 0) {
    err_set(err, errno, "%s: %s", path, strerror(errno));
    return -1;
  }
  if (fstat(fd, st) != 0)
    err_set(err, EIO, "%s: %s", path, strerror(errno));
  else if (check_file(path, st, err) && check_whole(fd, path, st, err))
    return fd;
  close(fd);
  return -1;
}

static bool judge(const char *path, const struct duebox_plugin *plugin, struct err *err) {
  struct plugin_faults faults;
  if (plugin_check(plugin, &faults))
    return true;
  char list[sizeof err->text] = "";
  for (size_t i = 0; i < faults.count && i < PLUGIN_FAULTS_MAX; i++) {
    size_t used = strlen(list);
    snprintf(list + used, sizeof list - used, "%s%s", i ? "; " : "", faults.text[i]);
  }
  return err_set(err, MODULE_REFUSED, "%s: refused: %s", path, list);
}

/* Loads by descriptor, so that what was checked is what is loaded. The descriptor stays open for good: the loader knows
 * a module by its name, /proc/self/fd/N, and would hand out this one again for another file behind the same N. */
static const struct duebox_plugin *load_fd(int fd, const char *path, struct err *err) {
  char name[64];
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!handle) {
    err_set(err, MODULE_REFUSED, "%s: cannot be loaded: %s", path, dlerror());
    close(fd);
    return NULL;
  }
  const struct duebox_plugin *plugin = dlsym(handle, DUEBOX_PLUGIN_SYMBOL);
  if (!plugin) {
    err_set(err, MODULE_REFUSED, "%s: refused: exports no %s, so it is no duebox plugin", path, DUEBOX_PLUGIN_SYMBOL);
    return NULL;
  }
  return judge(path, plugin, err) ? plugin : NULL;
}

static const struct module *load_path(struct module_registry *modules, const char *path, struct err *err) {
  struct stat st;
  int fd = open_module(path, &st, err);
  if (fd < 0)
    return NULL;
  for (size_t i = 0; i < modules->count; i++)
    if (modules->loaded[i].dev == st.st_dev && modules->loaded[i].ino == st.st_ino) {
      close(fd);
      return &modules->loaded[i].module;
    }
  if (modules->count == MAX_MODULES) {
    err_set(err, MODULE_REFUSED, "%s: more than %d plugin modules; use fewer", path, MAX_MODULES);
    close(fd);
    return NULL;
  }
  const struct duebox_plugin *plugin = load_fd(fd, path, err);
  if (!plugin)
    return NULL;
  struct loaded *slot = &modules->loaded[modules->count++];
  *slot = (struct loaded){{plugin, arena_strdup(modules->arena, path)}, st.st_dev, st.st_ino};
  return &slot->module;
}

static const struct module *search(struct module_registry *modules, const char *name, struct err *err) {
  char looked[600] = "";
  for (size_t i = 0; i < modules->dir_count; i++) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s.so", modules->dirs[i], name);
    struct err why = {0};
    const struct module *module = load_path(modules, path, &why);
    if (module)
      return module;
    if (why.code != ENOENT && why.code != ENOTDIR) { /* it is there and bad: never fall back to another one */
      err_set(err, why.code, "%s", why.text);
      return NULL;
    }
    size_t used = strlen(looked);
    snprintf(looked + used, sizeof looked - used, "%s%s", i ? ", " : "", modules->dirs[i]);
  }
  err_set(err, ENOENT, "there is no plugin module \"%.64s\"; looked for %.64s.so in %s", name, name, looked);
  return NULL;
}

const struct module *modules_load(struct module_registry *modules, const char *name, struct err *err) {
  if (name[0] == '/')
    return load_path(modules, name, err);
  if (!name[0] || name[0] == '.' || strchr(name, '/')) {
    err_set(err, EINVAL,
            "\"%.64s\" is neither a module's name nor an absolute path; write kafka, amqp, http or "
            "/path/to/plugin.so",
            name);
    return NULL;
  }
  return search(modules, name, err);
}
