/* SPDX-License-Identifier: MIT */
#include "core/mask.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/options.h"

/* A shorter word hides nothing. A beginning counts when it is long, or where the text was cut behind it. */
enum { WORD_MIN = 4, CUT_MIN = 12, BASE64_MIN = 6, BASE64_MAX = 256, BACKSLASHES_MAX = 15 };

static bool in_word(char c) { return isalnum((unsigned char)c) || c == '-' || c == '_'; }
static bool in_base64(char c) { return isalnum((unsigned char)c) || (c && strchr("+/=-_", c)); }

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c; }

static int nibble(char c) {
  if (!isxdigit((unsigned char)c))
    return -1;
  return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

/* The byte that two hexadecimal digits stand for; -1 = they are none. */
static int hex_byte(const char *p) {
  int high = nibble(p[0]), low = high < 0 ? -1 : nibble(p[1]);
  return low < 0 ? -1 : high * 16 + low;
}

/* ---- what is to be hidden ---- */

void mask_begin(struct mask *mask) {
  mask->count = mask->used = 0;
  mask->blind = false;
  memset(mask->first, 0, sizeof mask->first);
}

static void add(struct mask *mask, const char *text, size_t len, bool base64) {
  if (len < WORD_MIN)
    return;
  if (mask->count == MASK_WORDS) {
    mask->blind = true;
    return;
  }
  uint8_t *first = &mask->first[(unsigned char)lower(*text)];
  mask->words[mask->count++] = (struct mask_word){text, len, base64, *first};
  *first = (uint8_t)mask->count;
}

/* A secret and its words, for who repeats it may escape in its own way what is between them. */
static void add_words(struct mask *mask, const char *text, size_t size) {
  for (size_t at = 0, len = 0; at < size; at += len ? len : 1) {
    for (len = 0; at + len < size && in_word(text[at + len]);)
      len++;
    if (len < size)
      add(mask, text + at, len, false);
  }
  add(mask, text, size, false);
}

/* Room for so many bytes; NULL = there is none, and that form of the secret is not looked for. */
static char *reserve(struct mask *mask, size_t len) {
  if (len > sizeof mask->room - mask->used)
    return NULL;
  mask->used += len;
  return mask->room + mask->used - len;
}

/* The characters of the base64 of anything with the secret in it that the secret alone decides: three texts, for it may
 * begin at any of three places among three bytes. */
static void add_base64(struct mask *mask, const char *text, size_t len) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t before = 0; before < 3; before++) {
    size_t from = (before * 8 + 5) / 6, to = (before + len) * 8 / 6, size = to > from ? to - from : 0;
    char *out = size >= BASE64_MIN ? reserve(mask, size) : NULL;
    if (!out)
      continue;
    for (size_t i = 0; i < size; i++) {
      size_t bit = (from + i) * 6 - before * 8, byte = bit / 8;
      unsigned two = (unsigned)(unsigned char)text[byte] << 8;
      two |= byte + 1 < len ? (unsigned char)text[byte + 1] : 0;
      out[i] = digits[two >> (10 - bit % 8) & 63];
    }
    add(mask, out, size, true);
  }
}

/* A secret as the operator wrote it, or in another form; one with a colon is also what is behind it: the password. */
static void add_form(struct mask *mask, const char *text, size_t len) {
  const char *colon = memchr(text, ':', len);
  add_words(mask, text, len);
  if (colon)
    add(mask, colon + 1, (size_t)(text + len - colon - 1), false);
  if (len >= WORD_MIN && len <= BASE64_MAX)
    add_base64(mask, text, len);
}

/* Without percent escapes. */
static void add_unescaped(struct mask *mask, const char *text, size_t len) {
  char *out = memchr(text, '%', len) ? reserve(mask, len) : NULL;
  size_t size = 0;
  for (size_t i = 0; out && i < len; i++) {
    int byte = text[i] == '%' && i + 2 < len ? hex_byte(text + i + 1) : -1;
    out[size++] = byte < 0 ? text[i] : (char)byte;
    i += byte < 0 ? 0 : 2;
  }
  if (out)
    add_form(mask, out, size);
}

static int base64_digit(char c) {
  if (isupper((unsigned char)c))
    return c - 'A';
  if (islower((unsigned char)c))
    return c - 'a' + 26;
  return isdigit((unsigned char)c) ? c - '0' + 52 : c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* What "Basic" credentials decode to. */
static void add_decoded(struct mask *mask, const char *text) {
  char *out = reserve(mask, strlen(text));
  size_t size = 0;
  unsigned bits = 0, held = 0;
  for (; out && base64_digit(*text) >= 0; text++) {
    held = (held << 6 | (unsigned)base64_digit(*text)) & 0xffff;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      out[size++] = (char)(held >> bits & 0xff);
    }
  }
  if (size)
    add_form(mask, out, size);
}

static void add_secret(struct mask *mask, const char *text) {
  bool basic = strncasecmp(text, "basic ", 6) == 0, bearer = strncasecmp(text, "bearer ", 7) == 0;
  text += basic ? 6 : bearer ? 7 : 0;
  size_t len = strlen(text);
  if (basic)
    add_decoded(mask, text);
  add_unescaped(mask, text, len);
  add_form(mask, text, len);
}

/* ---- the options ---- */

/* User and password in "scheme://user:password@host". */
static bool find_login(const char *url, const char **user, const char **colon, const char **at) {
  const char *scheme = strstr(url, "://");
  *user = scheme ? scheme + 3 : NULL;
  *at = scheme ? memrchr(*user, '@', strcspn(*user, "/?#")) : NULL;
  *colon = *at ? memchr(*user, ':', (size_t)(*at - *user)) : NULL;
  return *colon != NULL;
}

static const void *value_of(const struct duebox_option *row, const void *options) {
  return (const char *)options + row->offset;
}

static const char *text_of(const struct duebox_option *row, const void *options) {
  const char *text = *(const char *const *)value_of(row, options);
  return text ? text : "";
}

/* Whether the text is, somewhere in the same options, one that is printed. */
static bool is_public(const struct duebox_option *rows, const void *options, const char *text, size_t len) {
  for (const struct duebox_option *row = rows; row->name; row++) {
    const char *other = row->type == DUEBOX_OPT_STRING ? text_of(row, options) : "", *user, *colon, *at;
    if (strlen(other) == len && memcmp(other, text, len) == 0)
      return true;
    if (find_login(other, &user, &colon, &at) && (size_t)(colon - user) == len && memcmp(user, text, len) == 0)
      return true;
  }
  return false;
}

static void add_url_password(struct mask *mask, const struct duebox_option *rows, const void *options,
                             const char *url) {
  const char *user, *colon, *at;
  if (!find_login(url, &user, &colon, &at))
    return;
  size_t len = (size_t)(at - colon - 1);
  if (is_public(rows, options, colon + 1, len))
    return;
  add_unescaped(mask, colon + 1, len);
  add_form(mask, colon + 1, len);
}

void mask_add(struct mask *mask, const struct duebox_option *rows, const void *options) {
  for (const struct duebox_option *row = rows; row && options && row->name; row++) {
    if (row->type == DUEBOX_OPT_SECRET) {
      const char *text = text_of(row, options);
      if (!is_public(rows, options, text, strlen(text)))
        add_secret(mask, text);
    } else if (row->type == DUEBOX_OPT_STRING) {
      add_url_password(mask, rows, options, text_of(row, options));
    } else if (row->type == DUEBOX_OPT_MAP && option_has_file(row)) {
      const struct duebox_map *map = value_of(row, options);
      for (size_t i = 0; i < map->count; i++)
        add_secret(mask, map->items[i].value);
    }
  }
}

/* ---- where it is looked for ---- */

static bool same(char a, char b, bool base64) {
  if (lower(a) == lower(b))
    return true;
  return base64 ? (a == '-' && b == '+') || (a == '_' && b == '/') : a == '+' && b == ' ';
}

/* How many bytes of the text at p stand for the character c, however it is escaped; 0 = none. */
static size_t stands_for(const char *p, char c, bool base64) {
  if (*p == '%' && hex_byte(p + 1) >= 0 && same((char)hex_byte(p + 1), c, base64))
    return 3;
  if (same(*p, c, base64))
    return 1;
  size_t n = 0; /* quoted more than once, there are more of them */
  while (n < BACKSLASHES_MAX && p[n] == '\\')
    n++;
  if (n == 0)
    return 0;
  if (p[n] == 'x' && hex_byte(p + n + 1) == (unsigned char)c)
    return n + 3;
  if (p[n] == 'u' && hex_byte(p + n + 1) == 0 && hex_byte(p + n + 3) == (unsigned char)c)
    return n + 5;
  return p[n] && same(p[n], c, base64) ? n + 1 : 0;
}

/* Whether a text that was cut ends here, or what a plugin puts behind one begins. */
static bool is_cut_off(const char *p) { return *p == '\0' || *p == ';' || strncmp(p, "...", 3) == 0; }

/* How many bytes of the text at p are the word, or the beginning of it: 0 = none. */
static size_t match(const char *p, const struct mask_word *word) {
  size_t at = 0, n = 0;
  for (size_t step; n < word->len && (step = stands_for(p + at, word->text[n], word->base64)) > 0; n++)
    at += step;
  if (n < word->len && n < CUT_MIN && (n < WORD_MIN || !is_cut_off(p + at)))
    return 0;
  while (word->base64 && in_base64(p[at]))
    at++;
  return at;
}

static size_t match_chain(const struct mask *mask, const char *p, char first) {
  size_t hidden = 0;
  for (size_t i = mask->first[(unsigned char)first]; i > 0; i = mask->words[i - 1].next) {
    size_t n = match(p, &mask->words[i - 1]);
    hidden = n > hidden ? n : hidden;
  }
  return hidden;
}

/* How many bytes of the text at p are to be hidden. again: a backslash that follows another. */
static size_t match_any(const struct mask *mask, const char *p, bool again) {
  size_t hidden = match_chain(mask, p, lower(*p)), other = 0;
  if (*p == '+' || *p == '-' || *p == '_')
    other = match_chain(mask, p, *p == '+' ? ' ' : *p == '-' ? '+' : '/');
  for (size_t i = 0; (*p == '%' || (*p == '\\' && !again)) && i < mask->count; i++) {
    size_t n = match(p, &mask->words[i]);
    other = n > other ? n : other;
  }
  return hidden > other ? hidden : other;
}

void mask_hide(const struct mask *mask, char *text) {
  char *to = text;
  if (mask->blind) {
    text[strnlen(text, strlen(OPTION_MASK))] = '\0';
    memset(text, '*', strlen(text));
    return;
  }
  if (mask->count == 0)
    return;
  for (const char *p = text; *p;) {
    size_t hidden = match_any(mask, p, p > text && p[-1] == '\\');
    if (hidden) {
      memcpy(to, OPTION_MASK, strlen(OPTION_MASK));
      to += strlen(OPTION_MASK);
      p += hidden;
    } else {
      *to++ = *p++;
    }
  }
  *to = '\0';
}

void mask_said(const struct duebox_plugin *module, const void *options, const void *source, const void *route,
               char *text) {
  struct mask mask;
  mask_begin(&mask);
  mask_add(&mask, module->options, options);
  mask_add(&mask, module->source_options, source);
  mask_add(&mask, module->route_options, route);
  mask_hide(&mask, text);
}
