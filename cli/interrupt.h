/* SPDX-License-Identifier: MIT
 *
 * cli/interrupt.h - a command that changes tasks in steps ends between two of them when a signal asks it to, and says
 * what it has done.
 */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include "core/base/err.h"

/* From now on the first SIGINT, SIGTERM and SIGHUP of each kind is noted instead of ending the process; the second ends
 * it. One that was ignored when the process started (nohup) stays so. */
void interrupt_catch(void);

/* The signal that came since interrupt_catch(), or 0. Not to be asked before. */
int interrupt_caught(void);

/* Puts into err that a signal ended the command before all was done. Always false. */
bool interrupt_say(struct err *err);

/* Ends the process by the signal that came since interrupt_catch(), if one has, so that a shell or a loop around us
 * ends too. To be called when all output is written. */
void interrupt_obey(void);

#endif
