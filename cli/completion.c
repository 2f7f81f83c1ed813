/* SPDX-License-Identifier: MIT
 *
 * cli/completion.c - `duebox completion bash`: a completion script made from the table of commands.
 *
 * The script holds all words, so completing never runs duebox and never touches a database.
 */
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "cli/cli.h"

static void print_options(const enum option_id *ids) {
  for (int id = 0; id < GLOBAL_OPTIONS; id++)
    printf(" --%s", option_rows[id].name);
  for (; *ids != OPTIONS; ids++)
    printf(" --%s", option_rows[*ids].name);
}

/* Words that may follow the words typed so far; the first two are the command. */
static void print_command_words(void) {
  fputs("  case \"$noun $verb\" in\n", stdout);
  for (size_t i = 0; i < command_count; i++) {
    const struct command *c = &commands[i];
    printf(c->verb ? "  \"%s %s\") words=\"" : "  \"%s \"*) words=\"", c->noun, c->verb);
    print_options(c->options);
    fputs("\" ;;\n", stdout);
  }
  fputs("  esac\n", stdout);
}

static void print_verbs(void) {
  fputs("  case \"$noun\" in\n", stdout);
  for (size_t i = 0; i < noun_count; i++) {
    printf("  %s) verbs=\"", nouns[i].name);
    for (size_t j = 0; j < command_count; j++)
      if (strcmp(commands[j].noun, nouns[i].name) == 0 && commands[j].verb)
        printf(" %s", commands[j].verb);
    fputs("\" ;;\n", stdout);
  }
  fputs("  esac\n", stdout);
}

static void print_values(void) {
  fputs("  case \"${COMP_WORDS[COMP_CWORD-1]}\" in\n", stdout);
  for (int id = 0; id < OPTIONS; id++) {
    const struct option_row *row = &option_rows[id];
    if (!row->metavar)
      continue;
    printf("  --%s", row->name);
    if (row->letter)
      printf("|-%c", row->letter);
    if (row->words)
      printf(") COMPREPLY=($(compgen -W \"%s\" -- \"$cur\")); return ;;\n", row->words);
    else if (strcmp(row->metavar, "FILE") == 0)
      puts(") COMPREPLY=($(compgen -f -- \"$cur\")); return ;;");
    else
      puts(") return ;;");
  }
  fputs("  esac\n", stdout);
}

int run_completion(struct cli *cli, const struct args *args) {
  if (strcmp(args->operands[0], "bash") != 0)
    return cli_fail(EX_USAGE, "completion: no script for \"%s\"; there is one for bash", args->operands[0]);
  puts("# bash completion of duebox; made by `duebox completion bash`\n"
       "_duebox() {\n"
       "  local cur=\"${COMP_WORDS[COMP_CWORD]}\" noun= verb= verbs= words= w i");
  print_values();
  puts("  for ((i = 1; i < COMP_CWORD; i++)); do\n"
       "    w=\"${COMP_WORDS[i]}\"\n"
       "    case \"$w\" in\n"
       "    -c|--config|-o|--output|--color) ((i++)) ;;\n"
       "    -*) ;;\n"
       "    *) if [ -z \"$noun\" ]; then noun=\"$w\"; else verb=\"$w\"; break; fi ;;\n"
       "    esac\n"
       "  done");
  print_verbs();
  print_command_words();
  fputs("  [ -n \"$noun\" ] || words=\"help", stdout);
  for (size_t i = 0; i < noun_count; i++)
    printf(" %s", nouns[i].name);
  puts("\"\n"
       "  [ -n \"$verbs\" ] && [ -z \"$verb\" ] && words=\"$verbs\"\n"
       "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
       "}\n"
       "complete -F _duebox duebox");
  return EX_OK;
}
