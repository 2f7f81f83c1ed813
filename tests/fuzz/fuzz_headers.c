/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/fuzz_headers.c - the headers column. What is accepted must be safe to send.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/headers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct duebox_header *list;
  size_t count, total = 0;
  struct err err = {0};
  if (!headers_parse((struct duebox_bytes){(const char *)data, size}, &list, &count, &err)) {
    if (!err.text[0] || list || count)
      abort();
    return 0;
  }
  if ((count == 0) != (list == NULL) || count > HEADERS_MAX)
    abort();
  for (size_t i = 0; i < count; i++) {
    const char *value = list[i].value.data;
    total += strlen(list[i].name) + list[i].value.len;
    if (!list[i].name[0] || strpbrk(list[i].name, "\r\n") || memchr(value, '\r', list[i].value.len) ||
        memchr(value, '\n', list[i].value.len) || memchr(value, '\0', list[i].value.len))
      abort();
  }
  if (total > size)
    abort();
  free(list);
  return 0;
}
