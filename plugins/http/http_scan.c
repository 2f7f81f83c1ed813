/* SPDX-License-Identifier: MIT */
#include "http_scan.h"

#include <string.h>
#include <strings.h>

static bool is_text(const struct http_scan *scan, const char *word) {
  return scan->len == strlen(word) && strncasecmp(scan->text, word, scan->len) == 0;
}

static bool is_word(const struct http_scan *scan) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  return scan->len > 0 && scan->len < HTTP_SCAN_TEXT && strspn(scan->text, letters) == scan->len;
}

static void close_string(struct http_scan *scan) {
  bool is_value = scan->last == ':';
  scan->last = scan->quote;
  scan->quote = '\0';
  if (scan->depth != 1)
    return;
  if (!is_value)
    scan->is_status = is_text(scan, "status");
  else if (scan->is_status)
    scan->state = is_word(scan) ? HTTP_SCAN_FOUND : HTTP_SCAN_NONE;
}

static void read_string(struct http_scan *scan, char c) {
  if (!scan->escaped && c == scan->quote) {
    close_string(scan);
    return;
  }
  scan->escaped = !scan->escaped && c == '\\';
  if (scan->depth == 1 && scan->len < HTTP_SCAN_TEXT) {
    scan->text[scan->len++] = c;
    if (scan->len < HTTP_SCAN_TEXT)
      scan->text[scan->len] = '\0';
  }
}

static void read_mark(struct http_scan *scan, char c) {
  /* A single quote begins a string only where a value or a name may: elsewhere it is an apostrophe. */
  if (c == '"' || (c == '\'' && strchr("{[,:", scan->last))) {
    scan->quote = c;
    scan->len = 0;
    return;
  }
  if (c == ' ' || c == '\t' || c == '\r' || c == '\n')
    return;
  scan->last = c;
  if (c == '{' || c == '[')
    scan->depth++;
  else if ((c == '}' || c == ']') && --scan->depth == 0)
    scan->state = HTTP_SCAN_NONE;
  else if (c == ',' && scan->depth == 1)
    scan->is_status = false;
}

enum http_scan_state http_scan_read(struct http_scan *scan, const char *data, size_t len) {
  for (size_t i = 0; i < len && scan->state == HTTP_SCAN_GOES_ON; i++) {
    if (data[i] == '\0')
      continue;
    if (scan->quote)
      read_string(scan, data[i]);
    else if (scan->depth > 0 || data[i] == '{') /* before the object there may be a byte order mark */
      read_mark(scan, data[i]);
  }
  return scan->state;
}

bool http_scan_closes(const char *data, size_t len) {
  struct http_scan scan = {0};
  for (size_t i = 0; i < len; i++) {
    if (http_scan_read(&scan, data + i, 1) == HTTP_SCAN_NONE && scan.depth == 0)
      return true;
    scan.state = HTTP_SCAN_GOES_ON; /* whatever its status is */
  }
  return false;
}
