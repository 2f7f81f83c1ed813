/* SPDX-License-Identifier: MIT
 *
 * core/base/leave.h - memory that is never freed, on purpose: a plugin that hangs may still use it.
 */
#ifndef CORE_BASE_LEAVE_H
#define CORE_BASE_LEAVE_H

#ifdef __SANITIZE_ADDRESS__
extern void __lsan_ignore_object(const void *allocation); /* of the sanitizer's run time */
#endif

/* Leaves an allocation, and what it refers to, to whoever may still use it; the leak checker is told. */
static inline void leave_behind(const void *allocation) {
#ifdef __SANITIZE_ADDRESS__
  __lsan_ignore_object(allocation);
#endif
  (void)allocation;
}

#endif
