/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_yaml.c - YAML as a tree: no implicit typing, places, expansion, limits. The errors that a
 * configuration can show are in test_config_errors.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/yaml.h"

static int set_up(void **state) {
  *state = arena_new();
  return 0;
}

static int tear_down(void **state) {
  struct arena *arena = *state;
  arena_free(&arena);
  assert_null(arena);
  return 0;
}

static const struct yaml_node *parse(struct arena *arena, const char *text) {
  struct err err = {0};
  const struct yaml_node *root = yaml_parse("f.yaml", text, strlen(text), arena, &err);
  if (!root)
    fail_msg("%s", err.text);
  return root;
}

static void test_everything_is_text(void **state) {
  const struct yaml_node *root = parse(*state, "a: no\nb: 1e3\nc: 012\nd: null\ne: ~\nf: 2020-01-01\n");
  static const char *const texts[] = {"no", "1e3", "012", "null", "~", "2020-01-01"};
  assert_int_equal(root->count, 6);
  for (size_t i = 0; i < 6; i++) {
    assert_int_equal(root->items[i]->kind, YAML_TEXT);
    assert_string_equal(root->items[i]->text, texts[i]);
    assert_false(yaml_absent(root->items[i]));
  }
}

static void test_places(void **state) {
  char path[64];
  const struct yaml_node *root = parse(*state, "routes:\n  a.b:\n    topic: 'x'\n    levels: [ 5s,\n      30s]\n");
  const struct yaml_node *route = yaml_get(yaml_get(root, "routes"), "a.b"), *topic = yaml_get(route, "topic");
  assert_int_equal(topic->line, 3);
  assert_int_equal(topic->column, 12);
  assert_int_equal(topic->key_line, 3);
  assert_int_equal(topic->key_column, 5);
  const struct yaml_node *second = yaml_get(route, "levels")->items[1];
  assert_int_equal(second->line, 5);
  assert_int_equal(second->column, 7);
  yaml_path(second, path, sizeof path);
  assert_string_equal(path, "routes.a.b.levels[1]");
  yaml_path(root, path, sizeof path);
  assert_string_equal(path, "");
  char small[12];
  yaml_path(second, small, sizeof small);
  assert_string_equal(small, "routes.a.b."); /* cut, not overrun */
  struct err err = {0};
  assert_false(yaml_key_err(topic, &err, "is %s", "odd"));
  assert_string_equal(err.text, "f.yaml:3:5: routes.a.b.topic: is odd");
  assert_null(yaml_get(topic, "x"));
  assert_null(yaml_get(NULL, "x"));
}

static void test_absent(void **state) {
  const struct yaml_node *root = parse(*state, "a:\nb: \"\"\nc: ''\nd: {}\n");
  assert_true(yaml_absent(yaml_get(root, "a")));
  assert_false(yaml_absent(yaml_get(root, "b")));
  assert_false(yaml_absent(yaml_get(root, "c")));
  assert_false(yaml_absent(yaml_get(root, "d")));
  assert_true(yaml_absent(yaml_get(root, "e")));
  assert_int_equal(parse(*state, "")->kind, YAML_MAP);
  assert_int_equal(parse(*state, "# nothing\n")->kind, YAML_MAP);
  assert_int_equal(parse(*state, "---\n")->kind, YAML_MAP);
}

static void test_expansion(void **state) {
  static const char *const rows[][2] = {
      {"${DUEBOX_T}", "value"},
      {"a${DUEBOX_T}b", "avalueb"},
      {"${DUEBOX_T}${DUEBOX_T}", "valuevalue"},
      {"$${DUEBOX_T}", "${DUEBOX_T}"},
      {"$", "$"},
      {"a$b", "a$b"},
      {"$$", "$$"},
      {"$$$${DUEBOX_T}", "$$${DUEBOX_T}"},
      {"{task_key}", "{task_key}"},
      {"${DUEBOX_EMPTY}", ""},
      {"${DUEBOX_TRICK}", "${DUEBOX_T}"},
  };
  assert_int_equal(setenv("DUEBOX_T", "value", 1), 0);
  assert_int_equal(setenv("DUEBOX_EMPTY", "", 1), 0);
  assert_int_equal(setenv("DUEBOX_TRICK", "${DUEBOX_T}", 1), 0); /* expanded once only */
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char text[64];
    snprintf(text, sizeof text, "a: \"%s\"\n", rows[i][0]);
    const struct yaml_node *a = yaml_get(parse(*state, text), "a");
    assert_string_equal(a->text, rows[i][1]);
    assert_int_equal(a->from_env != NULL, strncmp(rows[i][0], "$${", 3) != 0 && strncmp(rows[i][0], "$$$", 3) != 0 &&
                                              strstr(rows[i][0], "${") != NULL);
  }
  assert_string_equal(parse(*state, "${DUEBOX_T}: x\n")->items[0]->name, "${DUEBOX_T}"); /* keys are never expanded */
}

static const struct {
  const char *text;
  size_t len; /* 0 = strlen */
  const char *error;
} bad[] = {
    {"a: \"x\\0y\"\n", 0, "f.yaml:1:4: a value must not hold a NUL character"},
    {"\"x\\0y\": b\n", 0, "f.yaml:1:1: a value must not hold a NUL character"},
    {"a: \xff\n", 0,
     "f.yaml: byte 3: invalid leading UTF-8 octet; the file must be UTF-8 text without control characters"},
    {"a: \x01\n", 0,
     "f.yaml: byte 3: control characters are not allowed; the file must be UTF-8 text without control characters"},
    {"a: b\0c\n", 7,
     "f.yaml: byte 4: control characters are not allowed; the file must be UTF-8 text without control characters"},
    {"a:\n\tb: c\n", 0,
     "f.yaml:2:1: not valid YAML: found character that cannot start any token while scanning for the next token"},
    {"? [a]\n: b\n", 0, "f.yaml:1:3: a key must be a simple text; anchors, lists and maps cannot be keys"},
    {"? &k a\n: b\n", 0, "f.yaml:1:3: anchors (&name) and tags (!type) are not supported; write the key plainly"},
    {"<<: *base\n", 0,
     "f.yaml:1:5: anchors (&name) and aliases (*name) are not supported; write the value out, or quote it"},
    {"a: !!binary aGk=\n", 0, "f.yaml:1:4: tags (!type) are not supported; remove it, or quote the value"},
    {"a: 1\n---\nb: 2\n", 0, "f.yaml:2:1: a second document begins here; remove the \"---\" or use a file in conf.d"},
    {"a: ${\n", 0, "f.yaml:1:4: \"${\" must be followed by NAME}; write \"$${\" for the characters \"${\""},
    {"a: \"${B C}\"\n", 0, "f.yaml:1:4: \"${\" must be followed by NAME}; write \"$${\" for the characters \"${\""},
    {"a: 1\nb: {c: 1, c: 2}\n", 0,
     "f.yaml:2:11: b.c: this key was given before, at line 2 column 5; remove one of them"},
};

static void test_bad(void **state) {
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    struct err err = {0};
    size_t len = bad[i].len ? bad[i].len : strlen(bad[i].text);
    assert_null(yaml_parse("f.yaml", bad[i].text, len, *state, &err));
    assert_string_equal(err.text, bad[i].error);
  }
}

/* Editors on Windows begin a file with it, and YAML allows that. */
static void test_byte_order_mark(void **state) {
  assert_non_null(parse(*state, "\xef\xbb\xbf"
                                "a: 1\n"));
}

static void test_files(void **state) {
  struct err err = {0};
  assert_null(yaml_load("/nowhere/x.yaml", *state, &err));
  assert_string_equal(err.text, "/nowhere/x.yaml: cannot be read: No such file or directory");
  assert_null(yaml_load("/", *state, &err));
  assert_string_equal(err.text, "/: is not a file");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_everything_is_text), TEST(test_places), TEST(test_absent), TEST(test_expansion), TEST(test_bad),
      TEST(test_byte_order_mark),    TEST(test_files)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
