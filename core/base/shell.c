/* SPDX-License-Identifier: MIT */
#include "core/base/shell.h"

#include <stdio.h>
#include <string.h>

static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:@%+,-";

char *shell_word(char *out, size_t cap, const char *text) {
  size_t len = strlen(text), at = 0;
  if (len > 0 && len < cap && strspn(text, plain) == len)
    return memcpy(out, text, len + 1);
  for (size_t i = 0; i < len; i++)
    at += text[i] == '\'' ? 4 : 1;
  if (at + 3 > cap) {
    snprintf(out, cap, "'?'");
    return out;
  }
  at = 0;
  out[at++] = '\'';
  for (size_t i = 0; i < len; i++)
    for (const char *c = text[i] == '\'' ? "'\\''" : (char[]){text[i], '\0'}; *c; c++)
      out[at++] = *c;
  out[at++] = '\'';
  out[at] = '\0';
  return out;
}
