/* SPDX-License-Identifier: MIT
 *
 * http_scan.h - the "status" of a JSON object that is too long to be kept, or is no UTF-8.
 *
 * Pure. The object is read piece by piece, in constant memory, as far as its first member "status" whose value is a
 * text. NUL bytes are passed over, so that UTF-16 and UTF-32 are read too, as far as they are ASCII. What is no JSON is
 * read as well as it can be: brackets outside of strings are counted.
 */
#ifndef PLUGINS_HTTP_SCAN_H
#define PLUGINS_HTTP_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HTTP_SCAN_TEXT = 16 };

enum http_scan_state {
  HTTP_SCAN_GOES_ON, /* more of it may say so */
  HTTP_SCAN_FOUND,   /* text is the status: letters, at most HTTP_SCAN_TEXT - 1 */
  HTTP_SCAN_NONE,    /* the object has ended without, or its status is no word */
};

/* All zeros: before the first byte. */
struct http_scan {
  enum http_scan_state state;
  uint32_t depth;
  char quote, last; /* the quote of the string that is open, 0 = none; the last byte of weight outside of strings */
  bool escaped, is_status;
  uint8_t len; /* of text, which is that of the last string of the object itself; one too long is HTTP_SCAN_TEXT */
  char text[HTTP_SCAN_TEXT];
};

/* Whether the object that text begins as comes to its end there. */
bool http_scan_closes(const char *data, size_t len);

enum http_scan_state http_scan_read(struct http_scan *scan, const char *data, size_t len);

#endif
