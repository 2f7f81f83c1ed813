/* SPDX-License-Identifier: MIT */
#include "outbox/db_rows.h"

#include <stdlib.h>
#include <string.h>

/* Blocks stay below the size (128 KiB) from which malloc asks the system for each, which then has to give every page of
 * it anew. */
enum { FIRST_BLOCK = 8 * 1024, LARGEST_BLOCK = 64 * 1024 };

struct block {
  struct block *before;
};

struct db_rows {
  struct block *blocks; /* the latest first; the first one holds this too */
  char *free, *end;     /* of the latest */
  size_t next_size;
  uint64_t bytes, count;
  struct db_stored_row *first, **last, *next;
};

static size_t aligned(size_t size) { return (size + sizeof(void *) - 1) & ~(sizeof(void *) - 1); }

static bool add_block(struct db_rows *rows, size_t least) {
  size_t size = rows->next_size > least + sizeof(struct block) ? rows->next_size : least + sizeof(struct block);
  struct block *block = malloc(size);
  if (!block)
    return false;
  block->before = rows->blocks;
  rows->blocks = block;
  rows->free = (char *)(block + 1);
  rows->end = (char *)block + size;
  rows->next_size = rows->next_size < LARGEST_BLOCK ? rows->next_size * 2 : LARGEST_BLOCK;
  return true;
}

static void *allot(struct db_rows *rows, size_t size) {
  size = aligned(size);
  if ((size_t)(rows->end - rows->free) < size && !add_block(rows, size))
    return NULL;
  void *at = rows->free;
  rows->free += size;
  rows->bytes += size;
  return at;
}

static struct db_rows *new_rows(void) {
  struct db_rows start = {.next_size = FIRST_BLOCK};
  if (!add_block(&start, sizeof start))
    return NULL;
  struct db_rows *rows = allot(&start, sizeof start);
  *rows = start;
  rows->last = &rows->first;
  return rows;
}

/* The fields of a row lie one after the other where the library received them, each followed by a NUL: one copy takes
 * them all. */
static bool keep_row(struct db_rows *rows, unsigned columns, char *const *fields, const unsigned long *lengths) {
  unsigned first = 0, end = columns;
  while (first < columns && !fields[first])
    first++;
  while (end > first && !fields[end - 1])
    end--;
  const char *from = first < end ? fields[first] : NULL;
  size_t size = from ? (size_t)(fields[end - 1] + lengths[end - 1] - from) : 0;
  struct db_stored_row *row = allot(rows, sizeof *row + columns * (sizeof *fields + sizeof *lengths) + size + 1);
  if (!row)
    return false;
  char **copies = (char **)(row + 1);
  unsigned long *copied_lengths = (unsigned long *)(copies + columns);
  char *data = (char *)(copied_lengths + columns);
  *row = (struct db_stored_row){.fields = copies, .lengths = copied_lengths};
  memcpy(copied_lengths, lengths, columns * sizeof *lengths);
  if (size)
    memcpy(data, from, size);
  data[size] = '\0';
  for (unsigned i = 0; i < columns; i++)
    copies[i] = fields[i] ? data + (fields[i] - from) : NULL;
  *rows->last = row;
  rows->last = &row->next;
  rows->count++;
  return true;
}

enum db_rows_end db_rows_take(MYSQL *mysql, MYSQL_RES *result, uint64_t most, struct db_rows **out) {
  struct db_rows *rows = *out = new_rows();
  unsigned columns = mysql_num_fields(result);
  enum db_rows_end end = rows ? DB_ROWS_ALL : DB_ROWS_NO_MEMORY;
  MYSQL_ROW fields;
  while (end == DB_ROWS_ALL && (fields = mysql_fetch_row(result)) != NULL) {
    if (!keep_row(rows, columns, fields, mysql_fetch_lengths(result)))
      end = DB_ROWS_NO_MEMORY;
    else if (rows->bytes > most)
      end = DB_ROWS_ENDLESS;
  }
  if (end == DB_ROWS_ALL && mysql_errno(mysql))
    end = DB_ROWS_FAILED;
  if (end != DB_ROWS_ALL)
    db_rows_free(out);
  else
    rows->next = rows->first;
  return end;
}

void db_rows_free(struct db_rows **rows) {
  if (!*rows)
    return;
  for (struct block *block = (*rows)->blocks, *before; block; block = before) {
    before = block->before;
    free(block);
  }
  *rows = NULL;
}

uint64_t db_rows_count(const struct db_rows *rows) { return rows->count; }

const struct db_stored_row *db_rows_next(struct db_rows *rows) {
  const struct db_stored_row *row = rows->next;
  rows->next = row ? row->next : NULL;
  return row;
}
