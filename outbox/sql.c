/* SPDX-License-Identifier: MIT */
#include "outbox/sql.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/store.h"

static bool reserve(struct text *text, size_t more) {
  if (text->failed)
    return false;
  if (text->cap - text->len > more)
    return true;
  size_t cap = text->cap ? text->cap : 256;
  while (cap - text->len <= more) {
    if (cap > SIZE_MAX / 2) {
      text->failed = true;
      return false;
    }
    cap *= 2;
  }
  char *data = realloc(text->data, cap);
  if (!data) {
    text->failed = true;
    return false;
  }
  text->data = data;
  text->cap = cap;
  return true;
}

void text_clear(struct text *text) {
  text->len = 0;
  text->failed = false;
  if (text->data)
    text->data[0] = '\0';
}

void text_free(struct text *text) {
  free(text->data);
  *text = (struct text){0};
}

void text_add(struct text *text, const char *data, size_t len) {
  if (!reserve(text, len))
    return;
  if (len)
    memcpy(text->data + text->len, data, len);
  text->len += len;
  text->data[text->len] = '\0';
}

void text_append(struct text *text, const struct text *other) {
  text_add(text, other->data, other->len);
  text->failed = text->failed || other->failed;
}

char *text_room(struct text *text, size_t len) {
  if (!reserve(text, len))
    return NULL;
  char *room = text->data + text->len;
  text->len += len;
  text->data[text->len] = '\0';
  return room;
}

void text_puts(struct text *text, const char *string) { text_add(text, string, strlen(string)); }

void text_u64(struct text *text, uint64_t value) {
  char digits[20];
  size_t at = sizeof digits;
  do {
    digits[--at] = (char)('0' + value % 10);
    value /= 10;
  } while (value);
  text_add(text, digits + at, sizeof digits - at);
}

void text_i64(struct text *text, int64_t value) {
  if (value < 0)
    text_add(text, "-", 1);
  text_u64(text, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

/* How the characters that MySQL's string literal syntax gives a meaning are written; 0 = as they are. */
static const char sql_escape[256] = {
    ['\0'] = '0', ['\n'] = 'n', ['\r'] = 'r', ['\x1a'] = 'Z', ['\\'] = '\\', ['\''] = '\'', ['"'] = '"',
};

enum { BLOCK = sizeof(uint64_t) };
#define EACH_BYTE(byte) (UINT64_C(0x0101010101010101) * (byte))

/* The highest bits say whether one of the bytes is less than limit, which is at most 128. */
static uint64_t any_below(uint64_t bytes, uint64_t limit) { return (bytes - EACH_BYTE(limit)) & ~bytes; }

/* Whether BLOCK characters are all as they are: none is a control character, a quote or a backslash. */
static bool block_is_plain(const char *data) {
  uint64_t bytes;
  memcpy(&bytes, data, sizeof bytes);
  uint64_t found = any_below(bytes, 0x20) | any_below(bytes ^ EACH_BYTE('\''), 1) |
                   any_below(bytes ^ EACH_BYTE('"'), 1) | any_below(bytes ^ EACH_BYTE('\\'), 1);
  return !(found & EACH_BYTE(0x80));
}

void text_sql(struct text *text, const char *data, size_t len) {
  if (!reserve(text, 2 * len + 2))
    return;
  char *out = text->data + text->len;
  *out++ = '\'';
  for (size_t i = 0; i < len;) {
    if (len - i >= BLOCK && block_is_plain(data + i)) {
      memcpy(out, data + i, BLOCK);
      out += BLOCK;
      i += BLOCK;
      continue;
    }
    for (size_t end = len - i < BLOCK ? len : i + BLOCK; i < end; i++) {
      char escaped = sql_escape[(unsigned char)data[i]];
      if (escaped)
        *out++ = '\\';
      *out++ = escaped ? escaped : data[i];
    }
  }
  *out++ = '\'';
  *out = '\0';
  text->len = (size_t)(out - text->data);
}

bool sql_is_ascii(const char *data, size_t len) {
  for (size_t i = 0; i < len; i++)
    if (data[i] == 0 || (unsigned char)data[i] >= 0x80)
      return false;
  return true;
}

void text_ascii(struct text *text, const char *data, size_t len) {
  static const char digits[] = "0123456789abcdef";
  text_puts(text, "_ascii");
  if (sql_is_ascii(data, len)) {
    text_sql(text, data, len);
    return;
  }
  text_puts(text, " x'");
  char *out = text_room(text, 2 * len);
  for (size_t i = 0; out && i < len; i++) {
    *out++ = digits[(unsigned char)data[i] >> 4];
    *out++ = digits[data[i] & 15];
  }
  text_puts(text, "'");
}

/* Length of the UTF-8 character at data (RFC 3629: shortest form, no surrogates, at most U+10FFFF), or 0. */
static size_t utf8_char(const char *data, size_t len) {
  const unsigned char *s = (const unsigned char *)data;
  if (s[0] < 0x80)
    return 1;
  size_t need = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
  if (s[0] < 0xC2 || s[0] > 0xF4 || len < need)
    return 0;
  for (size_t i = 1; i < need; i++)
    if ((s[i] & 0xC0) != 0x80)
      return 0;
  bool overlong = (s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xF0 && s[1] < 0x90);
  bool beyond = (s[0] == 0xED && s[1] > 0x9F) || (s[0] == 0xF4 && s[1] > 0x8F);
  return overlong || beyond ? 0 : need;
}

static void json_char(struct text *text, unsigned char c) {
  if (c == '"' || c == '\\') {
    text_add(text, (char[]){'\\', (char)c}, 2);
  } else if (c >= 0x20) {
    text_add(text, (char[]){(char)c}, 1);
  } else {
    char escape[8];
    snprintf(escape, sizeof escape, "\\u%04x", c);
    text_puts(text, escape);
  }
}

/* Calls add for each clean character of at most max bytes of data. */
static void each_clean(struct text *text, const char *data, size_t len, size_t max,
                       void (*add)(struct text *text, const char *chars, size_t n)) {
  size_t used = 0;
  for (size_t i = 0; i < len;) {
    size_t n = data[i] == '\0' ? 0 : utf8_char(data + i, len - i);
    if (used + (n ? n : 1) > max)
      return;
    add(text, n ? data + i : "?", n ? n : 1);
    used += n ? n : 1;
    i += n ? n : 1;
  }
}

static void add_json(struct text *text, const char *chars, size_t n) {
  if (n == 1)
    json_char(text, (unsigned char)chars[0]);
  else
    text_add(text, chars, n);
}

static void add_sql(struct text *text, const char *chars, size_t n) {
  char escaped = n == 1 ? sql_escape[(unsigned char)chars[0]] : 0;
  if (escaped)
    text_add(text, (char[]){'\\', escaped}, 2);
  else
    text_add(text, chars, n);
}

void text_json(struct text *text, const char *data, size_t len, size_t max) {
  if (!data) {
    text_puts(text, "null");
    return;
  }
  text_add(text, "\"", 1);
  each_clean(text, data, len, max, add_json);
  text_add(text, "\"", 1);
}

void text_clean_sql(struct text *text, const char *data, size_t len, size_t max) {
  if (!data) {
    text_puts(text, "NULL");
    return;
  }
  text_add(text, "'", 1);
  each_clean(text, data, len, max, add_sql);
  text_add(text, "'", 1);
}

/* Days since 1970-01-01 in the proleptic Gregorian calendar; the year begins in March so that leap days come last. */
static int64_t days_of(int64_t year, int64_t month, int64_t day) {
  year -= month <= 2;
  int64_t era = (year >= 0 ? year : year - 399) / 400;
  int64_t year_of_era = year - era * 400;
  int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

static void date_of(int64_t days, int *year, int *month, int *day) {
  days += 719468;
  int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  int64_t day_of_era = days - era * 146097;
  int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  int64_t shifted = (5 * day_of_year + 2) / 153;
  *day = (int)(day_of_year - (153 * shifted + 2) / 5 + 1);
  *month = (int)(shifted < 10 ? shifted + 3 : shifted - 9);
  *year = (int)(year_of_era + era * 400 + (*month <= 2));
}

#define US_PER_DAY (INT64_C(86400) * 1000000)

void text_time(struct text *text, int64_t us) {
  const int64_t first = INT64_C(-30610224000) * 1000000;         /* year 1000 */
  const int64_t last = INT64_C(253402300799) * 1000000 + 999999; /* end of year 9999 */
  us = us < first ? first : us > last ? last : us;
  int64_t days = us / US_PER_DAY - (us % US_PER_DAY < 0);
  int64_t rest = us - days * US_PER_DAY;
  int year, month, day;
  date_of(days, &year, &month, &day);
  char out[80];
  snprintf(out, sizeof out, "%04d-%02d-%02d %02d:%02d:%02d.%06d", year, month, day, (int)(rest / 3600000000),
           (int)(rest / 60000000 % 60), (int)(rest / 1000000 % 60), (int)(rest % 1000000));
  text_puts(text, out);
}

enum { NOT_TWO = 1000000 }; /* no part of a time is so large */

/* A number of exactly n digits; -1 when something else stands there. */
static int digits(const char *text, int n) {
  int value = 0;
  for (int i = 0; i < n; i++) {
    if (text[i] < '0' || text[i] > '9')
      return -1;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

static bool date_valid(int year, int month, int day) {
  static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (year < 1 || year > 9999 || month < 1 || month > 12 || day < 1)
    return false;
  bool leap = month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return day <= days[month - 1] + leap;
}

/* A number of two digits; what is none gives more than 99. */
static int two_digits(const char *text) {
  unsigned high = (unsigned)(unsigned char)text[0] - '0', low = (unsigned)(unsigned char)text[1] - '0';
  return high > 9 || low > 9 ? NOT_TWO : (int)(high * 10 + low);
}

static bool fraction_parse(const char *text, size_t len, int64_t *us) {
  *us = 0;
  if (len == 0)
    return true;
  if (text[0] != '.' || len < 2 || len > 7)
    return false;
  if (len == 7) {
    int first = two_digits(text + 1), second = two_digits(text + 3), third = two_digits(text + 5);
    *us = INT64_C(10000) * first + 100 * second + third;
    return first < NOT_TWO && second < NOT_TWO && third < NOT_TWO;
  }
  int value = digits(text + 1, (int)len - 1);
  if (value < 0)
    return false;
  *us = value;
  for (size_t i = len - 1; i < 6; i++)
    *us *= 10;
  return true;
}

bool number_parse(const char *text, size_t len, uint64_t max, uint64_t *out) {
  enum { SAFE_DIGITS = 19 }; /* so many always fit */
  if (!text || len == 0 || len > SAFE_DIGITS + 1)
    return false;
  uint64_t value = (unsigned)(unsigned char)text[0] - '0';
  unsigned digit, worst = (unsigned)value;
  for (size_t i = 1; i < len && i < SAFE_DIGITS; i++) {
    digit = (unsigned)(unsigned char)text[i] - '0';
    worst = digit > worst ? digit : worst;
    value = value * 10 + digit;
  }
  if (worst > 9)
    return false;
  if (len > SAFE_DIGITS) {
    digit = (unsigned)(unsigned char)text[SAFE_DIGITS] - '0';
    if (digit > 9 || value > (UINT64_MAX - digit) / 10)
      return false;
    value = value * 10 + digit;
  }
  *out = value;
  return value <= max;
}

const char *message_id_or_none(const char *text) {
  size_t len = 0;
  while (text[len] > ' ' && text[len] <= '~')
    len++;
  return text[len] || len > STORE_ID_MAX ? "" : text;
}

struct task_name task_name_of(const char *text) {
  static const char row[] = "id:", message[] = "message_id:";
  struct task_name name = {.message_id = "", .whole = ""};
  if (strncmp(text, message, sizeof message - 1) == 0) {
    name.message_id = message_id_or_none(text + sizeof message - 1);
    name.whole = message_id_or_none(text);
    return name;
  }
  bool exact = strncmp(text, row, sizeof row - 1) == 0;
  const char *digits = exact ? text + sizeof row - 1 : text;
  name.is_row = number_parse(digits, strlen(digits), UINT64_MAX, &name.row);
  if (!name.is_row)
    name.row = 0; /* no row has it */
  *(exact && name.is_row ? &name.whole : &name.message_id) = message_id_or_none(text);
  return name;
}

bool task_name_is(const char *can_mean, const char *message_id) {
  return *can_mean && strcmp(can_mean, message_id) == 0;
}

bool time_from(const struct time_parts *parts, int64_t *us) {
  if (!date_valid(parts->year, parts->month, parts->day) || parts->hour < 0 || parts->hour > 23 || parts->minute < 0 ||
      parts->minute > 59 || parts->second < 0 || parts->second > 59 || parts->us < 0 || parts->us > 999999)
    return false;
  int64_t seconds = parts->hour * INT64_C(3600) + parts->minute * 60 + parts->second;
  *us = days_of(parts->year, parts->month, parts->day) * US_PER_DAY + seconds * 1000000 + parts->us;
  return true;
}

bool time_parse(const char *text, size_t len, int64_t *us) {
  if (len < 19 || text[4] != '-' || text[7] != '-' || text[10] != ' ' || text[13] != ':' || text[16] != ':')
    return false;
  int64_t fraction;
  if (!fraction_parse(text + 19, len - 19, &fraction))
    return false;
  struct time_parts parts = {.year = 100 * two_digits(text) + two_digits(text + 2),
                             .month = two_digits(text + 5),
                             .day = two_digits(text + 8),
                             .hour = two_digits(text + 11),
                             .minute = two_digits(text + 14),
                             .second = two_digits(text + 17),
                             .us = (int)fraction};
  return time_from(&parts, us);
}

static void add_arg(struct text *text, const struct sql_arg *arg) {
  switch (arg->kind) {
  case SQL_RAW:
    text_add(text, arg->string, arg->len);
    text->failed = text->failed || arg->failed;
    break;
  case SQL_STRING:
    text_sql(text, arg->string, arg->len);
    break;
  case SQL_CLEAN:
    text_clean_sql(text, arg->string, arg->len, arg->u);
    break;
  case SQL_UNSIGNED:
    text_u64(text, arg->u);
    break;
  case SQL_SIGNED:
    text_i64(text, arg->i);
    break;
  case SQL_TIME:
    text_add(text, "'", 1);
    text_time(text, arg->i);
    text_add(text, "'", 1);
    break;
  case SQL_END:
    text->failed = true;
    break;
  }
}

static void expand(struct text *text, const char *from, const char *end, const char *table, const struct sql_arg *args);

/* Conditions that several statements share. */
static const struct {
  const char *name, *text;
} rules[] = {
    {"case_counts", SQL_CASE_COUNTS},   {"lease_runs", SQL_LEASE_RUNS},           {"head_lives", SQL_HEAD_LIVES},
    {"host_lives", SQL_HOST_LIVES},     {"abandoned_until", SQL_ABANDONED_UNTIL}, {"maybe_sent", SQL_MAYBE_SENT},
    {"claimer_gone", SQL_CLAIMER_GONE}, {"claim_lost", SQL_CLAIM_LOST},           {"by_delay", SQL_BY_DELAY("")},
    {"o_by_delay", SQL_BY_DELAY("o.")}, {"b_by_delay", SQL_BY_DELAY("b.")},       {"ripe", SQL_RIPE("")},
    {"o_ripe", SQL_RIPE("o.")}};

static void add_named(struct text *text, const char *name, size_t len, const char *table, const struct sql_arg *args) {
  if (len == 5 && memcmp(name, "table", 5) == 0) {
    text_puts(text, table);
    return;
  }
  for (size_t i = 0; i < ARRAY_LEN(rules); i++)
    if (strlen(rules[i].name) == len && memcmp(name, rules[i].name, len) == 0) {
      expand(text, rules[i].text, rules[i].text + strlen(rules[i].text), table, args);
      return;
    }
  for (; args->kind != SQL_END; args++) {
    if (strlen(args->name) == len && memcmp(args->name, name, len) == 0)
      break;
  }
  add_arg(text, args);
}

/* Length of a placeholder's name at text, which follows an opening brace; 0 when the brace is an ordinary character. */
static size_t placeholder(const char *text) {
  size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz_");
  return text[len] == '}' ? len : 0;
}

static void expand(struct text *text, const char *from, const char *end, const char *table,
                   const struct sql_arg *args) {
  while (from < end) {
    const char *brace = memchr(from, '{', (size_t)(end - from));
    size_t name = brace ? placeholder(brace + 1) : 0;
    const char *upto = !brace ? end : name ? brace : brace + 1;
    text_add(text, from, (size_t)(upto - from));
    from = upto;
    if (name) {
      add_named(text, brace + 1, name, table, args);
      from = brace + name + 2;
    }
  }
}

void text_shard_set(struct text *out, uint64_t shards) {
  for (unsigned shard = 0, n = 0; shard < STORE_SHARDS_MAX; shard++) {
    if (!(shards & UINT64_C(1) << shard))
      continue;
    text_puts(out, n++ ? "," : "");
    text_u64(out, shard);
  }
}

void text_expand(struct text *text, const char *with, const char *table, const struct sql_arg *args) {
  expand(text, with, with + strlen(with), table, args);
}

void text_query(struct text *text, const char *statement, const char *table, const struct sql_arg *args) {
  while (strncmp(statement, "--", 2) == 0) {
    const char *line_end = strchr(statement, '\n');
    statement = line_end ? line_end + 1 : statement + strlen(statement);
  }
  const char *end = statement + strlen(statement);
  while (end > statement && (end[-1] == '\n' || end[-1] == ';'))
    end--;
  expand(text, statement, end, table, args);
}

void text_statement(struct text *text, const char *statement, const char *table, const struct sql_arg *args) {
  if (text->len)
    text_add(text, ";\n", 2);
  text_query(text, statement, table, args);
}
