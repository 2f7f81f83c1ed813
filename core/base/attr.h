/* SPDX-License-Identifier: MIT
 *
 * core/base/attr.h - compiler attributes and the few macros that everything uses.
 */
#ifndef CORE_BASE_ATTR_H
#define CORE_BASE_ATTR_H

#define MUSTCHECK __attribute__((warn_unused_result))
#define PRINTF(f, a) __attribute__((format(printf, f, a)))
#define NORETURN __attribute__((noreturn))
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
