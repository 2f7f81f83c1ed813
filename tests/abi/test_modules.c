/* SPDX-License-Identifier: MIT
 *
 * tests/abi/test_modules.c - every rule of the module loader, each proved by a plugin or a file that breaks it.
 *
 * Files are copied into a private folder below /tmp, whose owner and mode the tests then change.
 */
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/modules.h"

struct fixture {
  char folder[64];
  struct module_registry *modules;
};

static int set_up(void **state) {
  struct fixture *f = calloc(1, sizeof *f);
  assert_non_null(f);
  strcpy(f->folder, "/tmp/duebox-modules-XXXXXX");
  assert_non_null(mkdtemp(f->folder));
  assert_int_equal(chmod(f->folder, 0755), 0);
  assert_int_equal(setenv("DUEBOX_PLUGIN_PATH", f->folder, 1), 0);
  f->modules = modules_new();
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  struct fixture *f = *state;
  char command[128];
  modules_free(&f->modules);
  snprintf(command, sizeof command, "rm -rf %s", f->folder);
  assert_int_equal(system(command), 0);
  free(f);
  return 0;
}

/* Copies a test plugin into the folder; returns its new path. */
static const char *copy(const struct fixture *f, const char *plugin, const char *as) {
  static char path[128];
  char command[512];
  snprintf(path, sizeof path, "%s/%s.so", f->folder, as);
  snprintf(command, sizeof command, "cp %s/%s.so %s", TEST_PLUGINS, plugin, path);
  assert_int_equal(system(command), 0);
  assert_int_equal(chmod(path, 0644), 0);
  return path;
}

static void expect_refused(const struct fixture *f, const char *name, const char *text) {
  struct err err = {0};
  const struct module *module = modules_load(f->modules, name, &err);
  assert_null(module);
  assert_string_equal(err.text, text);
}

/* Copies a broken plugin and expects it to be refused for the reason given. */
static void expect_bad(const struct fixture *f, const char *plugin, const char *reason) {
  char text[1024];
  snprintf(text, sizeof text, "%s: refused: %s", copy(f, plugin, plugin), reason);
  expect_refused(f, plugin, text);
}

static void test_good_plugin(void **state) {
  const struct fixture *f = *state;
  struct err err = {0};
  const char *path = copy(f, "null", "null");
  const struct module *by_name = modules_load(f->modules, "null", &err);
  if (!by_name)
    fail_msg("%s", err.text);
  assert_string_equal(by_name->plugin->name, "null");
  assert_string_equal(by_name->path, path);
  assert_ptr_equal(modules_load(f->modules, path, &err), by_name);
  assert_int_equal(modules_count(f->modules), 1);
  assert_ptr_equal(modules_at(f->modules, 0), by_name);
}

/* A copy that was interrupted: wherever it ends, it is refused, and the process lives. */
static void test_cut_short(void **state) {
  enum { PARTS = 20 };
  const struct fixture *f = *state;
  struct stat st;
  char name[32], text[256];
  for (int part = 1; part < PARTS; part++) {
    struct err err = {0};
    snprintf(name, sizeof name, "part-%d", part);
    const char *path = copy(f, "null", name);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size * part / PARTS), 0);
    if (!modules_load(f->modules, name, &err))
      assert_non_null(strstr(err.text, path));
  }
  const char *path = copy(f, "null", "page");
  assert_int_equal(truncate(path, 4096), 0);
  snprintf(text, sizeof text, "%s: is cut short; install it again", path);
  expect_refused(f, "page", text);
}

/* The dynamic loader knows modules by name; a recycled descriptor number must not bring back the first one. */
static void test_two_plugins_stay_two(void **state) {
  const struct fixture *f = *state;
  struct err err = {0};
  copy(f, "null", "null");
  copy(f, "null_long", "null_long");
  const struct module *first = modules_load(f->modules, "null", &err);
  const struct module *second = modules_load(f->modules, "null_long", &err);
  assert_non_null(first);
  assert_non_null(second);
  assert_string_equal(first->plugin->name, "null");
  assert_string_equal(second->plugin->name, "null_long");
}

static void test_absent(void **state) {
  const struct fixture *f = *state;
  struct err err = {0};
  assert_null(modules_load(f->modules, "kafak", &err));
  char text[256];
  snprintf(text, sizeof text, "there is no plugin module \"kafak\"; looked for kafak.so in %s, ", f->folder);
  assert_memory_equal(err.text, text, strlen(text));
}

static void test_names(void **state) {
  const struct fixture *f = *state;
  const char *const names[] = {"", "../null", "a/b", ".hidden", "./null.so"};
  for (size_t i = 0; i < ARRAY_LEN(names); i++) {
    char text[256];
    snprintf(text, sizeof text,
             "\"%s\" is neither a module's name nor an absolute path; write kafka, amqp, http or /path/to/plugin.so",
             names[i]);
    expect_refused(f, names[i], text);
  }
}

static void test_symbol(void **state) {
  expect_bad(*state, "bad_symbol", "exports no duebox_plugin_v1, so it is no duebox plugin");
}

static void test_magic(void **state) {
  expect_bad(*state, "bad_magic",
             "magic is 0x21444142, wanted 0x44554542: this is no duebox plugin, or its prefix is damaged");
}

static void test_major(void **state) {
  expect_bad(*state, "bad_major", "ABI is 2.10, wanted 1.x: build the plugin against this duebox's headers");
}

static void test_minor(void **state) {
  expect_bad(*state, "bad_minor",
             "ABI is 1.11, this duebox offers 1.10: upgrade duebox, or build the plugin against its headers");
}

static void test_size(void **state) {
  expect_bad(*state, "bad_size",
             "descriptor has 64 bytes, wanted at least 200: it was cut; begin it with DUEBOX_PLUGIN_PREFIX");
}

static void test_capability(void **state) {
  expect_bad(*state, "bad_capability", "capability bits 0x4000 are unknown to this duebox: upgrade duebox");
}

static void test_sink(void **state) { expect_bad(*state, "bad_sink", "it says sink, but has no sink functions"); }

static void test_lifecycle(void **state) {
  expect_bad(*state, "bad_lifecycle", "the function wakeup is missing; the function stop is missing");
}

static void test_option(void **state) {
  expect_bad(*state, "bad_option",
             "options: \"beyond\" at offset 16 does not fit into the struct of 16 bytes; "
             "options: \"number\" is there twice; "
             "options: the built-in default of \"limit\" is wrong: \"maybe\" is neither true nor false; write true or "
             "false; "
             "options: the name \"module\" belongs to duebox itself");
}

static void test_not_a_library(void **state) {
  const struct fixture *f = *state;
  const char *path = copy(f, "null", "text");
  struct err err = {0};
  int fd = open(path, O_WRONLY | O_TRUNC);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, "hello", 5), 5);
  close(fd);
  assert_null(modules_load(f->modules, "text", &err));
  assert_non_null(strstr(err.text, "text.so: cannot be loaded: "));
}

static void test_symbolic_link(void **state) {
  const struct fixture *f = *state;
  char link[PATH_MAX], text[PATH_MAX + 64];
  const char *path = copy(f, "null", "real");
  snprintf(link, sizeof link, "%s/link.so", f->folder);
  assert_int_equal(symlink(path, link), 0);
  snprintf(text, sizeof text, "%s: is a symbolic link; name the file itself", link);
  expect_refused(f, "link", text);
}

static void test_folder_as_plugin(void **state) {
  const struct fixture *f = *state;
  char path[PATH_MAX], text[PATH_MAX + 64];
  snprintf(path, sizeof path, "%s/dir.so", f->folder);
  assert_int_equal(mkdir(path, 0755), 0);
  snprintf(text, sizeof text, "%s: is not a regular file", path);
  expect_refused(f, "dir", text);
}

static void test_writable_by_others(void **state) {
  const struct fixture *f = *state;
  char text[PATH_MAX + 128];
  const char *path = copy(f, "null", "open");
  assert_int_equal(chmod(path, 0664), 0);
  snprintf(text, sizeof text, "%s: may be written by others (mode 0664); run: chmod go-w %s", path, path);
  expect_refused(f, "open", text);
  assert_int_equal(chmod(path, 0646), 0);
  snprintf(text, sizeof text, "%s: may be written by others (mode 0646); run: chmod go-w %s", path, path);
  expect_refused(f, "open", text);
}

static void test_owner(void **state) {
  const struct fixture *f = *state;
  char text[PATH_MAX + 128];
  if (geteuid() != 0)
    skip(); /* only root can give a file away */
  const char *path = copy(f, "null", "foreign");
  assert_int_equal(chown(path, 65534, 65534), 0);
  snprintf(text, sizeof text,
           "%s: belongs to another user (uid 65534), wanted root or the daemon's user (uid 0); run: chown root %s",
           path, path);
  expect_refused(f, "foreign", text);
}

static void test_folder_owner(void **state) {
  const struct fixture *f = *state;
  char text[PATH_MAX + 256];
  if (geteuid() != 0)
    skip();
  const char *path = copy(f, "null", "null");
  assert_int_equal(chown(f->folder, 65534, 65534), 0);
  snprintf(text, sizeof text,
           "%s: its folder %s belongs to another user (uid 65534) who could swap it; run: chown root %s, or use a "
           "folder of root",
           path, f->folder, f->folder);
  expect_refused(f, "null", text);
}

static void test_folder_writable(void **state) {
  const struct fixture *f = *state;
  struct err err = {0};
  char text[PATH_MAX + 256];
  const char *path = copy(f, "null", "null");
  assert_int_equal(chmod(f->folder, 0777), 0);
  snprintf(text, sizeof text, "%s: everybody may write into its folder %s; run: chmod o-w %s", path, f->folder,
           f->folder);
  expect_refused(f, "null", text);
  assert_int_equal(chown(f->folder, (uid_t)-1, 12345), 0);
  assert_int_equal(chmod(f->folder, 0775), 0);
  snprintf(text, sizeof text,
           "%s: a group (gid 12345) or an ACL lets others write into its folder %s; run: chmod g-w %s", path, f->folder,
           f->folder);
  expect_refused(f, "null", text);
  assert_int_equal(chown(f->folder, (uid_t)-1, 0), 0); /* root's group is root's */
  assert_non_null(modules_load(f->modules, "null", &err));
}

/* Where there is an ACL, whoever it names shows in the bits of the group. */
static void test_folder_with_an_acl(void **state) {
  const struct fixture *f = *state;
  char text[PATH_MAX + 256];
  struct err err = {0};
  const struct { /* acl(5) as the kernel has it: u::rwx u:65534:rwx g::r-x m::rwx o::r-x */
    uint32_t version;
    struct {
      uint16_t tag, bits;
      uint32_t id;
    } entries[5];
  } acl = {2, {{1, 7, UINT32_MAX}, {2, 7, 65534}, {4, 5, UINT32_MAX}, {16, 7, UINT32_MAX}, {32, 5, UINT32_MAX}}};
  const char *path = copy(f, "null", "null");
  if (geteuid() != 0 || setxattr(f->folder, "system.posix_acl_access", &acl, sizeof acl, 0) != 0)
    skip();
  snprintf(text, sizeof text, "%s: a group (gid 0) or an ACL lets others write into its folder %s; run: chmod g-w %s",
           path, f->folder, f->folder);
  expect_refused(f, "null", text);
  assert_int_equal(chmod(f->folder, 01777), 0); /* sticky: others cannot swap what is ours */
  assert_non_null(modules_load(f->modules, "null", &err));
}

/* A link on the way that somebody else owns could lead to his own file the next time. */
static void test_foreign_link(void **state) {
  const struct fixture *f = *state;
  char link[PATH_MAX], path[2 * PATH_MAX];
  struct err err = {0};
  copy(f, "null", "null");
  snprintf(link, sizeof link, "%s/way", f->folder);
  snprintf(path, sizeof path, "%s/null.so", link);
  assert_int_equal(symlink(f->folder, link), 0);
  if (geteuid() != 0)
    skip();
  assert_int_equal(lchown(link, 12345, (gid_t)-1), 0);
  assert_null(modules_load(f->modules, path, &err));
  assert_non_null(strstr(err.text, "symbolic link"));
  assert_int_equal(lchown(link, 0, (gid_t)-1), 0);
  if (!modules_load(f->modules, path, &err))
    fail_msg("%s", err.text);
}

/* A bad file in the first folder is an error, not a reason to take one from the next folder. */
static void test_no_fall_back(void **state) {
  struct fixture *f = *state;
  char path[256], first[128], text[512], command[512];
  snprintf(first, sizeof first, "%s/first", f->folder);
  snprintf(command, sizeof command, "mkdir %s && cp %s/bad_magic.so %s/null.so && chmod 644 %s/null.so", first,
           TEST_PLUGINS, first, first);
  assert_int_equal(system(command), 0);
  copy(f, "null", "null");
  snprintf(path, sizeof path, "%s:%s", first, f->folder);
  assert_int_equal(setenv("DUEBOX_PLUGIN_PATH", path, 1), 0);
  modules_free(&f->modules);
  f->modules = modules_new();
  assert_string_equal(modules_dir(f->modules, 0), first);
  assert_string_equal(modules_dir(f->modules, 1), f->folder);
  snprintf(text, sizeof text,
           "%s/null.so: refused: magic is 0x21444142, wanted 0x44554542: this is no duebox plugin, or its prefix is "
           "damaged",
           first);
  expect_refused(f, "null", text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_good_plugin),
      TEST(test_cut_short),
      TEST(test_two_plugins_stay_two),
      TEST(test_absent),
      TEST(test_names),
      TEST(test_symbol),
      TEST(test_magic),
      TEST(test_major),
      TEST(test_minor),
      TEST(test_size),
      TEST(test_capability),
      TEST(test_sink),
      TEST(test_lifecycle),
      TEST(test_option),
      TEST(test_not_a_library),
      TEST(test_symbolic_link),
      TEST(test_folder_as_plugin),
      TEST(test_writable_by_others),
      TEST(test_owner),
      TEST(test_folder_owner),
      TEST(test_folder_writable),
      TEST(test_folder_with_an_acl),
      TEST(test_foreign_link),
      TEST(test_no_fall_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
