/* SPDX-License-Identifier: MIT */
#include "outbox/binlog_row.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "outbox/row.h"
#include "outbox/sql.h"

enum { TABLE_ID_BYTES = 6, FLAG_BYTES = 2 };

/* What is left to read. A read that goes beyond the end gives nothing and says so from then on. */
struct reader {
  const uint8_t *at, *end;
  bool failed;
};

static const uint8_t *take(struct reader *r, size_t n) {
  if (r->failed || n > (size_t)(r->end - r->at)) {
    r->failed = true;
    return NULL;
  }
  const uint8_t *taken = r->at;
  r->at += n;
  return taken;
}

static uint64_t little(struct reader *r, size_t bytes) {
  const uint8_t *from = take(r, bytes);
  uint64_t value = 0;
  for (size_t i = bytes; from && i > 0; i--)
    value = value << 8 | from[i - 1];
  return value;
}

static uint64_t big(const uint8_t *from, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; i++)
    value = value << 8 | from[i];
  return value;
}

/* "Length-encoded integer" of the client protocol. */
static uint64_t packed(struct reader *r) {
  uint64_t first = little(r, 1);
  switch (first) {
  case 251:
    r->failed = true;
    return 0;
  case 252:
    return little(r, 2);
  case 253:
    return little(r, 3);
  case 254:
    return little(r, 8);
  default:
    return first;
  }
}

static const uint8_t *start_of(struct duebox_bytes from) { return (const uint8_t *)from.data; }

static struct reader reader_of(struct duebox_bytes from) {
  return (struct reader){.at = start_of(from), .end = start_of(from) + from.len};
}

static struct duebox_bytes bytes(struct reader *r, uint64_t n) {
  const uint8_t *from = take(r, n <= SIZE_MAX ? (size_t)n : SIZE_MAX);
  return from ? (struct duebox_bytes){.data = (const char *)from, .len = (size_t)n} : (struct duebox_bytes){0};
}

/* --- the table --- */

/* A name with its length before it and a NUL behind it. */
static struct duebox_bytes name(struct reader *r) {
  struct duebox_bytes text = bytes(r, little(r, 1));
  (void)take(r, 1);
  return text;
}

bool binlog_read_map(const uint8_t *body, size_t len, struct binlog_map *out) {
  struct reader r = {.at = body, .end = body + len};
  out->table_id = little(&r, TABLE_ID_BYTES);
  (void)take(&r, FLAG_BYTES);
  out->database = name(&r);
  out->table = name(&r);
  out->types = bytes(&r, packed(&r));
  out->metadata = bytes(&r, packed(&r));
  return !r.failed;
}

bool binlog_read_query(const uint8_t *body, size_t len, struct duebox_bytes *database, struct duebox_bytes *statement) {
  enum { THREAD_AND_TIME = 8, ERROR_CODE = 2 };
  struct reader r = {.at = body, .end = body + len};
  (void)take(&r, THREAD_AND_TIME);
  size_t name_len = (size_t)little(&r, 1);
  (void)take(&r, ERROR_CODE);
  (void)take(&r, (size_t)little(&r, 2)); /* how the session was set */
  *database = bytes(&r, name_len);
  (void)take(&r, 1); /* NUL */
  *statement = bytes(&r, (size_t)(r.end - r.at));
  return !r.failed;
}

enum { TYPE_DECIMAL = 246, TYPE_ENUM = 247, TYPE_SET = 248, TYPE_STRING = 254 };

/* Binary column types: what the table map says of them, and how long a value is. */
enum shape {
  FIXED,    /* `size` bytes */
  FRACTION, /* `size` bytes and as many as the fraction's digits need */
  COUNTED,  /* metadata: how many bytes of length come first */
  LIMITED,  /* metadata: the longest; its length comes in one byte or two */
  BITS,
  DECIMAL,
  STRING,
};
static const struct column_type {
  uint8_t type, metadata_bytes, shape, size;
} column_types[] = {
    {1, 0, FIXED, 1},     {2, 0, FIXED, 2},     {3, 0, FIXED, 4},     {4, 1, FIXED, 4},     {5, 1, FIXED, 8},
    {6, 0, FIXED, 0},     {7, 0, FIXED, 4},     {8, 0, FIXED, 8},     {9, 0, FIXED, 3},     {10, 0, FIXED, 3},
    {11, 0, FIXED, 3},    {12, 0, FIXED, 8},    {13, 0, FIXED, 1},    {14, 0, FIXED, 3},    {15, 2, LIMITED, 0},
    {16, 2, BITS, 0},     {17, 1, FRACTION, 4}, {18, 1, FRACTION, 5}, {19, 1, FRACTION, 3}, {140, 1, COUNTED, 0},
    {141, 2, LIMITED, 0}, {245, 1, COUNTED, 0}, {246, 2, DECIMAL, 0}, {247, 2, STRING, 0},  {248, 2, STRING, 0},
    {249, 1, COUNTED, 0}, {250, 1, COUNTED, 0}, {251, 1, COUNTED, 0}, {252, 1, COUNTED, 0}, {253, 2, LIMITED, 0},
    {254, 2, STRING, 0},  {255, 1, COUNTED, 0},
};

static const struct column_type *find_type(uint8_t type) {
  for (size_t i = 0; i < ARRAY_LEN(column_types); i++)
    if (column_types[i].type == type)
      return &column_types[i];
  return NULL;
}

#define BINLOG_TYPE(symbol, column, type) [BINLOG_##symbol] = (type),
static const uint8_t field_types[BINLOG_FIELDS] = {BINLOG_FIELD_LIST(BINLOG_TYPE)};
#undef BINLOG_TYPE

void binlog_describe(struct binlog_table *table, const struct binlog_map *map, const struct binlog_columns *columns) {
  struct reader metadata = reader_of(map->metadata);
  const uint8_t *types = start_of(map->types);
  table->id = map->table_id;
  table->count = map->types.len;
  table->known = table->count == columns->count && table->count <= BINLOG_COLUMNS_MAX;
  for (size_t i = 0; table->known && i < table->count; i++) {
    const struct column_type *type = find_type(types[i]);
    table->column[i].type = types[i];
    table->column[i].field = -1;
    if (type)
      table->column[i].metadata = (uint16_t)little(&metadata, type->metadata_bytes);
    table->known = type && !metadata.failed;
  }
  for (int field = 0; table->known && field < BINLOG_FIELDS; field++) {
    int at = columns->at[field];
    table->known = at >= 0 && (size_t)at < table->count && table->column[at].type == field_types[field];
    if (table->known)
      table->column[at].field = (int8_t)field;
  }
}

/* --- values --- */

static size_t decimal_bytes(uint16_t metadata) {
  static const uint8_t of_digits[] = {0, 1, 1, 2, 2, 3, 3, 4, 4, 4};
  size_t digits = metadata & 0xff, scale = metadata >> 8, whole = digits > scale ? digits - scale : 0;
  return whole / 9 * 4 + of_digits[whole % 9] + scale / 9 * 4 + of_digits[scale % 9];
}

/* CHAR, ENUM and SET share a type; the first byte of the metadata tells them apart, and lends two bits of its own to
 * lengths beyond 255. */
static size_t string_bytes(struct reader *r, uint16_t metadata) {
  unsigned first = metadata & 0xff, second = metadata >> 8;
  if (first == TYPE_ENUM || first == TYPE_SET)
    return second;
  size_t longest = second | ((first & 0x30) ^ 0x30) << 4;
  return (size_t)little(r, longest < 256 ? 1 : 2);
}

/* One value, without what comes before it to say how long it is. */
static struct duebox_bytes value(struct reader *r, uint8_t type, uint16_t metadata) {
  const struct column_type *known = find_type(type);
  if (!known) {
    r->failed = true;
    return (struct duebox_bytes){0};
  }
  switch ((enum shape)known->shape) {
  case FIXED:
    return bytes(r, known->size);
  case FRACTION:
    return bytes(r, known->size + (metadata + 1u) / 2);
  case COUNTED:
    return bytes(r, little(r, metadata <= 8 ? metadata : 8));
  case LIMITED:
    return bytes(r, little(r, metadata < 256 ? 1 : 2));
  case BITS:
    return bytes(r, (size_t)(metadata >> 8) + ((metadata & 0xff) > 0));
  case DECIMAL:
    return bytes(r, decimal_bytes(metadata));
  case STRING:
    return bytes(r, string_bytes(r, metadata));
  }
  return (struct duebox_bytes){0};
}

/* DATETIME2: 1 bit sign, 17 year * 13 + month, 5 day, 5 hour, 6 minute, 6 second, and the fraction in hundreds. */
static bool datetime(struct duebox_bytes from, int64_t *us) {
  const uint8_t *data = start_of(from);
  uint64_t packed_time = big(data, 5) & UINT64_C(0x7fffffffff);
  unsigned months = (unsigned)(packed_time >> 22);
  struct time_parts parts = {.year = (int)(months / 13),
                             .month = (int)(months % 13),
                             .day = (int)(packed_time >> 17 & 31),
                             .hour = (int)(packed_time >> 12 & 31),
                             .minute = (int)(packed_time >> 6 & 63),
                             .second = (int)(packed_time & 63),
                             .us = (int)big(data + 5, from.len - 5)};
  for (size_t i = from.len; i < 8; i++)
    parts.us *= 100;
  return time_from(&parts, us);
}

static bool set_field(struct binlog_image *image, enum binlog_field field, struct duebox_bytes from) {
  const uint8_t *data = start_of(from);
  bool good = true;
  switch (field) {
  case BINLOG_ID:
    image->id = little(&(struct reader){.at = data, .end = data + from.len}, 8);
    break;
  case BINLOG_ROUTE:
    image->route = from;
    break;
  case BINLOG_DUE_AT:
    good = from.len >= 5 && from.len <= 8 && datetime(from, &image->due_us);
    break;
  case BINLOG_PRIORITY:
    image->priority = data[0];
    break;
  case BINLOG_TARGET_HOST:
    image->target_host = from;
    break;
  case BINLOG_SHARD:
    image->shard = data[0];
    good = image->shard < STORE_SHARDS_MAX;
    break;
  case BINLOG_STATE: /* the number of the value, from 1; 0 is what no sql_mode of ours lets in */
    good = from.len == 1 && data[0] > 0;
    image->state = good ? data[0] - 1 : 0;
    break;
  case BINLOG_FIELDS:
    break;
  }
  if (good)
    image->has |= 1u << field;
  return good;
}

static bool bit(const uint8_t *set, size_t i) { return set[i / 8] >> i % 8 & 1; }

static size_t count_bits(const uint8_t *set, size_t n) {
  size_t count = 0;
  for (size_t i = 0; i < n; i++)
    count += bit(set, i);
  return count;
}

/* One image: a bit for each column that is there and NULL, then the values of those that are not. */
static bool read_image(struct reader *r, const struct binlog_table *table, const uint8_t *present,
                       struct binlog_image *image) {
  const uint8_t *nulls = take(r, (count_bits(present, table->count) + 7) / 8);
  *image = (struct binlog_image){0};
  size_t nth = 0;
  for (size_t i = 0; nulls && i < table->count; i++) {
    if (!bit(present, i) || bit(nulls, nth++))
      continue;
    struct duebox_bytes from = value(r, table->column[i].type, table->column[i].metadata);
    if (r->failed)
      return false;
    if (table->column[i].field >= 0 && !set_field(image, (enum binlog_field)table->column[i].field, from))
      return false;
  }
  return nulls != NULL;
}

/* --- rows events --- */

bool binlog_adds_rows(uint8_t type) {
  return type == BINLOG_INSERT_V1 || type == BINLOG_UPDATE_V1 || type == BINLOG_INSERT_V2 || type == BINLOG_UPDATE_V2 ||
         type == BINLOG_INSERT_COMPRESSED_V1 || type == BINLOG_UPDATE_COMPRESSED_V1 ||
         type == BINLOG_INSERT_COMPRESSED_V2 || type == BINLOG_UPDATE_COMPRESSED_V2;
}

static bool is_update(uint8_t type) {
  return type == BINLOG_UPDATE_V1 || type == BINLOG_UPDATE_V2 || type == BINLOG_UPDATE_COMPRESSED_V1 ||
         type == BINLOG_UPDATE_COMPRESSED_V2;
}

static bool is_v2(uint8_t type) {
  return type == BINLOG_INSERT_V2 || type == BINLOG_UPDATE_V2 || type == BINLOG_INSERT_COMPRESSED_V2 ||
         type == BINLOG_UPDATE_COMPRESSED_V2;
}

bool binlog_read_rows(uint8_t type, const uint8_t *body, size_t len, struct duebox_bytes plain,
                      struct binlog_rows *out) {
  struct reader r = {.at = body, .end = body + len};
  out->update = is_update(type);
  out->table_id = little(&r, TABLE_ID_BYTES);
  (void)take(&r, FLAG_BYTES);
  if (is_v2(type)) {
    uint64_t extra = little(&r, 2); /* its own two bytes are counted */
    (void)take(&r, extra >= 2 ? (size_t)extra - 2 : SIZE_MAX);
  }
  uint64_t columns = packed(&r);
  if (columns > BINLOG_COLUMNS_MAX)
    return false;
  out->columns = (size_t)columns;
  out->present[0] = out->present[1] = take(&r, (out->columns + 7) / 8);
  if (out->update)
    out->present[1] = take(&r, (out->columns + 7) / 8);
  out->at = plain.data ? start_of(plain) : r.at;
  out->end = plain.data ? start_of(plain) + plain.len : r.end;
  return !r.failed;
}

enum binlog_step binlog_next(struct binlog_rows *rows, const struct binlog_table *table, struct binlog_image *before,
                             struct binlog_image *after) {
  struct reader r = {.at = rows->at, .end = rows->end};
  *before = (struct binlog_image){0};
  if (r.at == r.end)
    return BINLOG_END;
  if (!table->known || rows->columns != table->count ||
      (rows->update && !read_image(&r, table, rows->present[0], before)) ||
      !read_image(&r, table, rows->present[1], after) || r.at == rows->at)
    return BINLOG_BROKEN;
  rows->at = r.at;
  return BINLOG_ROW;
}

/* --- what it means --- */

static bool has(const struct binlog_image *image, enum binlog_field field) { return image->has >> field & 1; }

static bool same(struct duebox_bytes a, struct duebox_bytes b) {
  return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* What an image has that was not so before. A partial image has only what was changed. */
static bool moved(const struct binlog_image *before, const struct binlog_image *after) {
  return (has(after, BINLOG_STATE) && (!has(before, BINLOG_STATE) || after->state != before->state)) ||
         (has(after, BINLOG_DUE_AT) && (!has(before, BINLOG_DUE_AT) || after->due_us < before->due_us)) ||
         (has(after, BINLOG_SHARD) && (!has(before, BINLOG_SHARD) || after->shard != before->shard)) ||
         (has(after, BINLOG_PRIORITY) && (!has(before, BINLOG_PRIORITY) || after->priority != before->priority)) ||
         (has(after, BINLOG_ROUTE) && (!has(before, BINLOG_ROUTE) || !same(after->route, before->route))) ||
         (has(after, BINLOG_TARGET_HOST) &&
          (!has(before, BINLOG_TARGET_HOST) || !same(after->target_host, before->target_host)));
}

/* The row as it is now, as far as both images together tell. */
static struct binlog_image merged(const struct binlog_image *before, const struct binlog_image *after) {
  struct binlog_image row = *after;
  if (!has(&row, BINLOG_ID))
    row.id = before->id;
  if (!has(&row, BINLOG_ROUTE))
    row.route = before->route;
  if (!has(&row, BINLOG_DUE_AT))
    row.due_us = before->due_us;
  if (!has(&row, BINLOG_PRIORITY))
    row.priority = before->priority;
  if (!has(&row, BINLOG_TARGET_HOST))
    row.target_host = before->target_host;
  if (!has(&row, BINLOG_SHARD))
    row.shard = before->shard;
  row.has |= before->has;
  return row;
}

bool binlog_tells(const struct binlog_rows *rows, const struct binlog_image *before, const struct binlog_image *after,
                  const char *host, struct store_hint *hint) {
  const unsigned group = 1u << BINLOG_ROUTE | 1u << BINLOG_DUE_AT | 1u << BINLOG_PRIORITY | 1u << BINLOG_SHARD;
  if (has(after, BINLOG_STATE) && after->state != TASK_SCHEDULED)
    return false;
  if (rows->update && !moved(before, after))
    return false;
  struct binlog_image row = merged(before, after);
  struct duebox_bytes ours = {.data = host, .len = strlen(host)};
  if (has(&row, BINLOG_TARGET_HOST) && row.target_host.len > 0 && !same(row.target_host, ours))
    return false;
  *hint = (struct store_hint){.due_us = has(&row, BINLOG_DUE_AT) ? row.due_us : INT64_MIN};
  if ((row.has & group) == group && row_name_fits(row.route.data, row.route.len, STORE_ROUTE_MAX) &&
      row.priority <= 9) {
    memcpy(hint->route, row.route.data, row.route.len);
    hint->shard = row.shard;
    hint->priority = row.priority;
    hint->id = has(&row, BINLOG_ID) ? row.id : 0;
  }
  return true;
}

static bool is_word(unsigned char c) { return isalnum(c) || c == '_' || c == '$' || c >= 0x80; }

/* Whether the word stands in the text; case does not count, as on servers that fold names. */
static bool names(struct duebox_bytes text, const char *word) {
  enum { NEAR = 4096 }; /* data may follow, and much of it */
  const char *from = text.data;
  size_t len = text.len < NEAR ? text.len : NEAR, n = strlen(word);
  for (size_t i = 0; i + n <= len; i++)
    if (strncasecmp(from + i, word, n) == 0 && (i == 0 || !is_word((unsigned char)from[i - 1])) &&
        (i + n == len || !is_word((unsigned char)from[i + n])))
      return true;
  return false;
}

/* The first word, behind blanks and comments. */
static struct duebox_bytes first_word(struct duebox_bytes text) {
  const char *at = text.data, *end = at + text.len;
  while (at < end && !is_word((unsigned char)*at)) {
    const char *close = end - at >= 2 && at[0] == '/' && at[1] == '*' && at + 2 < end && at[2] != '!'
                            ? memmem(at, (size_t)(end - at), "*/", 2)
                            : NULL;
    at = close ? close + 2 : at + 1;
  }
  const char *start = at;
  while (at < end && is_word((unsigned char)*at))
    at++;
  return (struct duebox_bytes){.data = start, .len = (size_t)(at - start)};
}

enum binlog_meaning binlog_judge(struct duebox_bytes statement, struct duebox_bytes session, const char *database,
                                 const char *table) {
  static const struct {
    const char *word;
    enum binlog_meaning meaning;
  } words[] = {{"INSERT", BINLOG_CHANGE},     {"REPLACE", BINLOG_CHANGE},   {"UPDATE", BINLOG_CHANGE},
               {"LOAD", BINLOG_CHANGE},       {"ALTER", BINLOG_DEFINITION}, {"RENAME", BINLOG_DEFINITION},
               {"CREATE", BINLOG_DEFINITION}, {"DROP", BINLOG_DEFINITION}};
  if (!statement.len)
    return BINLOG_NOTHING;
  struct duebox_bytes word = first_word(statement);
  for (size_t i = 0; i < ARRAY_LEN(words); i++) {
    if (word.len != strlen(words[i].word) || strncasecmp(word.data, words[i].word, word.len) != 0)
      continue;
    bool here = session.len == strlen(database) && strncasecmp(session.data, database, session.len) == 0;
    return names(statement, table) && (here || names(statement, database)) ? words[i].meaning : BINLOG_NOTHING;
  }
  return BINLOG_NOTHING;
}
