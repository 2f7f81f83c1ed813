/* SPDX-License-Identifier: MIT */
#include "core/config_mask.h"

#include <ctype.h>
#include <string.h>

#include "core/mask_words.h"
#include "core/options.h"
#include "core/url_login.h"

/* A shorter common part is chance; values are cut to no less. A longer word is no word. */
enum { PART_MIN = 4, CUT_MIN = 20, WORD_MAX = 15 };

static bool letter(char c) { return isalpha((unsigned char)c) || (unsigned char)c >= 0x80; }
static bool digit(char c) { return isdigit((unsigned char)c); }

/* Whether one word ends and another begins between two characters. */
static bool apart(char a, char b) { return !(letter(a) && letter(b)) && !(digit(a) && digit(b)); }

static bool same(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

static void add(struct config_secrets *secrets, struct arena *arena, const char *map, const char *text, size_t len) {
  if (len == 0)
    return;
  for (size_t i = 0; i < secrets->count; i++) {
    const struct config_secret *known = &secrets->items[i];
    if (strlen(known->text) == len && memcmp(known->text, text, len) == 0 && same(known->map, map))
      return;
  }
  if ((secrets->count & (secrets->count - 1)) == 0) { /* room doubles at every power of two */
    struct config_secret *items = arena_array(arena, secrets->count ? secrets->count * 2 : 1, sizeof *items);
    if (secrets->count)
      memcpy(items, secrets->items, secrets->count * sizeof *items);
    secrets->items = items;
  }
  secrets->items[secrets->count++] = (struct config_secret){arena_strndup(arena, text, len), map};
}

static const char *path_of(struct arena *arena, const struct yaml_node *map) {
  char path[256];
  yaml_path(map, path, sizeof path);
  return map ? arena_strdup(arena, path) : NULL;
}

/* "https" alone is no secret, and every hint about a URL has it. */
static const char *behind_scheme(const char *text, size_t len) {
  const char *scheme = memmem(text, len, "://", 3);
  return scheme ? scheme + 3 : text;
}

void config_secrets_add(struct config_secrets *secrets, struct arena *arena, const struct yaml_node *map,
                        const char *text) {
  const char *path = path_of(arena, map);
  while (*text) {
    size_t len = strcspn(text, "\n");
    const char *from = behind_scheme(text, len);
    add(secrets, arena, path, from, (size_t)(text + len - from));
    text += len + (text[len] == '\n');
  }
}

/* Passwords of URLs, also of "user:password@host" without a scheme: that is a mistake mostly, and told with the text.
 */
static void add_url_passwords(struct config_secrets *secrets, struct arena *arena, const struct yaml_node *node) {
  const char *text = node->text;
  bool is_url = strstr(text, "://") != NULL;
  struct url_login login;
  while (is_url ? url_login_find(text, &login) : url_login_at(text, strcspn(text, "/?# "), &login)) {
    add(secrets, arena, path_of(arena, node->parent), login.colon + 1, (size_t)(login.at - login.colon - 1));
    text = is_url ? login.at : "";
  }
}

/* "x${NAME}" is one word, and a text may quote it as such. */
static void add_words_from_env(struct config_secrets *secrets, struct arena *arena, const struct yaml_node *node) {
  const char *text = node->text, *origin = node->from_env;
  for (size_t end = 0; origin[end];) {
    if (origin[end] != '$') {
      end++;
      continue;
    }
    size_t begin = end++;
    while (begin > 0 && !apart(text[begin - 1], text[begin]))
      begin--;
    while (origin[end] == '$' || (text[end] && !apart(text[end - 1], text[end])))
      end++;
    config_secrets_add(secrets, arena, node->parent, arena_strndup(arena, text + begin, end - begin));
  }
}

void config_secrets_of(struct config_secrets *secrets, struct arena *arena, const struct yaml_node *node) {
  for (size_t i = 0; i < node->count; i++)
    config_secrets_of(secrets, arena, node->items[i]); /* the reader limits the depth */
  if (node->kind != YAML_TEXT)
    return;
  if (node->from_env)
    add_words_from_env(secrets, arena, node);
  add_url_passwords(secrets, arena, node);
}

/* ---- where a secret is looked for ---- */

static bool plain_word(const char *text) {
  size_t len = 0;
  while (letter(text[len]))
    len++;
  return text[len] == '\0' && len <= WORD_MAX;
}

/* Whether the path names `map`, something in it, or something around it. */
static bool related(const char *map, const char *path, size_t len) {
  size_t map_len = strlen(map), both = map_len < len ? map_len : len;
  if (memcmp(map, path, both) != 0)
    return false;
  char next = map_len > both ? map[both] : len > both ? path[both] : '\0';
  return both == 0 || next == '\0' || next == '.' || next == '[';
}

static bool begins(const char *path, size_t len, const char *with) {
  return strlen(with) <= len && memcmp(path, with, strlen(with)) == 0;
}

/* A route and a source are judged together with their plugin. */
static bool may_quote(const struct err *err, const struct config_secret *secret) {
  if (err->place == 0 || !secret->map || !plain_word(secret->text))
    return true;
  const char *path = err->text + err->place - err->key - (err->key ? 2 : 0);
  bool user = begins(path, err->key, "routes.") || begins(path, err->key, "results[");
  return related(secret->map, path, err->key) || (user && strncmp(secret->map, "plugins.", 8) == 0);
}

/* How long what says the kind of a key is there: messages about such keys, and their cures, have the word. */
static size_t kind_of_key(const char *secret) {
  return strncmp(secret, "whsec_", 6) == 0 ? 5 : strncmp(secret, "whsk_", 5) == 0 ? 4 : 0;
}

/* Whether a word ends there in the text and in the secret. */
static bool ends_word(const char *text, const char *secret) {
  return apart(text[-1], *text) && apart(secret[-1], *secret) && (letter(text[-1]) || digit(text[-1]));
}

/* Whether it holds nothing but words that messages have anyway: "password", "password_file". */
static bool has_common_words_only(const char *text, size_t n) {
  size_t from = 0;
  while (from < n) {
    size_t end = from + 1;
    while (end < n && !apart(text[end - 1], text[end]))
      end++;
    if ((letter(text[from]) || digit(text[from])) && !mask_is_common(text + from, end - from))
      return false;
    from = end;
  }
  return true;
}

/* How much of the secret begins at text, 0 when it is none of it. What both have in common is some words of both, goes
 * to the end of the secret, or is as long as what messages cut values to; else it is chance. So it is where the words
 * are but such as messages have anyway, and where the secret is one of those: over each "password" of a text "***"
 * would hide nothing but the meaning. It is looked for where values are repeated, in quotes and at the beginning. */
static size_t part_at(const char *text, bool first, bool quoted, const char *secret) {
  size_t best = 0, len = strlen(secret);
  for (size_t from = 0; from < len; from++) {
    size_t n = 0;
    if (from > 0 && !letter(*text) && !digit(*text))
      break;
    while (secret[from + n] && text[n] == secret[from + n])
      n++;
    bool cut = n >= CUT_MIN, whole = secret[from + n] == '\0' || cut;
    while (!whole && n > 0 && !ends_word(text + n, secret + from + n))
      n--;
    bool begins_word = from == 0 || whole || apart(secret[from - 1], secret[from]);
    bool value = first || quoted || text[n] == '"';
    bool chance = n == len ? mask_is_common(text, n) && !value : !cut && has_common_words_only(text, n);
    if (n > best && begins_word && n > kind_of_key(secret + from) && !chance &&
        (n >= PART_MIN || (n == len && quoted && text[n] == '"')))
      best = n;
  }
  return best;
}

void config_mask(const struct config_secrets *secrets, struct err *err) {
  static const char note[] = "; " OPTION_MASK " hides a secret, or what came from the environment or a file";
  char masked[sizeof err->text];
  size_t place = err->place, used = place;
  bool any = false;
  memcpy(masked, err->text, place);
  for (const char *p = err->text + place; *p && used + 1 < sizeof masked;) {
    bool first = p == err->text + place, word = first || apart(p[-1], *p);
    size_t hidden = 0;
    for (size_t i = 0; word && i < secrets->count; i++) {
      size_t n = part_at(p, first, !first && p[-1] == '"', secrets->items[i].text);
      hidden = n > hidden && may_quote(err, &secrets->items[i]) ? n : hidden;
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
