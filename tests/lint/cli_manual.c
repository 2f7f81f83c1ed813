/* SPDX-License-Identifier: MIT
 *
 * tests/lint/cli_manual.c - prints the manual page that docs/man/duebox.1 must hold.
 */
#include "cli/manual.h"

int main(void) {
  manual_print(stdout);
  return 0;
}
