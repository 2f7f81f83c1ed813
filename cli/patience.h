/* SPDX-License-Identifier: MIT
 *
 * cli/patience.h - calls of code that is not ours and that may never return: on a thread of their own.
 */
#ifndef CLI_PATIENCE_H
#define CLI_PATIENCE_H

enum patience {
  PATIENCE_DONE,
  PATIENCE_LASTING /* it may go on for ever with arg */,
  PATIENCE_REFUSED /* no thread */
};

enum patience patience_run(void (*work)(void *arg), void *arg, int limit_s);

#endif
