/* SPDX-License-Identifier: MIT */
#include "cli/manual.h"

#include <stdbool.h>

#include "cli/command.h"

/* Text that roff takes as it is: backslashes and hyphens escaped, no line that begins with a control character. */
static void put_text(FILE *out, const char *text) {
  for (const char *p = text; *p; p++) {
    bool line_start = p == text || p[-1] == '\n';
    if (line_start && (*p == '.' || *p == '\''))
      fputs("\\&", out);
    if (*p == '\\')
      fputs("\\e", out);
    else if (*p == '-')
      fputs("\\-", out);
    else
      fputc(*p, out);
  }
}

static void put_block(FILE *out, const char *text) {
  fputs(".nf\n", out);
  put_text(out, text);
  fputs(".fi\n", out);
}

static void put_option(FILE *out, const struct option_row *row) {
  fputs(".TP\n", out);
  if (row->letter)
    fprintf(out, "\\fB\\-%c\\fR, ", row->letter);
  fputs("\\fB\\-\\-", out);
  put_text(out, row->name);
  fputs("\\fR", out);
  if (row->metavar) {
    fputs(" \\fI", out);
    put_text(out, row->metavar);
    fputs("\\fR", out);
  }
  fputs("\n", out);
  put_text(out, row->help);
  fputs("\n", out);
}

static void put_command(FILE *out, const struct command *command) {
  fprintf(out, ".SS duebox %s%s%s%s%s\n", command->noun, command->verb ? " " : "", command->verb ? command->verb : "",
          command->operands[0] ? " " : "", command->operands);
  put_text(out, command->summary);
  fputs(".\n", out);
  if (command->details) {
    fputs(".PP\n", out);
    put_text(out, command->details);
  }
  for (const enum option_id *id = command->options; *id != OPTIONS; id++)
    put_option(out, &option_rows[*id]);
  fputs(".PP\nExamples:\n", out);
  put_block(out, command->examples);
}

static void put_exit_codes(FILE *out) {
  static const struct {
    const char *code, *meaning;
  } codes[] = {
      {"0", "done"},
      {"64",
       "the line is wrong: an unknown word, a value that is none or is empty, options that contradict each other, "
       "or one with a value that is given twice (but --header)"},
      {"65", "the data is wrong (a value that the table does not take, say), the state of a task does not allow it, or "
             "it has "
             "moved on meanwhile"},
      {"66", "not found"},
      {"69", "a database or daemon cannot be reached, or the database is read-only or full; nothing was changed unless "
             "the message says otherwise"},
      {"70", "an internal error"},
      {"71", "no memory"},
      {"74",
       "standard output could not be written; that its reader has closed it, as head does, is no error; or a file "
       "cannot be read"},
      {"75", "not now: the task is on its way out, or awaits its result and is not to be cancelled, or others were in "
             "the way; try again"},
      {"77", "no right to do this"},
      {"78", "the configuration or the tables are not in order, or a plugin module is there and refused"},
      {"129, 130, 143",
       "what a shell shows of a command that SIGHUP, SIGINT or SIGTERM ended; one that changes tasks has "
       "said before what it changed, unless the signal came twice"}};
  fputs(".SH EXIT STATUS\n", out);
  for (size_t i = 0; i < ARRAY_LEN(codes); i++)
    fprintf(out, ".TP\n%s\n%s\n", codes[i].code, codes[i].meaning);
}

void manual_print(FILE *out) {
  fputs(
      ".\\\" Made from the table of commands; do not edit.\n.TH DUEBOX 1\n.SH NAME\nduebox \\- a transactional outbox "
      "with a clock\n.SH SYNOPSIS\n",
      out);
  for (size_t i = 0; i < command_count; i++) {
    const struct command *c = &commands[i];
    fprintf(out, "\\fBduebox %s%s%s\\fR [\\fIoptions\\fR]%s%s\n.br\n", c->noun, c->verb ? " " : "",
            c->verb ? c->verb : "", c->operands[0] ? " " : "", c->operands);
  }
  fputs(
      ".SH DESCRIPTION\nAn application inserts a row into a table of its own MySQL or MariaDB database and says when. "
      "duebox hands the task over at that time, to a Kafka topic, an AMQP queue or an HTTP hook. This command runs "
      "the daemon, looks after its tables, and lets people see and change tasks.\n.SH OPTIONS\nEvery command takes "
      "these.\n",
      out);
  for (int id = 0; id < GLOBAL_OPTIONS; id++)
    put_option(out, &option_rows[id]);
  fputs(".SH COMMANDS\n", out);
  for (size_t i = 0; i < command_count; i++)
    put_command(out, &commands[i]);
  put_exit_codes(out);
  fputs(
      ".SH ENVIRONMENT\n.TP\nDUEBOX_CONFIG\nthe configuration file\n.TP\nDUEBOX_PLUGIN_PATH\nmore folders with plugin "
      "modules, separated by colons\n.TP\nNO_COLOR, CLICOLOR, CLICOLOR_FORCE\nwhether output is coloured\n",
      out);
}
