/* SPDX-License-Identifier: MIT
 *
 * Which paths another user of this machine could replace. Folders below /tmp whose owners and modes the tests change,
 * which takes root.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/way.h"

enum { SERVER = 12345, STRANGER = 65534 };
enum { FOLDER_MAX = 64, PLACE_MAX = 128 };

struct fixture {
  char folder[FOLDER_MAX], inner[PLACE_MAX], file[2 * PLACE_MAX];
};

/* /tmp/.../inner/file, all of it root's. */
static int set_up(void **state) {
  static struct fixture f;
  strcpy(f.folder, "/tmp/duebox-way-XXXXXX");
  if (!mkdtemp(f.folder) || chmod(f.folder, 0755) != 0)
    return -1;
  snprintf(f.inner, sizeof f.inner, "%s/inner", f.folder);
  snprintf(f.file, sizeof f.file, "%s/file", f.inner);
  *state = &f;
  return mkdir(f.inner, 0755) != 0 || close(open(f.file, O_CREAT | O_WRONLY, 0600)) != 0;
}

static int tear_down(void **state) {
  const struct fixture *f = *state;
  char command[PLACE_MAX];
  snprintf(command, sizeof command, "rm -rf %s", f->folder);
  return system(command);
}

static void own(const char *path, uid_t uid, mode_t mode) {
  assert_int_equal(chown(path, uid, 0), 0);
  assert_int_equal(chmod(path, mode), 0);
}

static void expect(const struct fixture *f, enum way_end end, const char *wanted) {
  struct err err = {0};
  bool ok = way_check(f->file, end, &err);
  if (ok != !wanted || (wanted && !strstr(err.text, wanted)))
    fail_msg("wanted \"%s\", got \"%s\"", wanted ? wanted : "no error", ok ? "no error" : err.text);
}

static void nobody_elses_is_right_for_all(void **state) {
  for (int end = WAY_OURS; end <= WAY_SERVER; end++)
    expect(*state, end, NULL);
}

/* mysqld runs as a user of its own, which owns /run/mysqld and the socket. */
static void a_server_has_a_folder_of_its_own(void **state) {
  struct fixture *f = *state;
  if (geteuid() != 0)
    skip();
  own(f->inner, SERVER, 0755);
  own(f->file, SERVER, 0777);
  expect(f, WAY_SERVER, NULL);
  expect(f, WAY_GIVEN, "inner belongs to another user");
  expect(f, WAY_OURS, "inner belongs to another user");
}

/* It is gone while the server is down, and then whoever may write there could make it. */
static void what_is_missing_may_be_made_by_its_owner_only(void **state) {
  struct fixture *f = *state;
  struct err err = {0};
  assert_int_equal(unlink(f->file), 0);
  expect(f, WAY_SERVER, NULL);
  expect(f, WAY_GIVEN, NULL);
  expect(f, WAY_OURS, "No such file");
  assert_int_equal(chmod(f->inner, 01777), 0);
  for (int end = WAY_OURS; end <= WAY_SERVER; end++) {
    assert_false(way_check(f->file, end, &err));
    assert_int_equal(err.code, ENOENT);
  }
}

/* Anybody can make a folder, or a socket, in /tmp. */
static void what_a_stranger_put_into_a_sticky_folder_is_refused(void **state) {
  struct fixture *f = *state;
  if (geteuid() != 0)
    skip();
  own(f->file, STRANGER, 0600);
  own(f->inner, 0, 01777);
  for (int end = WAY_OURS; end <= WAY_SERVER; end++)
    expect(f, end, "file belongs to another user (uid 65534)");
  own(f->folder, 0, 01777);
  own(f->inner, STRANGER, 0755);
  for (int end = WAY_OURS; end <= WAY_SERVER; end++)
    expect(f, end, "inner belongs to another user (uid 65534)");
  own(f->inner, 0, 0755);
  own(f->file, 0, 0600);
  for (int end = WAY_OURS; end <= WAY_SERVER; end++) /* what is ours there, nobody can move away */
    expect(f, end, NULL);
}

/* The secrets of a daemon with a user of its own, read by a command of root. */
static void a_file_may_be_given_to_another_user(void **state) {
  struct fixture *f = *state;
  if (geteuid() != 0)
    skip();
  own(f->file, SERVER, 0600);
  expect(f, WAY_GIVEN, NULL);
  expect(f, WAY_OURS, "file belongs to another user (uid 12345)");
}

static void others_may_not_write_into_a_folder_on_the_way(void **state) {
  struct fixture *f = *state;
  assert_int_equal(chmod(f->folder, 0777), 0);
  for (int end = WAY_OURS; end <= WAY_SERVER; end++)
    expect(f, end, "run: chmod o-w /tmp/");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(nobody_elses_is_right_for_all),
      TEST(a_server_has_a_folder_of_its_own),
      TEST(what_is_missing_may_be_made_by_its_owner_only),
      TEST(what_a_stranger_put_into_a_sticky_folder_is_refused),
      TEST(a_file_may_be_given_to_another_user),
      TEST(others_may_not_write_into_a_folder_on_the_way),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
