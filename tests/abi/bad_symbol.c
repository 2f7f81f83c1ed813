/* SPDX-License-Identifier: MIT
 *
 * tests/abi/bad_symbol.c - a shared object that is no plugin at all.
 */
int nothing_to_see_here(void);
int nothing_to_see_here(void) { return 0; }
