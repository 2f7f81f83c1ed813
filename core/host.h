/* SPDX-License-Identifier: MIT
 *
 * core/host.h - the table of functions that a plugin may call back into; the only way into the engine from a plugin.
 */
#ifndef CORE_HOST_H
#define CORE_HOST_H

#include <duebox/plugin.h>

struct driver;

/* The table for one driver: ctx is the driver. */
struct duebox_host host_table(struct driver *driver);
void host_set_health(struct driver *driver, bool up, const char *said);
/* Writes over the secrets of the instance, and of a task and its route (or NULL), in what its plugin says. */
void host_hide(const struct driver *driver, const struct duebox_task *task, char *text);

#endif
