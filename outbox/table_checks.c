/* SPDX-License-Identifier: MIT */
#include "outbox/table_checks.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NAME_ROOM = 64 * 4 + 1 }; /* of a name of 64 characters */
enum word { WORD_END, WORD_PLAIN, WORD_QUOTED, WORD_TEXT, WORD_SIGN };

static bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
         (unsigned char)c >= 0x80;
}

static void put(char out[NAME_ROOM], size_t *used, char c) {
  if (*used + 1 < NAME_ROOM)
    out[(*used)++] = c;
}

/* What stands in quotes; one that is doubled, or in a text behind a backslash, belongs to it. */
static const char *take_quoted(const char *at, char out[NAME_ROOM], size_t *used) {
  char quote = *at++;
  for (; *at; at++) {
    bool escapes = at[1] && (*at == quote ? at[1] == quote : quote == '\'' && *at == '\\');
    if (*at == quote && !escapes)
      return at + 1;
    at += escapes;
    put(out, used, *at);
  }
  return at;
}

/* The next word; of a sign the character. */
static enum word next(const char **at, char out[NAME_ROOM]) {
  size_t used = 0;
  enum word word = WORD_SIGN;
  *at += strspn(*at, " \t\r\n");
  char c = **at;
  if (!c) {
    word = WORD_END;
  } else if (c == '`' || c == '"' || c == '\'') {
    *at = take_quoted(*at, out, &used);
    word = c == '\'' ? WORD_TEXT : WORD_QUOTED;
  } else if (is_plain(c)) {
    for (; is_plain(**at); (*at)++)
      put(out, &used, **at);
    word = WORD_PLAIN;
  } else {
    put(out, &used, *(*at)++);
  }
  out[used] = '\0';
  return word;
}

/* A definition begins with the name of its column, or with CONSTRAINT and a name. Those of the table are in the first
 * brackets, with commas between them; what else stands in brackets are expressions. */
void table_checks(const char *create, table_check_fn *found, void *ctx) {
  char text[NAME_ROOM], name[NAME_ROOM] = "";
  unsigned depth = 0;
  enum { AT_NAME, AT_CONSTRAINT, WITHIN } place = WITHIN;
  bool of_column = true;
  for (enum word word; (word = next(&create, text)) != WORD_END;) {
    if (word == WORD_SIGN && ((*text == '(' && depth++ == 0) || (*text == ',' && depth == 1))) {
      place = AT_NAME;
    } else if (word == WORD_SIGN && *text == ')' && (depth == 0 || --depth == 0)) {
      return;
    } else if (depth != 1) {
      continue;
    } else if (place == AT_NAME && word == WORD_PLAIN && strcasecmp(text, "CONSTRAINT") == 0) {
      place = AT_CONSTRAINT;
    } else if (place != WITHIN) {
      of_column = place == AT_NAME;
      memcpy(name, text, sizeof name);
      place = WITHIN;
    } else if (word == WORD_PLAIN && strcasecmp(text, "CHECK") == 0) {
      found(ctx, name, of_column);
    }
  }
}
