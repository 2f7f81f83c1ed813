/* SPDX-License-Identifier: MIT
 *
 * core/json_scan.h - a strict JSON reader without a tree, for small texts of strangers. Pure.
 *
 * It walks once over bytes that need not end with NUL. Strings must be valid UTF-8 without NUL and are unescaped into
 * the caller's memory; values nobody asked for are checked and given as they were written, so that no digit of a large
 * number is lost. The first problem ends it: every function then returns false and `problem` says what it was.
 */
#ifndef CORE_JSON_SCAN_H
#define CORE_JSON_SCAN_H

#include <duebox/task.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/attr.h"

enum { JSON_SCAN_DEPTH = 32 }; /* nested arrays and objects inside one value */

enum json_scan_type {
  SCAN_NOTHING, /* the end, or no beginning of a value */
  SCAN_OBJECT,
  SCAN_ARRAY,
  SCAN_STRING,
  SCAN_NUMBER,
  SCAN_BOOL,
  SCAN_NULL,
};

struct json_scan {
  const char *start, *at, *end;
  const char *problem; /* NULL = none so far */
};

struct json_scan json_scan_start(const char *text, size_t len);
/* What the next value is, white space skipped. */
enum json_scan_type json_scan_peek(struct json_scan *s);
/* Enters the object that begins here. */
MUSTCHECK bool json_scan_enter(struct json_scan *s);
/* Takes the next key with its colon; the value is to be taken next. False at the end of the object too: then there is
 * no problem. first is true before the first call. key as in json_scan_string. */
MUSTCHECK bool json_scan_key(struct json_scan *s, bool *first, char *key, size_t *len);
/* Takes a string. out may be NULL; else it must have as many bytes as are left of the text, and ends with NUL. */
MUSTCHECK bool json_scan_string(struct json_scan *s, char *out, size_t *len);
/* Takes a whole number without fraction and exponent. */
MUSTCHECK bool json_scan_int(struct json_scan *s, int64_t *value);
/* Takes a number, to about 17 digits. */
MUSTCHECK bool json_scan_double(struct json_scan *s, double *value);
/* Takes any value; span, if not NULL, is its text. */
MUSTCHECK bool json_scan_value(struct json_scan *s, struct duebox_bytes *span);
/* Only white space is left. */
MUSTCHECK bool json_scan_end(struct json_scan *s);

/* Length of the valid UTF-8 sequence at text, 0 when there is none. */
size_t utf8_length(const char *text, const char *end);

#endif
