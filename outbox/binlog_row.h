/* SPDX-License-Identifier: MIT
 *
 * outbox/binlog_row.h - what the server's binlog says about rows of the outbox: as much of its format as is needed to
 * see which rows may be due, and when.
 *
 * Pure decoding of bytes, with every length checked. Formats: MariaDB's documentation of replication events (TABLE_MAP,
 * ROWS_EVENT v1 and v2, QUERY_EVENT) and MySQL's of the binary types. What is not understood is "broken" or "not
 * known", never a wild read; whoever reads the log then asks the table instead.
 */
#ifndef OUTBOX_BINLOG_ROW_H
#define OUTBOX_BINLOG_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/attr.h"
#include "core/store.h"

/* Types of events that mean something to us. */
enum binlog_event {
  BINLOG_QUERY = 2,
  BINLOG_ROTATE = 4,
  BINLOG_FORMAT = 15,
  BINLOG_XID = 16, /* a transaction's commit */
  BINLOG_TABLE_MAP = 19,
  BINLOG_INSERT_V1 = 23,
  BINLOG_UPDATE_V1 = 24,
  BINLOG_INCIDENT = 26, /* something was not logged */
  BINLOG_HEARTBEAT = 27,
  BINLOG_INSERT_V2 = 30,
  BINLOG_UPDATE_V2 = 31,
  BINLOG_XA_PREPARE = 38,
  BINLOG_PACKED = 40, /* a whole transaction that MySQL has compressed */
  BINLOG_QUERY_COMPRESSED = 165,
  BINLOG_INSERT_COMPRESSED_V1 = 166,
  BINLOG_UPDATE_COMPRESSED_V1 = 167,
  BINLOG_INSERT_COMPRESSED_V2 = 169,
  BINLOG_UPDATE_COMPRESSED_V2 = 170,
};

/* FIELD(symbol, "column", type of its values in the log): what is read of a row. */
#define BINLOG_FIELD_LIST(FIELD)                                                                                       \
  FIELD(ID, "id", 8)                                                                                                   \
  FIELD(ROUTE, "route", 15)                                                                                            \
  FIELD(DUE_AT, "next_at", 18)                                                                                         \
  FIELD(PRIORITY, "priority", 1)                                                                                       \
  FIELD(TARGET_HOST, "target_host", 15)                                                                                \
  FIELD(SHARD, "shard", 1)                                                                                             \
  FIELD(STATE, "state", 254)

#define BINLOG_SYMBOL(symbol, column, type) BINLOG_##symbol,
enum binlog_field { BINLOG_FIELD_LIST(BINLOG_SYMBOL) BINLOG_FIELDS };
#undef BINLOG_SYMBOL

enum { BINLOG_COLUMNS_MAX = 256 };

/* Where the table has its columns: the log has positions only (binlog_row_metadata is NO_LOG by default). */
struct binlog_columns {
  size_t count;
  int at[BINLOG_FIELDS]; /* from 0; -1 = there is none */
};

/* A TABLE_MAP event; points into it. */
struct binlog_map {
  uint64_t table_id;
  struct duebox_bytes database, table, types, metadata;
};

/* The outbox in the rows events that follow its TABLE_MAP. */
struct binlog_table {
  bool known; /* its columns are where we think, and of the types that we know */
  uint64_t id;
  size_t count;
  struct {
    uint8_t type;
    uint16_t metadata;
    int8_t field; /* enum binlog_field, -1 = none of ours */
  } column[BINLOG_COLUMNS_MAX];
};

/* A rows event and how far it was read; points into it. */
struct binlog_rows {
  bool update; /* each row is there twice: before and after */
  uint64_t table_id;
  size_t columns;
  const uint8_t *present[2]; /* bit sets: columns in the first image of a row, and in the second */
  const uint8_t *at, *end;
};

/* What is known of a row. */
struct binlog_image {
  unsigned has; /* bit set over enum binlog_field */
  uint64_t id;
  struct duebox_bytes route, target_host;
  int64_t due_us;
  uint8_t priority, shard;
  uint8_t state; /* enum task_state */
};

enum binlog_step { BINLOG_ROW, BINLOG_END, BINLOG_BROKEN };

MUSTCHECK bool binlog_read_map(const uint8_t *body, size_t len, struct binlog_map *out);
/* Takes the table's description; sets table->known. */
void binlog_describe(struct binlog_table *table, const struct binlog_map *map, const struct binlog_columns *columns);
/* Whether the event adds or changes rows: others need not be read. */
bool binlog_adds_rows(uint8_t type);
/* The header of such an event. `plain`: the rows of a compressed one, unpacked by the client library. */
MUSTCHECK bool binlog_read_rows(uint8_t type, const uint8_t *body, size_t len, struct duebox_bytes plain,
                                struct binlog_rows *out);
/* The next row: *after as it is now, *before as it was (nothing is known of that for new rows). */
enum binlog_step binlog_next(struct binlog_rows *rows, const struct binlog_table *table, struct binlog_image *before,
                             struct binlog_image *after);
/* Whether the row may have to be sent earlier than anybody knew: it is new, came back to scheduled, is due earlier, or
 * is to be found elsewhere. Rows bound to hosts other than this one say nothing. Fills *hint; what the images do not
 * have (binlog_row_image = MINIMAL) makes it a general one. */
bool binlog_tells(const struct binlog_rows *rows, const struct binlog_image *before, const struct binlog_image *after,
                  const char *host, struct store_hint *hint);

/* A QUERY event: the statement, and the database that its session was in. Both point into it. */
MUSTCHECK bool binlog_read_query(const uint8_t *body, size_t len, struct duebox_bytes *database,
                                 struct duebox_bytes *statement);
/* What a logged statement may mean for the table. */
enum binlog_meaning { BINLOG_NOTHING, BINLOG_CHANGE, BINLOG_DEFINITION };
/* Judged by its first word and by whether the table is named near its beginning. `session`: the database it ran in. */
enum binlog_meaning binlog_judge(struct duebox_bytes statement, struct duebox_bytes session, const char *database,
                                 const char *table);

#endif
