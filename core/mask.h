/* SPDX-License-Identifier: MIT
 *
 * core/mask.h - the operator's secrets in what a plugin says.
 *
 * A broker, a proxy or a hook that refuses may repeat what it was sent, and plugins pass its words on: to the log, to
 * the HTTP API, where everybody on the machine may read them, and to a table column. So every text of a plugin goes
 * through here before it goes anywhere, with the option rows by which its module says what is a secret. Pure.
 */
#ifndef CORE_MASK_H
#define CORE_MASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duebox/plugin.h>

enum { MASK_WORDS = 255, MASK_ROOM = 8192 };

enum mask_form {
  MASK_PLAIN,
  MASK_BASE64,
  MASK_HEX,      /* signs may stand between its bytes, as in "4b:70" and "0x4b, 0x70" */
  MASK_UNBROKEN, /* could be words of a language run together: hidden in one piece only */
  MASK_COMMON,   /* a word of many messages ("task"): hidden where a value may stand only */
  MASK_PATH,     /* could be a word of a language ("hooks"): hidden where it is part of a URL only */
};

struct mask_word {
  const char *text;
  size_t len;
  enum mask_form form;
  uint8_t next[2]; /* in the chains of struct mask: 1 + its place, 0 = none */
};

/* What is to be hidden, for one text. Points into the options it was made of. */
struct mask {
  struct mask_word words[MASK_WORDS];
  size_t count;
  char room[MASK_ROOM]; /* for secrets in other forms than the operator wrote them */
  size_t used;
  bool blind; /* more than there is room for: no text is shown */
  /* 1 + the place of a word, 0 = none: by the small letter that it begins with, and by that of the shortest end of it
   * that is hidden. */
  uint8_t first[2][256];
};

void mask_begin(struct mask *mask);
/* Adds a secret. `text` is used until the last mask_hide(). One shorter than four bytes hides nothing. */
void mask_add_secret(struct mask *mask, const char *text);
/* Adds what is secret among the options that these rows filled: secrets, maps whose values are, passwords in URLs, path
 * and query of URLs that are templates or may come from a file. Not one that is no secret, as it is also the user's
 * name (guest). NULL: none. */
void mask_add(struct mask *mask, const struct duebox_option *rows, const void *options);
/* Writes "***" over each secret in text, and over each of its words (runs of four letters and digits): as it is, as
 * JSON, HTML, Erlang, a URL or quoted-printable quote it, in octal, hexadecimal or base64, alone or behind a user's
 * name, wrapped over lines where it has twelve characters or more, the beginning of one that was cut, and its end from
 * twelve characters on. A secret that is a word of many messages is written over where a value may stand only: in a
 * URL, and behind a quote or a colon. The text never grows. One that is made so that looking for them takes long is
 * hidden whole. */
void mask_hide(const struct mask *mask, char *text);
/* All of it for what a plugin says: by the options of its instance, of a source and of a route, and a token that it was
 * given with the task, each NULL for none. */
void mask_said(const struct duebox_plugin *module, const void *options, const void *source, const void *route,
               const char *token, char *text);

#endif
