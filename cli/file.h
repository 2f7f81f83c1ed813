/* SPDX-License-Identifier: MIT
 *
 * cli/file.h - reading a whole file or standard input, up to a limit.
 */
#ifndef CLI_FILE_H
#define CLI_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/attr.h"
#include "core/base/err.h"

/* path "-" is standard input. *data is to free(), and has a NUL behind its end. err->code is an exit code. */
MUSTCHECK bool file_read(const char *path, int64_t max, char **data, size_t *len, struct err *err);

#endif
