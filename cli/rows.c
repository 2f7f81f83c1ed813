/* SPDX-License-Identifier: MIT */
#include "cli/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "cli/text.h"
#include "cli/times.h"
#include "core/base/utf8.h"

/* RFC 4648, section 4. */
static json_t *base64(struct duebox_bytes bytes) {
  static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  char *text = malloc((bytes.len + 2) / 3 * 4 + 1), *out = text;
  if (!text)
    return NULL;
  for (size_t i = 0; i < bytes.len; i += 3) {
    unsigned group = 0;
    for (size_t j = 0; j < 3; j++)
      group = group << 8 | (i + j < bytes.len ? (unsigned char)bytes.data[i + j] : 0u);
    for (int j = 0; j < 4; j++)
      *out++ = i + (size_t)j > bytes.len ? '=' : alphabet[group >> (18 - 6 * j) & 63];
  }
  json_t *json = json_stringn(text, (size_t)(out - text));
  free(text);
  return json;
}

/* The head of bytes that are no text. */
static json_t *hex(struct duebox_bytes bytes) {
  enum { HEX_SHOWN = 256 };
  char text[sizeof "hex:" + 2 * HEX_SHOWN + sizeof " ..."], *out = text;
  out += sprintf(out, "hex:");
  for (size_t i = 0; i < bytes.len && i < HEX_SHOWN; i++)
    out += sprintf(out, "%02x", (unsigned char)bytes.data[i]);
  if (bytes.len > HEX_SHOWN)
    memcpy(out, " ...", sizeof " ...");
  return json_string(text);
}

static json_t *time_json(int64_t us) {
  char text[TIME_TEXT_MAX];
  rfc3339_print(us, text);
  return json_string(text);
}

static int set_bytes(json_t *object, const struct field *field, bool for_people) {
  struct duebox_bytes bytes = field->text;
  if (for_people)
    bytes.len = utf8_whole(bytes.data, bytes.len);
  if (text_is_utf8(bytes.data, bytes.len))
    return json_object_set_new(object, field->name, json_stringn(bytes.data, bytes.len));
  if (for_people)
    return json_object_set_new(object, field->name, hex(bytes));
  char name[80];
  snprintf(name, sizeof name, "%s_base64", field->name);
  return json_object_set_new(object, name, base64(bytes));
}

static int set_field(json_t *object, const struct field *field, bool for_people) {
  if (field->null)
    return json_object_set_new(object, field->name, json_null());
  switch (field->kind) {
  case FIELD_BYTES:
    return set_bytes(object, field, for_people);
  case FIELD_INT:
    return json_object_set_new(object, field->name, json_integer(field->number));
  case FIELD_BOOL:
    return json_object_set_new(object, field->name, json_boolean(field->number));
  case FIELD_REAL:
    return json_object_set_new(object, field->name, json_real(field->real));
  case FIELD_TIME:
    return json_object_set_new(object, field->name, time_json(field->number));
  case FIELD_TEXT:
  case FIELD_ID:
    break;
  }
  return json_object_set_new(object, field->name, output_string(field->text.data, field->text.len));
}

json_t *row_json(const struct field *fields, size_t count, bool for_people) {
  json_t *object = json_object();
  for (size_t i = 0; i < count; i++)
    if (set_field(object, &fields[i], for_people) != 0) {
      json_decref(object);
      return NULL;
    }
  return object;
}

int64_t row_time(const json_t *row, const char *key) {
  const char *text = json_string_value(json_object_get(row, key));
  int64_t us;
  return text && rfc3339_parse(text, &us) ? us : 0;
}
