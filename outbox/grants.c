/* SPDX-License-Identifier: MIT */
#include "outbox/grants.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "outbox/rights.h"

enum { NAME_ROOM = 256 };

enum level { NOWHERE, ON_TABLE, ON_SERVER };

/* Past a name in backticks, or a star, which becomes an empty one. NULL: it is neither, as of a procedure. */
static const char *read_name(const char *at, char name[static NAME_ROOM]) {
  size_t len = 0;
  name[0] = '\0';
  if (*at == '*')
    return at + 1;
  if (*at++ != '`')
    return NULL;
  for (; *at && (*at != '`' || at[1] == '`') && len < NAME_ROOM - 1; at++) {
    at += *at == '`';
    name[len++] = *at;
  }
  name[len] = '\0';
  return *at == '`' ? at + 1 : NULL;
}

static bool is_same(char a, char b, bool case_counts) {
  return case_counts ? a == b : tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* As LIKE: the name of a database in a GRANT may be a pattern. */
static bool is_like(const char *name, const char *pattern, bool case_counts) {
  for (; *pattern && *pattern != '%'; pattern++, name++) {
    bool any = *pattern == '_';
    pattern += *pattern == '\\' && pattern[1];
    if (!*name || !(any || is_same(*name, *pattern, case_counts)))
      return false;
  }
  if (!*pattern)
    return !*name;
  do
    if (is_like(name, pattern + 1, case_counts))
      return true;
  while (*name++);
  return false;
}

static enum level level_of(const struct grants *grants, const char *target) {
  char database[NAME_ROOM], table[NAME_ROOM];
  const char *at = read_name(target, database);
  if (!at || *at != '.' || !read_name(at + 1, table))
    return NOWHERE;
  if (!*database)
    return ON_SERVER;
  bool here = *table ? (grants->case_counts ? strcmp : strcasecmp)(database, grants->database) == 0 &&
                           (grants->case_counts ? strcmp : strcasecmp)(table, grants->table) == 0
                     : is_like(grants->database, database, grants->case_counts);
  return here ? ON_TABLE : NOWHERE;
}

static bool begins(const char *right, const char *with) { return strncmp(right, with, strlen(with)) == 0; }

static bool is_right(const char *right, size_t len, const char *name) {
  return strlen(name) == len && strncmp(right, name, len) == 0;
}

static void add_right(struct grants *grants, const char *right, size_t len, enum level level) {
  bool all = is_right(right, len, "ALL PRIVILEGES");
  for (unsigned i = 0; i < RIGHTS; i++)
    if (all || is_right(right, len, right_names[i]))
      grants->rights |= 1U << i;
  if (level != ON_SERVER)
    return;
  grants->replica |= all || is_right(right, len, "REPLICATION SLAVE");
  grants->status |= all || is_right(right, len, "REPLICATION CLIENT");
  grants->super |= !is_right(right, len, "USAGE") && !is_right(right, len, "PROCESS") &&
                   !begins(right, "REPLICATION") && !begins(right, "BINLOG");
}

/* "GRANT SELECT, INSERT (a, b) ON `shop`.`outbox` TO .."; that of a role, "GRANT `r` TO ..", names nothing. */
void grants_add(struct grants *grants, const char *line) {
  static const char grant[] = "GRANT ", on[] = " ON ";
  const char *end = strstr(line, on);
  if (!begins(line, grant) || line[strlen(grant)] == '`' || !end)
    return;
  enum level level = level_of(grants, end + strlen(on));
  for (const char *right = line + strlen(grant); level != NOWHERE && right < end;) {
    size_t len = strcspn(right, ",(");
    if (right + len > end)
      len = (size_t)(end - right);
    if (right[len] != '(') /* else on some columns alone */
      add_right(grants, right, len, level);
    right += right[len] == '(' ? strcspn(right, ")") : len;
    right += strspn(right, "), ");
  }
}
