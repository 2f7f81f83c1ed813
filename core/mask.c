/* SPDX-License-Identifier: MIT */
#include "core/mask.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/utf8.h"
#include "core/mask_escape.h"
#include "core/mask_words.h"
#include "core/options.h"
#include "core/url_login.h"

/* A shorter word hides nothing, and a longer one is no word of a language. A beginning counts when it is long, or where
 * the text was cut behind it; an end when it is long. A long word may be wrapped over lines that are indented by so
 * many bytes. */
enum { WORD_MIN = 4, LANGUAGE_MAX = 15, LONG_MIN = 12 };
enum { BASE64_MAX = 256, QUICK_MAX = 4 };

/* Comparisons for one text, of some 30 ns. It is looked through on a thread that others wait for; a text of 4 KiB takes
 * some thousands, unless somebody has made it so that it takes more. */
enum { WORK_MAX = 50000 };

enum { BY_BEGINNING, BY_END };

static bool in_word(char c) { return isalnum((unsigned char)c) || c == '-' || c == '_'; }
static bool in_base64(char c) { return isalnum((unsigned char)c) || (c && strchr("+/=-_", c)); }

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c; }

/* ---- what is to be hidden ---- */

void mask_begin(struct mask *mask) {
  mask->count = mask->used = 0;
  mask->blind = false;
  memset(mask->first, 0, sizeof mask->first);
}

/* Not for what may be words of a language. */
static bool is_taken_apart(const struct mask_word *word) { return word->len >= LONG_MIN && word->form <= MASK_HEX; }

static bool has_end(const struct mask_word *word) { return is_taken_apart(word) && word->len > LONG_MIN; }

/* Puts the last word into a chain. */
static void link_last(struct mask *mask, int chain, size_t at) {
  struct mask_word *word = &mask->words[mask->count - 1];
  uint8_t *first = &mask->first[chain][(unsigned char)lower(word->text[at])];
  word->next[chain] = *first;
  *first = (uint8_t)mask->count;
}

static void add(struct mask *mask, const char *text, size_t len, enum mask_form form) {
  if (len < WORD_MIN)
    return;
  if (form == MASK_PLAIN && mask_is_common(text, len))
    form = MASK_COMMON;
  if (mask->count == MASK_WORDS) {
    mask->blind = true;
    return;
  }
  mask->words[mask->count++] = (struct mask_word){.text = text, .len = len, .form = form};
  link_last(mask, BY_BEGINNING, 0);
  if (has_end(&mask->words[mask->count - 1]))
    link_last(mask, BY_END, len - LONG_MIN);
}

static enum mask_form form_of(const char *text, size_t len, bool in_path) {
  bool letters = true, digits = false;
  for (size_t i = 0; i < len; i++) {
    letters = letters && isalpha((unsigned char)text[i]);
    digits = digits || isdigit((unsigned char)text[i]);
  }
  if (in_path && letters && len <= LANGUAGE_MAX)
    return MASK_PATH;
  return in_path && !digits ? MASK_UNBROKEN : MASK_PLAIN;
}

/* A secret and its words, for who repeats it may escape in its own way what is between them. */
static void add_words(struct mask *mask, const char *text, size_t size, bool in_path) {
  for (size_t at = 0, len = 0; at < size; at += len ? len : 1) {
    for (len = 0; at + len < size && in_word(text[at + len]);)
      len++;
    if (len < size)
      add(mask, text + at, len, form_of(text + at, len, in_path));
  }
  add(mask, text, size, form_of(text, size, in_path));
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
  for (size_t before = 0; before < 3 && len >= WORD_MIN && len <= BASE64_MAX; before++) {
    size_t from = (before * 8 + 5) / 6, to = (before + len) * 8 / 6, size = to > from ? to - from : 0;
    char *out = reserve(mask, size);
    if (!out)
      continue;
    for (size_t i = 0; i < size; i++) {
      size_t bit = (from + i) * 6 - before * 8, byte = bit / 8;
      unsigned two = (unsigned)(unsigned char)text[byte] << 8;
      two |= byte + 1 < len ? (unsigned char)text[byte + 1] : 0;
      out[i] = digits[two >> (10 - bit % 8) & 63];
    }
    add(mask, out, size, MASK_BASE64);
  }
}

static void add_hex(struct mask *mask, const char *text, size_t len) {
  static const char digits[] = "0123456789abcdef";
  char *out = len >= WORD_MIN && len <= BASE64_MAX ? reserve(mask, 2 * len) : NULL;
  for (size_t i = 0; out && i < len; i++) {
    out[2 * i] = digits[(unsigned char)text[i] >> 4];
    out[2 * i + 1] = digits[(unsigned char)text[i] & 15];
  }
  if (out)
    add(mask, out, 2 * len, MASK_HEX);
}

/* A secret as the operator wrote it, or in another form; one with a colon is also what is behind it: the password. */
static void add_form(struct mask *mask, const char *text, size_t len) {
  const char *colon = memchr(text, ':', len);
  add_words(mask, text, len, false);
  if (colon)
    add(mask, colon + 1, (size_t)(text + len - colon - 1), MASK_PLAIN);
  add_base64(mask, text, len);
  add_hex(mask, text, len);
}

/* The text without percent escapes, and its new length; NULL where it has none, or there is no room. */
static char *unescape(struct mask *mask, const char *text, size_t *len) {
  char *out = memchr(text, '%', *len) ? reserve(mask, *len) : NULL;
  size_t size = 0;
  for (size_t i = 0; out && i < *len; i++) {
    int byte = text[i] == '%' && i + 2 < *len ? mask_hex_byte(text + i + 1) : -1;
    out[size++] = byte < 0 ? text[i] : (char)byte;
    i += byte < 0 ? 0 : 2;
  }
  *len = out ? size : *len;
  return out;
}

static void add_unescaped(struct mask *mask, const char *text, size_t len) {
  const char *out = unescape(mask, text, &len);
  if (out)
    add_form(mask, out, len);
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

/* Keys of signatures, one or several: receivers have them too, without what says their kind. */
static void add_keys(struct mask *mask, const char *text) {
  static const char blanks[] = " \t\r\n";
  for (const char *p = text + strspn(text, blanks); *p; p += strspn(p, blanks)) {
    size_t len = strcspn(p, blanks), kind = strlen("whsec_");
    kind = strncmp(p, "whsec_", kind) == 0 ? kind : strncmp(p, "whsk_", kind - 1) == 0 ? kind - 1 : len;
    add_form(mask, p + kind, len - kind);
    p += len;
  }
}

void mask_add_secret(struct mask *mask, const char *text) {
  bool basic = strncasecmp(text, "basic ", 6) == 0, bearer = strncasecmp(text, "bearer ", 7) == 0;
  text += basic ? 6 : bearer ? 7 : 0;
  size_t len = strlen(text);
  if (basic)
    add_decoded(mask, text);
  add_keys(mask, text);
  add_unescaped(mask, text, len);
  add_form(mask, text, len);
}

/* What is in the path and the query of a URL, but for what its template takes from the task. */
static void add_path(struct mask *mask, const char *url) {
  const char *p = strstr(url, "://");
  bool query = false, value = false;
  for (p = p ? p + 3 + strcspn(p + 3, "/?") : ""; *p;) {
    size_t len = strcspn(p, "/?&={"), size = len;
    const char *plain = unescape(mask, p, &size);
    plain = plain ? plain : p;
    add_words(mask, plain, size, !value); /* a segment, a name or a value */
    if (form_of(plain, size, !value) != MASK_PATH) {
      add_base64(mask, plain, size);
      add_hex(mask, plain, size);
    }
    p += len;
    query = query || *p == '?';
    value = query && (*p == '=' || (value && *p != '&'));
    if (*p == '{' && p[1] != '{')
      p += strcspn(p, "}");
    p += *p == '{' ? 2 : *p != '\0';
  }
}

/* ---- the options ---- */

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
    const char *other = row->type == DUEBOX_OPT_STRING ? text_of(row, options) : "";
    struct url_login login;
    if (strlen(other) == len && memcmp(other, text, len) == 0)
      return true;
    if (url_login_find(other, &login) && (size_t)(login.colon - login.user) == len &&
        memcmp(login.user, text, len) == 0)
      return true;
  }
  return false;
}

static void add_url_passwords(struct mask *mask, const struct duebox_option *rows, const void *options,
                              const char *text) {
  for (struct url_login login; url_login_find(text, &login); text = login.at) {
    const char *password = login.colon + 1;
    size_t len = (size_t)(login.at - password);
    if (is_public(rows, options, password, len))
      continue;
    add_unescaped(mask, password, len);
    add_form(mask, password, len);
  }
}

void mask_add(struct mask *mask, const struct duebox_option *rows, const void *options) {
  for (const struct duebox_option *row = rows; row && options && row->name; row++) {
    if (row->type == DUEBOX_OPT_SECRET) {
      const char *text = text_of(row, options);
      if (!is_public(rows, options, text, strlen(text)))
        mask_add_secret(mask, text);
    } else if (row->type == DUEBOX_OPT_STRING) {
      if (row->flags & (DUEBOX_OPT_FILE | DUEBOX_OPT_TEMPLATE))
        add_path(mask, text_of(row, options));
      add_url_passwords(mask, rows, options, text_of(row, options));
    } else if (row->type == DUEBOX_OPT_MAP && option_has_file(row)) {
      const struct duebox_map *map = value_of(row, options);
      for (size_t i = 0; i < map->count; i++)
        mask_add_secret(mask, map->items[i].value);
    }
  }
}

/* ---- where it is looked for ---- */

static bool same(char a, char b, enum mask_form form) {
  if (form == MASK_BASE64)
    return a == b || (a == '-' && b == '+') || (a == '_' && b == '/');
  return lower(a) == lower(b) || (a == '+' && b == ' ');
}

/* How many bytes of the text at p stand for what the word has at `at`, however it is escaped, and for how many bytes of
 * it; 0 = none. */
static size_t stands_for(const char *p, const struct mask_word *word, size_t at, size_t *taken) {
  char c = word->text[at];
  *taken = 1;
  if (mask_hex_escape(p) && same((char)mask_hex_byte(p + 1), c, word->form))
    return 3;
  unsigned code, wanted;
  size_t n = mask_backslashes(p), len = mask_numbered(p, n, &code), bytes = 0;
  len = len ? len : mask_named(p, n, &code);
  if (len > 0 && (bytes = utf8_decode(word->text + at, word->len - at, &wanted)) > 0 && code == wanted) {
    *taken = bytes;
    return len;
  }
  if (*p && same(*p, c, word->form)) /* unescaped, a secret may hold a NUL */
    return 1;
  if (n > 0 && p[n] == 'x' && mask_hex_byte(p + n + 1) == (unsigned char)c)
    return n + 3;
  return n > 0 && p[n] && same(p[n], c, word->form) ? n + 1 : 0;
}

/* The same where the line may go on in between. */
static size_t stands_straight(const char *p, const struct mask_word *word, size_t at, size_t *taken) {
  size_t step = stands_for(p, word, at, taken), soft = step > 0 || at == 0 ? 0 : mask_soft_break(p);
  if (soft > 0 && (step = stands_for(p + soft, word, at, taken)) > 0)
    step += soft;
  return step;
}

/* Whether a text that was cut ends here, or what a plugin puts behind one begins. */
static bool is_cut_off(const char *p) { return *p == '\0' || *p == ';' || strncmp(p, "...", 3) == 0; }

/* Whether the text before p ends with what stands before a part of a URL: a slash, say, however it is escaped. */
static bool in_url(const char *text, const char *p) {
  size_t before = (size_t)(p - text);
  return (before > 0 && strchr("/\\;=&?", p[-1])) || (before > 2 && p[-3] == '%' && mask_hex_byte(p - 2) >= 0) ||
         (before > 5 && strncasecmp(p - 6, "\\u00", 4) == 0);
}

static bool before_value(const char *text, const char *p) {
  return in_url(text, p) || (p > text && strchr(":@\"'`<([{", p[-1]));
}

/* What is looked for at a place: words and their beginnings; or, without a result, whose ends are there. That goes
 * first and is quick, for few texts have any: an end may begin with each letter of its word. */
struct pass {
  const struct mask *mask;
  bool *ends; /* out: by place of the word; NULL = words and beginnings */
  bool part_of_url;
  bool value;   /* what stands before is what stands before a value */
  size_t *work; /* so far, for this text */
};

/* Like stands_for(), for a word that may be wrapped: with the gap in front, or in the place of the word's blanks. */
static size_t stands_wrapped(const struct pass *pass, const char *p, const struct mask_word *word, size_t at,
                             size_t *taken, bool *broken) {
  size_t gap = word->form == MASK_HEX ? mask_hex_gap(p) : mask_gap(p), blanks = 0;
  size_t step = gap > 0 ? stands_for(p + gap, word, at, taken) : 0;
  *pass->work += gap;
  while (gap > 0 && at + blanks < word->len && word->text[at + blanks] == ' ')
    blanks++;
  if (blanks > 0) {
    *taken = blanks;
    return gap;
  }
  *broken = *broken || step > 0;
  return step > 0 ? gap + step : stands_for(p, word, at, taken);
}

static size_t match_form(const struct pass *pass, const char *p, const struct mask_word *word, bool whole,
                         bool wrapped) {
  bool broken = false;
  size_t at = 0, n = 0;
  for (size_t step, taken; n < word->len && ++*pass->work <= WORK_MAX; n += taken, at += step) {
    step = wrapped && n > 0 ? stands_wrapped(pass, p + at, word, n, &taken, &broken)
                            : stands_straight(p + at, word, n, &taken);
    if (step == 0)
      break;
  }
  if (word->form == MASK_COMMON)
    return n == word->len && pass->value && !in_word(p[at]) ? at : 0;
  if (word->form == MASK_PATH)
    return n == word->len && pass->part_of_url && !in_word(p[at]) ? at : 0;
  if (n < word->len && (whole || (n < LONG_MIN && (broken || n < WORD_MIN || !is_cut_off(p + at)))))
    return 0;
  while (word->form == MASK_BASE64 && in_base64(p[at]))
    at++;
  return at;
}

/* How many bytes of the text at p are the word, or the beginning of it; or, behind `from` bytes, all the rest of it.
 * 0 = none. */
static size_t match(const struct pass *pass, const char *p, const struct mask_word *word, size_t from) {
  const struct mask_word rest = {.text = word->text + from, .len = word->len - from, .form = word->form};
  size_t straight = match_form(pass, p, &rest, from > 0, false);
  size_t wrapped = is_taken_apart(&rest) ? match_form(pass, p, &rest, from > 0, true) : 0;
  return straight > wrapped ? straight : wrapped;
}

static size_t match_word(const struct pass *pass, const char *p, size_t i) {
  const struct mask_word *word = &pass->mask->words[i];
  if (!pass->ends)
    return match(pass, p, word, 0);
  if (!pass->ends[i])
    pass->ends[i] = has_end(word) && match(pass, p, word, word->len - LONG_MIN) > 0;
  return 0;
}

static size_t match_chain(const struct pass *pass, const char *p, char first) {
  int chain = pass->ends ? BY_END : BY_BEGINNING;
  size_t hidden = 0;
  for (size_t i = pass->mask->first[chain][(unsigned char)first]; i > 0; i = pass->mask->words[i - 1].next[chain]) {
    size_t n = match_word(pass, p, i - 1);
    hidden = n > hidden ? n : hidden;
  }
  return hidden;
}

/* How many bytes of the text at p are to be hidden; what stood before it ends at `before`. */
static size_t match_any(const struct mask *mask, bool *ends, size_t *work, const char *p, const char *text,
                        const char *before) {
  const struct pass pass = {mask, ends, in_url(text, before), before_value(text, before), work};
  bool again = before > text && before[-1] == '\\';
  size_t hidden = match_chain(&pass, p, lower(*p)), other = 0;
  if (*p == '+' || *p == '-' || *p == '_')
    other = match_chain(&pass, p, *p == '+' ? ' ' : *p == '-' ? '+' : '/');
  for (size_t i = 0; (*p == '%' || *p == '&' || mask_hex_escape(p) || (*p == '\\' && !again)) && i < mask->count; i++) {
    size_t n = match_word(&pass, p, i);
    other = n > other ? n : other;
  }
  return hidden > other ? hidden : other;
}

/* The bytes of a word that one of the text may be the same as. */
static size_t likes(char c, char *out) {
  out[0] = lower(c);
  out[1] = (char)toupper((unsigned char)c);
  out[2] = c == '+' ? ' ' : c == '-' ? '+' : '/';
  return c == '+' || c == '-' || c == '_' ? 3 : 2;
}

/* The bytes with which a word may begin for which the text at p stands. */
enum { FIRSTS = 8 };
static size_t firsts(const char *p, char out[FIRSTS]) {
  size_t n = mask_backslashes(p), count = likes(*p, out);
  unsigned code;
  if (mask_hex_escape(p))
    count += likes((char)mask_hex_byte(p + 1), out + count);
  if (n > 0)
    count += likes(p[n], out + count);
  if (n > 0 && p[n] == 'x' && mask_hex_byte(p + n + 1) >= 0)
    out[count++] = (char)mask_hex_byte(p + n + 1);
  if (mask_numbered(p, n, &code) > 0 || mask_named(p, n, &code) > 0)
    out[count++] = (char)(code < 0x80      ? code
                          : code < 0x800   ? 0xc0 | code >> 6
                          : code < 0x10000 ? 0xe0 | code >> 12
                                           : 0xf0 | code >> 18);
  return count;
}

/* A byte that stands for nothing but itself. */
static bool is_plain(const char *p) {
  return *p > ' ' && *p < 0x7f && !strchr("%&\\?", *p) && !(*p == '=' && (mask_hex_escape(p) || mask_soft_break(p)));
}

/* Behind backslashes the byte that they quote, unless it is one of the letters that are another character then. */
static const char *unquoted(const char *p, char word, const char *letters) {
  size_t n = word == '\\' ? 0 : mask_backslashes(p);
  return n > 0 && is_plain(p + n) && !strchr(letters, p[n]) ? p + n : p;
}

/* Whether the text at p, which begins like the word there, is something else, as can be seen at once. Most places where
 * an end might begin are found to be none by this, and cost no comparison. */
static bool differs(const char *p, const char *word, enum mask_form form) {
  p = unquoted(p, *word, "ux0123"); /* whatever another letter is, it is behind this one that it goes on */
  for (size_t i = 0; i < QUICK_MAX && is_plain(p); i++) {
    for (p++, word++; (isspace((unsigned char)*p) || *p == '?') && *word != ' ' && !same(*p, *word, form);)
      p++; /* it may be wrapped there */
    p += form == MASK_HEX ? mask_hex_gap(p) : 0;
    p = unquoted(p, *word, "abtnvfrux0123");
    if (is_plain(p) && !same(*p, *word, form))
      return true;
  }
  return false;
}

/* How many bytes at p are the end of a word, of those whose ends are in the text; 0 = none. */
static size_t match_end(const struct pass *pass, const bool *ends, const char *p) {
  char first[FIRSTS];
  size_t hidden = 0, count = 0;
  for (size_t i = 0; i < pass->mask->count; i++) {
    const struct mask_word *word = &pass->mask->words[i];
    const char *last = word->text + word->len - LONG_MIN;
    if (!ends[i])
      continue;
    count = count ? count : firsts(p, first);
    for (size_t k = 0; k < count; k++)
      for (const char *at = word->text + 1; at <= last && (at = memchr(at, first[k], (size_t)(last + 1 - at))); at++) {
        size_t n = differs(p, at, word->form) ? 0 : match(pass, p, word, (size_t)(at - word->text));
        hidden = n > hidden ? n : hidden;
      }
  }
  return hidden;
}

/* False: somebody has made the text so that it takes too long. */
static bool hide_words(const struct mask *mask, char *text) {
  bool ends[MASK_WORDS] = {false};
  size_t work = 0;
  const struct pass end_pass = {.mask = mask, .work = &work};
  char *to = text;
  for (const char *p = text; *p && work <= WORK_MAX; p++)
    (void)match_any(mask, ends, &work, p, text, p);
  for (const char *p = text; *p && work <= WORK_MAX;) {
    size_t hidden = match_any(mask, NULL, &work, p, text, to), end = match_end(&end_pass, ends, p);
    hidden = end > hidden ? end : hidden;
    if (hidden) {
      memcpy(to, OPTION_MASK, strlen(OPTION_MASK));
      to += strlen(OPTION_MASK);
      p += hidden;
    } else {
      *to++ = *p++;
    }
  }
  if (work > WORK_MAX)
    return false;
  *to = '\0';
  return true;
}

void mask_hide(const struct mask *mask, char *text) {
  if (!mask->blind && (mask->count == 0 || hide_words(mask, text)))
    return;
  text[strnlen(text, strlen(OPTION_MASK))] = '\0';
  memset(text, '*', strlen(text));
}

void mask_said(const struct duebox_plugin *module, const void *options, const void *source, const void *route,
               const char *token, char *text) {
  struct mask mask;
  mask_begin(&mask);
  mask_add(&mask, module->options, options);
  mask_add(&mask, module->source_options, source);
  mask_add(&mask, module->route_options, route);
  if (token)
    mask_add_secret(&mask, token);
  mask_hide(&mask, text);
}
