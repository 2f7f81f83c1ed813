/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/fuzz_binlog.c - events as a server, or something between it and us, might send them. The first byte is the
 * type of a rows event, the second one the length of a table's description, which comes next; the rest is the event.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "outbox/binlog_row.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool right) {
  if (!right)
    abort();
}

/* The columns are wherever the description has one of the type. */
static struct binlog_columns find_columns(const struct binlog_map *map) {
#define TYPE(symbol, column, type) [BINLOG_##symbol] = (type),
  static const uint8_t types[BINLOG_FIELDS] = {BINLOG_FIELD_LIST(TYPE)};
  struct binlog_columns columns = {.count = map->types.len};
  for (int field = 0; field < BINLOG_FIELDS; field++) {
    columns.at[field] = -1;
    for (size_t i = 0; i < map->types.len; i++)
      if ((uint8_t)map->types.data[i] == types[field])
        columns.at[field] = (int)i;
  }
  return columns;
}

static void read_rows(uint8_t type, const uint8_t *data, size_t size, const struct binlog_table *table) {
  struct binlog_rows rows;
  struct binlog_image before, after;
  struct store_hint hint;
  if (!binlog_read_rows(type, data, size, (struct duebox_bytes){0}, &rows))
    return;
  while (binlog_next(&rows, table, &before, &after) == BINLOG_ROW) {
    check(rows.at > data && rows.at <= data + size);
    if (binlog_tells(&rows, &before, &after, "host", &hint))
      check(hint.shard < STORE_SHARDS_MAX && memchr(hint.route, 0, sizeof hint.route));
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct duebox_bytes text = {.data = (const char *)data, .len = size};
  check(binlog_judge(text, text, "shop", "outbox") <= BINLOG_DEFINITION);
  struct duebox_bytes database, statement;
  if (binlog_read_query(data, size, &database, &statement))
    check(database.len + statement.len <= size);
  if (size < 2)
    return 0;
  size_t head = data[1] < size - 2 ? data[1] : size - 2;
  struct binlog_map map;
  static const struct binlog_table none;
  struct binlog_table table = none;
  if (binlog_read_map(data + 2, head, &map)) {
    struct binlog_columns columns = find_columns(&map);
    binlog_describe(&table, &map, &columns);
  }
  read_rows(data[0], data + 2 + head, size - 2 - head, &table);
  return 0;
}
