/* SPDX-License-Identifier: MIT */
#include "cli/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

/* Makes room for at least one more byte and the NUL. */
static bool grow(char **data, size_t len, size_t *cap) {
  if (len + 1 < *cap)
    return true;
  size_t bigger = *cap ? *cap * 2 : 64 * 1024;
  char *grown = realloc(*data, bigger);
  if (!grown)
    return false;
  *data = grown;
  *cap = bigger;
  return true;
}

bool file_read(const char *path, int64_t max, char **data, size_t *len, struct err *err) {
  bool standard = strcmp(path, "-") == 0;
  FILE *file = standard ? stdin : fopen(path, "rb");
  *data = NULL;
  *len = 0;
  if (!file)
    return err_set(err, EX_NOINPUT, "%s: %s", path, strerror(errno));
  size_t cap = 0;
  bool ok = true;
  do {
    ok = grow(data, *len, &cap);
    if (ok)
      *len += fread(*data + *len, 1, cap - *len - 1, file);
  } while (ok && !feof(file) && !ferror(file) && (int64_t)*len <= max);
  const char *name = standard ? "standard input" : path;
  if (!ok)
    err_set(err, EX_OSERR, "%s: out of memory", name);
  else if (ferror(file))
    ok = err_set(err, EX_IOERR, "%s: %s", name, strerror(errno));
  else if ((int64_t)*len > max)
    ok = err_set(err, EX_DATAERR, "%s: the payload is over engine.max_payload (%lld bytes)", name, (long long)max);
  if (!standard)
    fclose(file);
  if (ok)
    (*data)[*len] = '\0';
  return ok;
}
