/* SPDX-License-Identifier: MIT
 *
 * admin/process.h - the process_* metrics that every Prometheus client exports.
 */
#ifndef ADMIN_PROCESS_H
#define ADMIN_PROCESS_H

#include "admin/exposition.h"

/* Writes what the system tells; a figure that cannot be had is left out. */
void process_write(struct exposition *ex);

#endif
