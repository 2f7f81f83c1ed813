/* SPDX-License-Identifier: MIT
 *
 * core/notify.h - tells systemd how we are (sd_notify protocol: one datagram to $NOTIFY_SOCKET).
 */
#ifndef CORE_NOTIFY_H
#define CORE_NOTIFY_H

/* Does nothing without $NOTIFY_SOCKET. Main thread. */
void notify(const char *state);

#endif
