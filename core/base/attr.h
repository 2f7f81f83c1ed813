/* SPDX-License-Identifier: MIT
 *
 * core/base/attr.h - compiler attributes and the few macros that everything uses.
 */
#ifndef CORE_BASE_ATTR_H
#define CORE_BASE_ATTR_H

#define MUSTCHECK __attribute__((warn_unused_result))
#define PRINTF(f, a) __attribute__((format(printf, f, a)))
#define NORETURN __attribute__((noreturn))
/* A large local variable of which everything is written before it is read: not zeroed first, as all others are. */
#if defined(__has_attribute) && __has_attribute(uninitialized)
#define UNFILLED __attribute__((uninitialized))
#else
#define UNFILLED
#endif
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
