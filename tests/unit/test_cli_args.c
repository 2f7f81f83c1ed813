/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_cli_args.c - command lines, right and wrong, and the table they are read by.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "cli/args.h"

enum { WORDS_MAX = 16 };

/* Splits a line at blanks ('_' stands for a blank inside a word) and parses it. The words live in `line`. */
struct parsed {
  char line[400];
  char *argv[WORDS_MAX];
  struct args args;
  struct err err;
  bool ok;
};

static void parse(struct parsed *p, const char *line) {
  int argc = 0;
  *p = (struct parsed){0};
  snprintf(p->line, sizeof p->line, "duebox %s", line);
  for (char *word = strtok(p->line, " "); word; word = strtok(NULL, " ")) {
    for (char *c = word; *c; c++)
      if (*c == '_')
        *c = ' ';
    p->argv[argc++] = word;
  }
  p->ok = args_parse(argc, p->argv, &p->args, &p->err);
}

static void lines_that_are_right(void **state) {
  static const struct {
    const char *line, *noun, *verb;
    int operands;
    bool help;
  } rows[] = {
      {"version", "version", NULL, 0, false},
      {"-o json version", "version", NULL, 0, false},
      {"version -o json", "version", NULL, 0, false},
      {"version -ojson -q", "version", NULL, 0, false},
      {"-qqqqqqqqqqqqqqqqqqqqqqqq version -qqqqqqqqqqqqqqqqqqqqqqqqqqqqq", "version", NULL, 0, false},
      {"--config=x.yaml --quiet task list", "task", "list", 0, false},
      {"task cancel 1 --reason why 2 3", "task", "cancel", 3, false},
      {"task cancel --dry-run -- -5 --yes", "task", "cancel", 2, false},
      {"task list --due-after -1h", "task", "list", 0, false},
      {"task list -s dead -r a -n 5", "task", "list", 0, false},
      {"help task list", "task", "list", 0, true},
      {"task show --help", "task", "show", 0, true},
      {"migrate status", "migrate", NULL, 1, false},
      {"task add r --payload= --target-host=", "task", "add", 1, false},
      {"-o json task add r -H a=1 -H b=2", "task", "add", 1, false},
      {"task cancel 1 2 1 m 2 m", "task", "cancel", 3, false},
      {"task cancel -r a --yes -y", "task", "cancel", 0, false},
  };
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    struct parsed p;
    parse(&p, rows[i].line);
    if (!p.ok || !p.args.command)
      fail_msg("%s: %s", rows[i].line, p.err.text);
    assert_string_equal(p.args.command->noun, rows[i].noun);
    if (rows[i].verb)
      assert_string_equal(p.args.command->verb, rows[i].verb);
    else
      assert_null(p.args.command->verb);
    assert_int_equal(p.args.help, rows[i].help);
    if (!rows[i].help)
      assert_int_equal(p.args.operand_count, rows[i].operands);
    args_free(&p.args);
  }
}

static void lines_that_are_wrong(void **state) {
  static const struct {
    const char *line, *text;
  } rows[] = {
      {"verson", "unknown command verson (did you mean version?); `duebox help` lists them"},
      {"frobnicate", "unknown command frobnicate; `duebox help` lists them"},
      {"task lsit", "task: unknown verb lsit (did you mean list?); `duebox help task` lists the verbs"},
      {"task --route x", "task: the verb comes before its options; `duebox help task` lists the verbs"},
      {"--verbose version", "unknown option --verbose; see `duebox --help`"},
      {"task list --roude x",
       "task list: unknown option --roude (did you mean --route?); see `duebox task list --help`"},
      {"task list --yes", "task list: unknown option --yes; see `duebox task list --help`"},
      {"task list -Z", "task list: unknown option -Z; see `duebox task list --help`"},
      {"task list --route", "task list: --route needs a value; see `duebox task list --help`"},
      {"task list -r", "task list: -r needs a value; see `duebox task list --help`"},
      {"version --quiet=yes", "version: --quiet takes no value; see `duebox version --help`"},
      {"task show", "task show: missing ID; see `duebox task show --help`"},
      {"task show 1 2", "task show: \"2\" is one word too many; see `duebox task show --help`"},
      {"task list --key=", "task list: --key needs a value, and it is empty; see `duebox task list --help`"},
      {"task cancel 1 --reason=",
       "task cancel: --reason needs a value, and it is empty; see `duebox task cancel --help`"},
      {"task cancel --route a -r b --yes", "task cancel: --route is given twice; see `duebox task cancel --help`"},
      {"task add r --payload a --payload=", "task add: --payload is given twice; see `duebox task add --help`"},
      {"task list -o json --output text", "task list: --output is given twice; see `duebox task list --help`"},
      {"-c a task list -c b", "task list: --config is given twice; see `duebox task list --help`"},
      {"--color always --color never version", "--color is given twice; see `duebox --help`"},
      {"--config= version", "--config needs a value, and it is empty; see `duebox --help`"},
      {"task add r --at now --delay 1s", "task add: give --at or --delay, not both; see `duebox task add --help`"},
      {"task reschedule 1 --delay 1s --at now",
       "task reschedule: give --at or --delay, not both; see `duebox task reschedule --help`"},
      {"task add r --payload= --payload-file x",
       "task add: give --payload or --payload-file, not both; see `duebox task add --help`"},
      {"migrate --show-sql --dry-run", "migrate: give --dry-run or --show-sql, not both; see `duebox migrate --help`"},
      {"version now", "version: \"now\" is one word too many; see `duebox version --help`"},
  };
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    struct parsed p;
    parse(&p, rows[i].line);
    if (p.ok)
      fail_msg("%s was taken", rows[i].line);
    assert_string_equal(p.err.text, rows[i].text);
    assert_int_equal(p.err.code, EX_USAGE);
    args_free(&p.args);
  }
}

/* What strtok() cannot make. */
static void an_empty_operand_is_refused(void **state) {
  char words[] = "duebox\0task\0show\0";
  char *argv[] = {words, words + 7, words + 12, words + 17, NULL};
  struct args args;
  struct err err = {0};
  assert_false(args_parse(4, argv, &args, &err));
  assert_string_equal(err.text, "task show: an operand is empty: ID; see `duebox task show --help`");
  assert_int_equal(err.code, EX_USAGE);
  args_free(&args);
  char version[] = "version";
  argv[1] = version;
  argv[2] = words + 17;
  argv[3] = NULL;
  assert_false(args_parse(3, argv, &args, &err));
  assert_string_equal(err.text, "version: \"\" is one word too many; see `duebox version --help`");
  args_free(&args);
}

/* The table of paused routes keeps no more, and a daemon refuses what is longer, task by task. */
static void a_long_reason_is_refused(void **state) {
  struct parsed p;
  char line[400] = "task cancel 1 --reason ";
  size_t head = strlen(line);
  memset(line + head, 'r', 255);
  parse(&p, line);
  assert_true(p.ok);
  args_free(&p.args);
  line[head + 255] = 'r';
  parse(&p, line);
  assert_false(p.ok);
  assert_int_equal(p.err.code, EX_USAGE);
  assert_string_equal(p.err.text, "task cancel: --reason has 256 bytes, and 255 at most are kept; see `duebox task "
                                  "cancel --help`");
  args_free(&p.args);
}

static void help_without_a_command(void **state) {
  struct parsed p;
  parse(&p, "");
  assert_true(p.ok);
  assert_null(p.args.command);
  assert_false(p.args.help);
  args_free(&p.args);
  parse(&p, "help task");
  assert_true(p.ok && p.args.help);
  assert_null(p.args.command);
  assert_string_equal(p.args.noun, "task");
  args_free(&p.args);
  parse(&p, "task");
  assert_true(p.ok);
  assert_false(p.args.help);
  args_free(&p.args);
}

static void typed_values(void **state) {
  struct parsed p;
  int64_t value = 42, ms = 7;
  double rate = 3;
  parse(&p, "task add r --priority 9 --timeout 15m");
  assert_true(args_int(&p.args, OPT_PRIORITY, 1, 9, &value, &p.err));
  assert_int_equal(value, 9);
  assert_true(args_duration(&p.args, OPT_TIMEOUT, &ms, &p.err));
  assert_int_equal(ms, 15 * 60000);
  assert_true(args_int(&p.args, OPT_MAX_ATTEMPTS, 1, 9, &value, &p.err)); /* not given: unchanged */
  assert_int_equal(value, 9);
  args_free(&p.args);

  parse(&p, "task cancel --rate 6000/m --limit 0x10");
  assert_true(args_rate(&p.args, OPT_RATE, &rate, &p.err));
  assert_true(rate > 99.9 && rate < 100.1);
  assert_false(args_int(&p.args, OPT_LIMIT, 1, 100, &value, &p.err));
  assert_string_equal(p.err.text, "--limit: \"0x10\" is no whole number from 1 to 100");
  args_free(&p.args);

  parse(&p, "task add r --priority 10 --timeout soon");
  assert_false(args_int(&p.args, OPT_PRIORITY, 1, 9, &value, &p.err));
  assert_string_equal(p.err.text, "--priority: \"10\" is no whole number from 1 to 9");
  assert_false(args_duration(&p.args, OPT_TIMEOUT, &ms, &p.err));
  assert_int_equal(p.err.code, EX_USAGE);
  assert_non_null(strstr(p.err.text, "--timeout: \"soon\""));
  args_free(&p.args);
}

static void times(void **state) {
  static const struct {
    const char *word;
    bool ok, relative;
    int64_t us;
  } rows[] = {
      {"now", true, true, 0},
      {"+30m", true, true, INT64_C(1800000000)},
      {"-2h", true, true, INT64_C(-7200000000)},
      {"1970-01-02", true, false, INT64_C(86400000000)},
      {"2026-01-31T08:00:00Z", true, false, INT64_C(1769846400000000)},
      {"2026-01-31_08:00", true, false, INT64_C(1769846400000000)},
      {"2026-01-31T09:00:00+01:00", true, false, INT64_C(1769846400000000)},
      {"2026-01-31T08:00:00.5Z", true, false, INT64_C(1769846400500000)},
      {"2026-01-31T08:00:00.123456", true, false, INT64_C(1769846400123456)},
      {"2024-02-29", true, false, INT64_C(1709164800000000)},
      {"2026-02-29", false, false, 0},
      {"2026-13-01", false, false, 0},
      {"2026-01-31T24:00:00Z", false, false, 0},
      {"2026-01-31T08:00:00.1234567Z", false, false, 0},
      {"2026-01-31T08:00:00X", false, false, 0},
      {"2026-1-31", false, false, 0},
      {"30m", false, false, 0},
      {"+", false, false, 0},
      {"tomorrow", false, false, 0},
      {"+9999999999d", false, false, 0}, /* fits into milliseconds, but not into microseconds */
      {"-9999999999d", false, false, 0},
  };
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    char line[64];
    struct parsed p;
    struct when when = {0};
    snprintf(line, sizeof line, "task reschedule --at %s", rows[i].word);
    parse(&p, line);
    assert_true(p.ok);
    if (args_when(&p.args, OPT_AT, &when, &p.err) != rows[i].ok)
      fail_msg("%s", rows[i].word);
    if (rows[i].ok) {
      assert_true(when.given);
      assert_int_equal(when.relative, rows[i].relative);
      assert_int_equal(when.us, rows[i].us);
    } else {
      assert_int_equal(p.err.code, EX_USAGE);
    }
    args_free(&p.args);
  }
}

/* The table itself: what help, completion and parsing rely on. */
static void the_table_is_sound(void **state) {
  for (size_t i = 0; i < command_count; i++) {
    const struct command *c = &commands[i];
    assert_non_null(noun_find(c->noun));
    assert_ptr_equal(command_find(c->noun, c->verb), c);
    assert_non_null(c->run);
    assert_non_null(strstr(c->examples, "  duebox "));
    assert_true(c->examples[strlen(c->examples) - 1] == '\n');
    assert_true(!c->details || c->details[strlen(c->details) - 1] == '\n');
    char letters[OPTIONS + 1] = "";
    for (int id = 0; id < GLOBAL_OPTIONS; id++)
      strncat(letters, &option_rows[id].letter, 1);
    for (const enum option_id *id = c->options; *id != OPTIONS; id++) {
      if (option_rows[*id].letter && strchr(letters, option_rows[*id].letter))
        fail_msg("%s %s: two options -%c", c->noun, c->verb ? c->verb : "", option_rows[*id].letter);
      strncat(letters, &option_rows[*id].letter, 1);
    }
  }
  for (size_t i = 0; i < noun_count; i++) {
    bool used = false;
    for (size_t j = 0; j < command_count; j++)
      used |= strcmp(commands[j].noun, nouns[i].name) == 0;
    if (!used)
      fail_msg("%s has no command", nouns[i].name);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lines_that_are_right),
      cmocka_unit_test(lines_that_are_wrong),
      cmocka_unit_test(an_empty_operand_is_refused),
      cmocka_unit_test(a_long_reason_is_refused),
      cmocka_unit_test(help_without_a_command),
      cmocka_unit_test(typed_values),
      cmocka_unit_test(times),
      cmocka_unit_test(the_table_is_sound),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
