/* SPDX-License-Identifier: MIT */
#include "core/config_mask.h"

#include <ctype.h>
#include <string.h>

#include "core/options.h"

/* A shorter common part is chance; values are cut to no less. */
enum { PART_MIN = 4, CUT_MIN = 20 };

static void add(struct config_secrets *secrets, struct arena *arena, const char *text, size_t len) {
  if (len == 0)
    return;
  for (size_t i = 0; i < secrets->count; i++)
    if (strlen(secrets->items[i]) == len && memcmp(secrets->items[i], text, len) == 0)
      return;
  if ((secrets->count & (secrets->count - 1)) == 0) { /* room doubles at every power of two */
    const char **items = arena_array(arena, secrets->count ? secrets->count * 2 : 1, sizeof *items);
    if (secrets->count)
      memcpy(items, secrets->items, secrets->count * sizeof *items);
    secrets->items = items;
  }
  secrets->items[secrets->count++] = arena_strndup(arena, text, len);
}

/* "https" alone is no secret, and every hint about a URL has it. */
static const char *behind_scheme(const char *text, size_t len) {
  const char *scheme = memmem(text, len, "://", 3);
  return scheme ? scheme + 3 : text;
}

void config_secrets_add(struct config_secrets *secrets, struct arena *arena, const char *text) {
  while (*text) {
    size_t len = strcspn(text, "\n");
    const char *from = behind_scheme(text, len);
    add(secrets, arena, from, (size_t)(text + len - from));
    text += len + (text[len] == '\n');
  }
}

/* The password of "scheme://user:password@host". */
static void add_url_password(struct config_secrets *secrets, struct arena *arena, const char *text) {
  const char *authority = behind_scheme(text, strlen(text));
  const char *at = authority == text ? NULL : memrchr(authority, '@', strcspn(authority, "/?#"));
  const char *colon = at ? memchr(authority, ':', (size_t)(at - authority)) : NULL;
  if (colon)
    add(secrets, arena, colon + 1, (size_t)(at - colon - 1));
}

void config_secrets_of(struct config_secrets *secrets, struct arena *arena, const struct yaml_node *node) {
  for (size_t i = 0; i < node->count; i++)
    config_secrets_of(secrets, arena, node->items[i]); /* the reader limits the depth */
  if (node->kind != YAML_TEXT)
    return;
  if (node->from_env)
    config_secrets_add(secrets, arena, node->from_env);
  add_url_password(secrets, arena, node->text);
}

static bool letter(char c) { return isalpha((unsigned char)c) || (unsigned char)c >= 0x80; }
static bool digit(char c) { return isdigit((unsigned char)c); }

/* Whether one word ends and another begins between two characters. */
static bool apart(char a, char b) { return !(letter(a) && letter(b)) && !(digit(a) && digit(b)); }

/* How much of the secret begins at text, 0 when it is none of it. What both have in common ends with a word, with the
 * secret, or is as long as what messages cut values to; else it is chance. */
static size_t part_at(const char *text, bool quoted, const char *secret) {
  size_t best = 0, len = strlen(secret);
  for (size_t from = 0; from < len; from++) {
    size_t n = 0;
    if (from > 0 && !letter(*text) && !digit(*text))
      break;
    while (secret[from + n] && text[n] == secret[from + n])
      n++;
    bool whole = secret[from + n] == '\0' || n >= CUT_MIN;
    while (!whole && n > 0 && (!apart(text[n - 1], text[n]) || (!letter(text[n - 1]) && !digit(text[n - 1]))))
      n--;
    if (n > best && (n >= PART_MIN || (n == len && quoted && text[n] == '"')))
      best = n;
  }
  return best;
}

void config_mask(const struct config_secrets *secrets, struct err *err) {
  static const char note[] = "; " OPTION_MASK " hides what came from the environment or a file";
  char masked[sizeof err->text];
  size_t place = err->place, used = place;
  bool any = false;
  memcpy(masked, err->text, place);
  for (const char *p = err->text + place; *p && used + 1 < sizeof masked;) {
    bool first = p == err->text + place, word = first || apart(p[-1], *p);
    size_t hidden = 0;
    for (size_t i = 0; word && i < secrets->count; i++) {
      size_t n = part_at(p, !first && p[-1] == '"', secrets->items[i]);
      hidden = n > hidden ? n : hidden;
    }
    size_t room = sizeof masked - 1 - used, n = hidden ? strlen(OPTION_MASK) : 1;
    n = n < room ? n : room;
    memcpy(masked + used, hidden ? OPTION_MASK : p, n);
    used += n;
    p += hidden ? hidden : 1;
    any |= hidden > 0;
  }
  masked[used] = '\0';
  if (any) {
    strncat(masked, note, sizeof masked - used - 1);
    memcpy(err->text, masked, sizeof masked);
  }
}
