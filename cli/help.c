/* SPDX-License-Identifier: MIT */
#include "cli/help.h"

#include <stdbool.h>
#include <string.h>

static void print_option(FILE *out, const struct option_row *row) {
  char left[40], letter[8] = "    ";
  if (row->letter)
    snprintf(letter, sizeof letter, "-%c, ", row->letter);
  snprintf(left, sizeof left, "%s--%s%s%s", letter, row->name, row->metavar ? " " : "",
           row->metavar ? row->metavar : "");
  if (strlen(left) > 28)
    fprintf(out, "  %s\n  %-28s %s\n", left, "", row->help);
  else
    fprintf(out, "  %-28s %s\n", left, row->help);
}

static void print_global_options(FILE *out) {
  fputs("\nGlobal options\n", out);
  for (int id = 0; id < GLOBAL_OPTIONS; id++)
    print_option(out, &option_rows[id]);
}

static void print_command_line(FILE *out, const struct command *command) {
  char words[48];
  snprintf(words, sizeof words, "%s%s%s", command->noun, command->verb ? " " : "", command->verb ? command->verb : "");
  fprintf(out, "  %-18s %s\n", words, command->summary);
}

void help_all(FILE *out) {
  fputs("duebox: a transactional outbox with a clock\n\nUsage: duebox [global options] COMMAND [options]\n\nCommands\n",
        out);
  for (size_t i = 0; i < noun_count; i++)
    fprintf(out, "  %-12s %s\n", nouns[i].name, nouns[i].summary);
  print_global_options(out);
  fputs("\nExit codes: 0 done, 64 wrong usage, 65 bad data, 66 not found, 69 a server cannot be reached,\n"
        "70 internal error, 75 not now (try again), 77 no right to do this, 78 wrong configuration.\n"
        "\nExample\n  duebox task list --route orders.cancel --state dead\n"
        "\n`duebox help COMMAND` says more; each help has an example.\n",
        out);
}

void help_noun(FILE *out, const char *noun) {
  fprintf(out, "duebox %s: %s\n\nUsage: duebox %s VERB [options]\n\nVerbs\n", noun, noun_find(noun)->summary, noun);
  const struct command *first = NULL;
  for (size_t i = 0; i < command_count; i++) {
    if (strcmp(commands[i].noun, noun) != 0)
      continue;
    print_command_line(out, &commands[i]);
    first = first ? first : &commands[i];
  }
  if (first)
    fprintf(out, "\nExample\n%s", first->examples);
}

void help_command(FILE *out, const struct command *command) {
  const char *verb = command->verb ? command->verb : "", *blank = command->verb ? " " : "";
  bool operands = command->operands[0] != '\0';
  fprintf(out, "duebox %s%s%s: %s\n\nUsage: duebox %s%s%s [options]%s%s\n", command->noun, blank, verb,
          command->summary, command->noun, blank, verb, operands ? " " : "", command->operands);
  if (command->details)
    fprintf(out, "\n%s", command->details);
  if (command->options[0] != OPTIONS) {
    fputs("\nOptions\n", out);
    for (const enum option_id *id = command->options; *id != OPTIONS; id++)
      print_option(out, &option_rows[*id]);
  }
  print_global_options(out);
  fprintf(out, "\nExamples\n%s", command->examples);
}
