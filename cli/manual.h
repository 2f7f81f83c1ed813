/* SPDX-License-Identifier: MIT
 *
 * cli/manual.h - the manual page duebox(1) from the table of commands.
 */
#ifndef CLI_MANUAL_H
#define CLI_MANUAL_H

#include <stdio.h>

/* Writes docs/man/duebox.1: roff with man(7) macros. */
void manual_print(FILE *out);

#endif
