/* SPDX-License-Identifier: MIT */
#include "cli/args.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cli/times.h"
#include "core/operator.h"
#include "core/options.h"

const struct option_row option_rows[OPTIONS] = {
#define OPTION(id, name, letter, metavar, words, help) [OPT_##id] = {name, letter, metavar, words, help},
#include "cli/options.def"
#undef OPTION
};

/* The global options and those of a command in getopt's form. A long option answers 256 + its id, beyond all letters.
 */
struct getopt_rows {
  struct option longs[OPTIONS + 1];
  char shorts[2 * OPTIONS + 3];
  enum option_id by_letter[128];
};

static void add_row(struct getopt_rows *rows, size_t *count, enum option_id id) {
  const struct option_row *row = &option_rows[id];
  int argument = row->metavar ? required_argument : no_argument;
  rows->longs[(*count)++] = (struct option){row->name, argument, NULL, 256 + (int)id};
  if (!row->letter)
    return;
  size_t used = strlen(rows->shorts);
  rows->shorts[used] = row->letter;
  if (row->metavar)
    rows->shorts[used + 1] = ':';
  rows->by_letter[(int)row->letter] = id;
}

/* prefix: "+" stops at the first operand, ":" tells a missing value from an unknown option. */
static void make_rows(struct getopt_rows *rows, const char *prefix, const struct command *command) {
  *rows = (struct getopt_rows){0};
  snprintf(rows->shorts, sizeof rows->shorts, "%s", prefix);
  size_t count = 0;
  for (int id = 0; id < GLOBAL_OPTIONS; id++)
    add_row(rows, &count, (enum option_id)id);
  for (const enum option_id *id = command ? command->options : NULL; id && *id != OPTIONS; id++)
    add_row(rows, &count, *id);
}

static const char *suggest_option(const struct getopt_rows *rows, const char *word) {
  const char *known[OPTIONS];
  size_t count = 0;
  for (const struct option *o = rows->longs; o->name; o++)
    known[count++] = o->name;
  char bare[64];
  snprintf(bare, sizeof bare, "%.*s", (int)strcspn(word + 2, "="), word + 2);
  return option_suggest(bare, known, count);
}

/* Sets err to "task list: <text>; see `duebox task list --help`". */
static bool refuse(struct err *err, const struct args *args, const char *fmt, ...) PRINTF(3, 4);
static bool refuse(struct err *err, const struct args *args, const char *fmt, ...) {
  char text[512], where[64] = "";
  va_list values;
  va_start(values, fmt);
  vsnprintf(text, sizeof text, fmt, values);
  va_end(values);
  const struct command *c = args->command;
  if (c)
    snprintf(where, sizeof where, "%s%s%s", c->noun, c->verb ? " " : "", c->verb ? c->verb : "");
  return err_set(err, EX_USAGE, "%s%s%s; see `duebox %s%s--help`", where, c ? ": " : "", text, where, c ? " " : "");
}

/* getopt has refused argv[optind - 1], or a letter inside it. */
static bool refuse_option(int answer, char **argv, const struct getopt_rows *rows, const struct args *args,
                          struct err *err) {
  const char *word = argv[optind - 1];
  if (answer == ':')
    return refuse(err, args, "%s needs a value", word);
  if (optopt >= 256)
    return refuse(err, args, "--%s takes no value", option_rows[optopt - 256].name);
  if (optopt)
    return refuse(err, args, "unknown option -%c", optopt);
  const char *near = suggest_option(rows, word);
  return refuse(err, args, "unknown option %s%s%s%s", word, near ? " (did you mean --" : "", near ? near : "",
                near ? "?)" : "");
}

/* An empty value is what a script's variable leaves that was never set: no task has an empty key, and one that selects
 * by it would select by nothing. A payload may be empty, and no host means any. */
static bool may_be_empty(enum option_id id) { return id == OPT_PAYLOAD || id == OPT_TARGET_HOST; }

/* Of two values of one filter a command could only go by one, and nobody would see which: `--route a --route b` must
 * not cancel the tasks of b alone, nor `-c a -c b` those of another outbox. A flag says the same twice. */
static bool may_be_repeated(enum option_id id) { return id == OPT_HEADER || !option_rows[id].metavar; }

/* Takes options from argv until getopt has no more; optind then stands at the operands. */
static bool take_options(int argc, char **argv, const char *prefix, struct args *args, struct err *err) {
  struct getopt_rows rows;
  make_rows(&rows, prefix, args->command);
  opterr = 0;
  optind = 0; /* glibc: start anew, also after another list of options */
  for (int c; (c = getopt_long(argc, argv, rows.shorts, rows.longs, NULL)) != -1;) {
    if (c == '?' || c == ':')
      return refuse_option(c, argv, &rows, args, err);
    enum option_id id = c >= 256 ? (enum option_id)(c - 256) : rows.by_letter[c];
    if (id == OPT_HELP)
      args->help = true;
    if (optarg && !*optarg && !may_be_empty(id))
      return refuse(err, args, "--%s needs a value, and it is empty", option_rows[id].name);
    if (id == OPT_REASON && optarg && strlen(optarg) > OPERATOR_REASON_MAX)
      return refuse(err, args, "--reason has %zu bytes, and %d at most are kept", strlen(optarg), OPERATOR_REASON_MAX);
    if (!may_be_repeated(id) && args_has(args, id))
      return refuse(err, args, "--%s is given twice", option_rows[id].name);
    args->given[args->given_count++] = (struct given_option){id, optarg ? optarg : ""};
  }
  return true;
}

/* Which command the words name. A noun without its verb is left to the caller as args->command NULL. */
static bool take_words(int *argc, char ***argv, struct args *args, struct err *err) {
  if (*argc > 1 && strcmp((*argv)[1], "help") == 0) {
    args->help = true;
    ++*argv, --*argc;
  }
  if (*argc < 2)
    return true;
  args->noun = (*argv)[1];
  if (!noun_find(args->noun)) {
    const char *near = command_suggest(NULL, args->noun);
    return err_set(err, EX_USAGE, "unknown command %s%s%s%s; `duebox help` lists them", args->noun,
                   near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
  }
  ++*argv, --*argc;
  if ((args->command = command_find(args->noun, NULL)))
    return true;
  if (*argc < 2 || (*argv)[1][0] == '-') {
    if (*argc < 2 || strcmp((*argv)[1], "--help") == 0 || strcmp((*argv)[1], "-h") == 0) {
      args->help |= *argc >= 2;
      return true;
    }
    return err_set(err, EX_USAGE, "%s: the verb comes before its options; `duebox help %s` lists the verbs", args->noun,
                   args->noun);
  }
  args->verb = (*argv)[1];
  args->command = command_find(args->noun, args->verb);
  if (!args->command) {
    const char *near = command_suggest(args->noun, args->verb);
    return err_set(err, EX_USAGE, "%s: unknown verb %s%s%s%s; `duebox help %s` lists the verbs", args->noun, args->verb,
                   near ? " (did you mean " : "", near ? near : "", near ? "?)" : "", args->noun);
  }
  ++*argv, --*argc;
  return true;
}

/* Of each of these pairs one at most makes sense. */
static const enum option_id contradictions[][2] = {
    {OPT_AT, OPT_DELAY}, {OPT_PAYLOAD, OPT_PAYLOAD_FILE}, {OPT_DRY_RUN, OPT_SHOW_SQL}};

static bool check_pairs(const struct args *args, struct err *err) {
  for (size_t i = 0; i < ARRAY_LEN(contradictions); i++) {
    const enum option_id *pair = contradictions[i];
    if (args_has(args, pair[0]) && args_has(args, pair[1]))
      return refuse(err, args, "give --%s or --%s, not both", option_rows[pair[0]].name, option_rows[pair[1]].name);
  }
  return true;
}

/* An operand that is there twice names one thing, which is done once. */
static void drop_repeated(struct args *args) {
  int kept = 0;
  for (int i = 0; i < args->operand_count; i++) {
    int k = 0;
    while (k < kept && strcmp(args->operands[k], args->operands[i]) != 0)
      k++;
    if (k == kept)
      args->operands[kept++] = args->operands[i];
  }
  args->operand_count = kept;
}

static bool check_operands(const struct args *args, struct err *err) {
  const struct command *command = args->command;
  if (args->operand_count < command->min)
    return refuse(err, args, "missing %s", command->operands);
  if (command->max >= 0 && args->operand_count > command->max)
    return refuse(err, args, "\"%s\" is one word too many", args->operands[command->max]);
  for (int i = 0; i < args->operand_count; i++)
    if (!*args->operands[i])
      return refuse(err, args, "an operand is empty: %s", command->operands);
  return true;
}

bool args_parse(int argc, char **argv, struct args *args, struct err *err) {
  *args = (struct args){0};
  size_t characters = 1; /* an option takes at least one: -qqq are three */
  for (int i = 0; i < argc; i++)
    characters += strlen(argv[i]);
  args->given = calloc(characters, sizeof *args->given);
  if (!args->given)
    return err_set(err, EX_OSERR, "out of memory");
  if (argc >= 2 && strcmp(argv[1], "--version") == 0)
    argv[1] += 2; /* the command of that name, spelled as other programs do */
  if (!take_options(argc, argv, "+:", args, err))
    return false;
  argv += optind - 1; /* argv[0] is a word that getopt skips */
  argc -= optind - 1;
  if (!take_words(&argc, &argv, args, err) || !args->command)
    return err->code == 0;

  if (!take_options(argc, argv, ":", args, err))
    return false;
  args->operands = argv + optind;
  args->operand_count = argc - optind;
  if (!args->help && !(check_pairs(args, err) && check_operands(args, err)))
    return false;
  drop_repeated(args);
  return true;
}

void args_free(struct args *args) {
  free(args->given);
  *args = (struct args){0};
}

const char *args_text(const struct args *args, enum option_id id) {
  for (size_t i = args->given_count; i > 0; i--)
    if (args->given[i - 1].id == id)
      return args->given[i - 1].value;
  return NULL;
}

bool args_has(const struct args *args, enum option_id id) { return args_text(args, id) != NULL; }

bool args_int(const struct args *args, enum option_id id, int64_t min, int64_t max, int64_t *out, struct err *err) {
  const char *text = args_text(args, id);
  if (!text)
    return true;
  char *end;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (errno || end == text || *end || value < min || value > max)
    return err_set(err, EX_USAGE, "--%s: \"%s\" is no whole number from %lld to %lld", option_rows[id].name, text,
                   (long long)min, (long long)max);
  *out = value;
  return true;
}

bool args_duration(const struct args *args, enum option_id id, int64_t *ms, struct err *err) {
  const char *text = args_text(args, id);
  if (!text || option_parse_duration(text, ms, err))
    return true;
  err_wrap(err, "--%s", option_rows[id].name);
  err->code = EX_USAGE;
  return false;
}

bool args_rate(const struct args *args, enum option_id id, double *per_second, struct err *err) {
  const char *text = args_text(args, id);
  if (!text || option_parse_rate(text, per_second, err))
    return true;
  err_wrap(err, "--%s", option_rows[id].name);
  err->code = EX_USAGE;
  return false;
}

bool args_when(const struct args *args, enum option_id id, struct when *out, struct err *err) {
  const char *text = args_text(args, id);
  if (!text)
    return true;
  *out = (struct when){.given = true};
  int64_t ms;
  if (strcmp(text, "now") == 0) {
    out->relative = true;
    return true;
  }
  if (text[0] == '+' || text[0] == '-') {
    if (!option_parse_duration(text + 1, &ms, err)) {
      err_wrap(err, "--%s", option_rows[id].name);
      err->code = EX_USAGE;
      return false;
    }
    out->relative = true;
    out->us = (text[0] == '-' ? -ms : ms) * 1000;
    return true;
  }
  if (rfc3339_parse(text, &out->us))
    return true;
  return err_set(err, EX_USAGE,
                 "--%s: \"%s\" is no time; write 2026-01-31T08:00:00Z (UTC unless it says otherwise), now, +30m or -2h",
                 option_rows[id].name, text);
}
