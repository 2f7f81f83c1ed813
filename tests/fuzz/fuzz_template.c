/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/fuzz_template.c - templates. Input: one byte of capacity, the task's key up to a NUL, the template.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expand(const char *tmpl, const struct duebox_task *task, enum duebox_escape escape, size_t cap) {
  size_t len = template_expand(tmpl, task, escape, NULL, 0);
  char *whole = malloc(len + 1), *part = malloc(cap + 1);
  if (!whole || !part)
    abort();
  if (template_expand(tmpl, task, escape, whole, len + 1) != len || whole[len] != '\0')
    abort();
  if (template_expand(tmpl, task, escape, part, cap) != len)
    abort();
  size_t kept = cap == 0 ? 0 : cap - 1 < len ? cap - 1 : len;
  if (memcmp(part, whole, kept) != 0 || (cap > 0 && part[kept] != '\0'))
    abort();
  free(whole);
  free(part);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2)
    return 0;
  size_t cap = data[0];
  const char *key = (const char *)data + 1;
  size_t key_len = strnlen(key, size - 1), skip = 1 + key_len + (1 + key_len < size);
  char *tmpl = strndup((const char *)data + skip, size - skip);
  const struct duebox_header headers[] = {{"a", {key, key_len}}, {"tenant", {"x", 1}}};
  const struct duebox_task task = {
      .message_id = "id", .route = "r", .priority = 5, .key = {key, key_len}, .headers = headers, .header_count = 2};
  struct err err = {0};
  if (!tmpl)
    abort();
  if (!template_check(tmpl, &err) && !err.text[0])
    abort();
  expand(tmpl, &task, DUEBOX_ESCAPE_NONE, cap); /* what was refused is expanded too: it must be harmless */
  expand(tmpl, &task, DUEBOX_ESCAPE_URL, cap);
  free(tmpl);
  return 0;
}
