/* SPDX-License-Identifier: MIT
 *
 * cli/help.h - help texts from the table of commands.
 */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include <stdio.h>

#include "cli/command.h"

void help_all(FILE *out);
void help_noun(FILE *out, const char *noun);
void help_command(FILE *out, const struct command *command);

#endif
