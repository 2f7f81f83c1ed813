"""Rows as a client writes them that may only INSERT, and that keeps to no rule: statements from a seeded dice.

Everything comes from pools of values that meet some rule of the table, of the daemon or of a destination at its edge;
statements, sessions and transactions are as odd as the rows. Most of it the server refuses, and that is an answer too.
"""

import threading

import pymysql

GOOD_TEXT = ["''", "'k'", "'shared'", "'17'"]
BROKEN_TEXT = ["x'FF'", "x'00'", "x'6B00'", "x'C3A9'", "_latin1 x'E9'", "_utf16 x'D800'", "_utf8mb4 x'F09F9880'",
               "' k'", "'k '", "'k\t'", "'\t'", "' '", "'\r\nX: y'", "'K'", "'%%s%%n'", "'\\''", "'\"'", "'\\\\'", "'{task_key}'",
               "'../../x'", "'?a=b#c'", "REPEAT('k', 64)", "REPEAT('k', 65)", "REPEAT('k', 255)", "REPEAT('k', 256)",
               "REPEAT(_utf8mb4 x'C3BC', 255)", "REPEAT(_utf8mb4 x'F09F9880', 255)", "REPEAT(x'FF', 300)", "REPEAT(' ', 255)",
               "NULL", "0", "-1", "1e308", "NOW()", "RANDOM_BYTES(20)", "'\\0'", "CHAR(127)", "CHAR(1, 2, 3, 27)"]
NUMBERS = ["0", "1", "-1", "2", "'1'", "'1x'", "''", "1.5", "NULL", "255", "256", "65535", "2147483647", "2147483648", "4294967295",
           "4294967296", "9223372036854775807", "-9223372036854775808", "18446744073709551615", "1e30", "x'31'", "TRUE"]
TIMES = ["'0000-00-00'", "'0000-00-00 00:00:01'", "'2026-00-00'", "'2026-02-31'", "'2026-13-01'", "'1000-01-01'", "'1969-12-31'",
         "'1970-01-01'", "'1970-01-01 00:00:01'", "'1999-12-31 23:59:59.999999'", "'2000-01-01'", "'2199-12-31 23:59:59.999999'",
         "'2200-01-01'", "'9999-12-31 23:59:59.999999'", "'99999-01-01'", "0", "1", "-1", "NULL", "DEFAULT", "'08:00:00'", "'x'", "''",
         "NOW()", "NOW(6)", "UTC_TIMESTAMP(6)", "UTC_TIMESTAMP(6) + INTERVAL 300 SECOND", "UTC_TIMESTAMP(6) + INTERVAL 1 SECOND",
         "UTC_TIMESTAMP(6) - INTERVAL 1 SECOND", "UTC_TIMESTAMP(6) + INTERVAL 1000 MICROSECOND", "FROM_UNIXTIME(1)", "20300101",
         "'2026-01-01 00:00:00+14:00'", "'2026-12-31T00:00:00Z'", "CURRENT_DATE", "CURRENT_TIME", "1.5e15"]

POOLS = {
    "message_id": ["''", "' '", "x'FF'", "x'C3A9'", "x'00'", "x'6100'", "'a b'", "'a\\r\\nb'", "REPEAT('m', 64)", "REPEAT('m', 65)", "NULL", "0",
                   "DEFAULT", "'17'", "'id:17'", "'message_id:x'", "_utf16 x'00410042'", "CONCAT({good}, ' ')", "{GOOD}",
                   "CONCAT({good}, x'00')", "CONCAT(' ', {good})", "{fresh}", "{fresh}", "{fresh}", "{fresh}", "CONCAT({fresh}, x'FF')",
                   "CONCAT({fresh}, '/..')", "CONCAT({fresh}, '\"')", "CONCAT({fresh}, '%%')", "CONCAT({fresh}, '|1')"],
    "payload": ["''", "'odd'", "'odd fail'", "'odd fail'", "x'00FF'", "REPEAT('x', 65536)", "REPEAT('x', 65537)", "REPEAT('x', 1000000)",
                "RANDOM_BYTES(1000)", "NULL", "17", "DEFAULT", "_utf16 'x'", "'{\"status\":\"done\"}'"],
    "headers": ["'{}'", "''", "NULL", "DEFAULT", "'[]'", "'{'", "'null'", "x'FF'", "x'7B7D00'", "'{\"a\":1}'", "'{\"a\":\"x\"}'", "'{\"a\":\"../x\"}'",
                "'{\"a\":null}'", "'{\"a\":\"1\",\"a\":\"2\"}'", "'{\"A\":\"1\",\"a\":\"2\"}'", "'{\"\":\"1\"}'", "'{\"a\":\"\\\\u0000\"}'",
                "'{\"a\":\"\\\\ud800\"}'", "'{\"a b\":\"1\"}'", "'{\"a\":\"\\\\r\\\\n\"}'", "'{\"duebox-id\":\"x\",\"Host\":\"y\"}'",
                "'{\"webhook-id\":\"x\",\"Content-Length\":\"1\",\"Transfer-Encoding\":\"chunked\",\"Expect\":\"100-continue\"}'",
                "CONCAT('{\"a\":\"', REPEAT('x', 16300), '\"}')", "CONCAT('{\"a\":\"', REPEAT('x', 65500), '\"}')",
                "CONCAT('{\"a\":', REPEAT('[', 10000), REPEAT(']', 10000), '}')", "CONCAT(REPEAT('{\"a\":', 5000), '1', REPEAT('}', 5000))",
                "'{members}'", "'{\"a\":1e400,\"b\":-0,\"c\":00}'", "'{\"a\":\"\\\\\\\\\"}'", "'{\"content-type\":\"\"}'", "'{\"correlation_id\":\"z\"}'"],
    "task_key": [*GOOD_TEXT, *BROKEN_TEXT], "order_key": ["''", "''", "''", *GOOD_TEXT, *BROKEN_TEXT, "'shared '", "'SHARED'", "x'73686172656400'"],
    "dedup_key": ["NULL", "NULL", *BROKEN_TEXT, "''", "'d'", "'d '", "'D'"],
    "delay_ms": [*NUMBERS, "0", "300", "1000", "315360000000", "315360000001", "0.4", "-0.4", "'5abc'", "DEFAULT"],
    "due_at": TIMES, "expires_at": TIMES,
    "priority": [*NUMBERS, "5", "9", "10", "31", "DEFAULT"], "max_attempts": [*NUMBERS, "3", "DEFAULT"],
    "timeout_ms": [*NUMBERS, "1000", "DEFAULT"],
    "target_host": ["''", "{host}", "CONCAT({host}, ' ')", "UPPER({host})", "CONCAT({host}, x'00')", "'elsewhere'", *BROKEN_TEXT, "DEFAULT"],
    "shard": ["0", "1", "7", "8", "9", "31", "62", "63", "64", "128", "255", "256", "-1", "NULL", "DEFAULT", "'x'", "1.5"],
    "id": ["0", "NULL", "DEFAULT", "1", "-1", "{reused}", "1000000000000", "9007199254740993"],
}
#: What no application may write. Without the rights all of it is refused.
ENGINE_POOLS = {
    "state": ["''", "0", "1", "2", "3", "4", "5", "6", "'scheduled'", "'claimed'", "'awaiting'", "'held'", "'blocked'", "'done'", "'dead'", "NULL", "'SCHEDULED '"],
    "attempt": NUMBERS, "failures": NUMBERS, "recoveries": NUMBERS, "revision": NUMBERS,
    "claimed_by": ["NULL", *BROKEN_TEXT, "{host}"], "lease_until": TIMES, "first_due_at": TIMES, "published_at": TIMES, "finished_at": TIMES,
    "created_at": TIMES, "changed_at": TIMES, "error_class": BROKEN_TEXT, "last_error": BROKEN_TEXT, "progress": NUMBERS,
    "checkpoint": [*BROKEN_TEXT, "REPEAT('x', 100000)"], "sent_digest": NUMBERS, "answer_to": NUMBERS, "claim_epoch": NUMBERS,
    "move_to_shard": POOLS["shard"], "move_to_host": POOLS["target_host"],
}
MODES = ["''", "DEFAULT", "'TRADITIONAL'", "'ANSI_QUOTES'", "'ALLOW_INVALID_DATES'", "'NO_ZERO_DATE,NO_ZERO_IN_DATE'", "'PAD_CHAR_TO_FULL_LENGTH'",
         "'NO_AUTO_VALUE_ON_ZERO'", "'STRICT_TRANS_TABLES,ALLOW_INVALID_DATES'", "'NO_BACKSLASH_ESCAPES'", "''", "''"]
SESSION = ["check_constraint_checks = 0", "check_constraint_checks = 0", "check_constraint_checks = 1", "foreign_key_checks = 0", "unique_checks = 0",
           "timestamp = 1", "timestamp = 0.000001", "timestamp = 946684799.999999", "timestamp = 2147483647", "timestamp = DEFAULT", "timestamp = DEFAULT",
           "time_zone = '+13:59'", "time_zone = '-12:59'", "time_zone = '+05:07'", "time_zone = '+00:00'", "character_set_client = latin1",
           "character_set_client = utf8mb4", "character_set_connection = utf16", "character_set_connection = binary", "character_set_connection = utf8mb4",
           "NAMES utf8mb4", "NAMES latin1", "NAMES utf8mb4 COLLATE utf8mb4_general_ci", "collation_connection = utf8mb4_bin", "insert_id = 1",
           "insert_id = 1000000000", "insert_id = 9007199254740993", "sql_auto_is_null = 1", "lc_time_names = 'de_DE'", "div_precision_increment = 0",
           "sql_big_selects = 0", "max_statement_time = 1", "autocommit = 1", "old_mode = ''", "sql_warnings = 1", "group_concat_max_len = 4",
           "explicit_defaults_for_timestamp = 0"]
MEMBERS = "{" + ",".join(f'"h{i}":"{i}"' for i in range(10_000)) + "}"


class Client(threading.Thread):
    """Writes such rows on connections of its own until it is stopped. engine: it may write every column.

    host:  the name of a daemon.
    good:  gives message ids of other clients.
    files: a folder for LOAD DATA."""

    def __init__(self, connect, dice, *, routes, host, good, files, engine=False):
        super().__init__(name="odd rows", daemon=True)
        self.connect, self.dice, self.routes, self.host, self.good, self.files = connect, dice, routes, host, good, files
        self.pools = {**POOLS, **(ENGINE_POOLS if engine else {})}
        self.written = self.statements = 0
        self.refused = {}               # error number -> how often
        self.log = []                   # what was sent, for whoever reads of a failure
        self.error = None
        self._stopping = threading.Event()

    def stop(self):
        self._stopping.set()
        self.join()
        if self.error:
            raise AssertionError("the client of odd rows broke") from self.error

    def run(self):
        try:
            while not self._stopping.is_set():
                with self.connect() as connection:
                    self._session(connection)
        except BaseException as error:  # noqa: BLE001 - stop() reports it
            self.error = error

    # -- what it sends ----------------------------------------------------------------

    def _session(self, connection):
        dice = self.dice
        for _ in range(dice.randint(1, 8)):
            setting = f"sql_mode = {dice.choice(MODES)}" if dice.random() < 0.4 else dice.choice(SESSION)
            self._send(connection, f"SET {setting}" if not setting.startswith("NAMES") else f"SET {setting}")
        for _ in range(dice.randint(1, 6)):
            if self._stopping.is_set():
                return
            self._transaction(connection)

    def _transaction(self, connection):
        dice, written = self.dice, 0
        kind = dice.choice(["auto", "auto", "auto", "commit", "commit", "rollback", "savepoint", "xa"])
        begin = {"auto": [], "xa": [f"XA START 'odd-{dice.getrandbits(40)}'"]}.get(kind, ["START TRANSACTION"])
        for statement in begin:
            if not self._send(connection, statement)[0]:
                return
        for _ in range(dice.randint(1, 3)):
            written += self._send(connection, self._insert())[1]
        if kind == "savepoint":
            self._send(connection, "SAVEPOINT s")
            self._send(connection, self._insert())
            if not self._send(connection, "ROLLBACK TO SAVEPOINT s")[0]:
                return
        if kind not in ("auto",) and dice.random() < 0.1:
            self._stopping.wait(dice.uniform(0.5, 2.5))
        if kind == "xa":
            name = begin[0].partition(" START ")[2]
            ends = [f"XA END {name}", dice.choice([f"XA COMMIT {name} ONE PHASE", f"XA ROLLBACK {name}"])]
        else:
            ends = {"auto": [], "rollback": ["ROLLBACK"]}.get(kind, ["COMMIT"])
        done = all([self._send(connection, statement)[0] for statement in ends])
        if done and not (ends and "ROLLBACK" in ends[-1]):
            self.written += written

    def _send(self, connection, statement):
        """(whether it was taken, how many rows it changed)"""
        self.statements += 1
        self.log.append(statement if len(statement) < 2000 else statement[:2000] + "..")
        try:
            with connection.cursor() as cursor:
                return True, max(0, cursor.execute(statement))
        except pymysql.err.MySQLError as error:
            number = error.args[0] if error.args else 0
            self.refused[number] = self.refused.get(number, 0) + 1
            self.log[-1] += f"  -- {number}"
        except UnicodeError:
            self.log[-1] += "  -- not sent"
        return False, 0

    def _value(self, column):
        value = self.dice.choice(self.pools[column])
        for name, text in (("{members}", MEMBERS), ("{host}", f"'{self.host}'"), ("{reused}", str(self.dice.randint(1, 500)))):
            value = value.replace(name, text)
        if "{good}" in value.lower():
            good = self.good()
            value = value.replace("{good}", f"'{good}'").replace("{GOOD}", f"'{good.upper()}'")
        return value.replace("{fresh}", f"'odd-{self.dice.getrandbits(48):x}'").replace("%%", "%")

    def _row(self, columns):
        """The value of each of the columns."""
        return {column: self.dice.choice(self.routes) if column == "route" else self._value(column) for column in columns}

    def _insert(self):
        dice = self.dice
        # Few columns at once are odd, or no row would get past the first rule.
        others = [column for column in self.pools if column != "payload" and not (column == "id" and dice.random() < 0.8)]
        columns = ["route", "payload", *dice.sample(others, min(len(others), dice.choice([0, 1, 1, 1, 1, 1, 2, 2, 3, 5])))]
        if dice.random() < 0.7 and "message_id" not in columns:
            columns.append("message_id")
        dice.shuffle(columns)
        form = dice.choice(["values"] * 14 + ["rows", "ignore", "ignore", "select", "select", "set", "set", "replace", "duplicate", "load", "load"])
        if form == "load":
            return self._load(columns)
        rows = [self._row(columns) for _ in range(dice.randint(2, 6) if form in ("rows", "ignore") else 1)]
        names = ", ".join(columns)
        values = ", ".join("(" + ", ".join(row.values()) + ")" for row in rows)
        if form == "set":
            return "INSERT INTO outbox SET " + ", ".join(f"{name} = {value}" for name, value in rows[0].items())
        if form == "select":
            return f"INSERT INTO outbox ({names}) SELECT {', '.join('NULL' if v == 'DEFAULT' else v for v in rows[0].values())}"
        verb = {"ignore": "INSERT IGNORE", "replace": "REPLACE"}.get(form, "INSERT")
        tail = " ON DUPLICATE KEY UPDATE payload = 'y'" if form == "duplicate" else ""
        return f"{verb} INTO outbox ({names}) VALUES {values}{tail}"

    def _load(self, columns):
        dice = self.dice
        path = self.files / f"odd-{dice.getrandbits(60):x}"
        texts = [b"", b"k", b"\xff", b"\x00", b"\\N", b"h ", b"0", b"-1", b"0000-00-00", b"2027-01-01", b"x" * 300, b"{}", b"\xc3\xa9"]
        lines = []
        for _ in range(dice.randint(1, 4)):
            fields = [dice.choice(self.routes).strip("'").encode() if column == "route" and dice.random() < 0.7 else dice.choice(texts)
                      for column in columns]
            lines.append(b"\t".join(fields))
        path.write_bytes(b"\n".join(lines) + b"\n")
        charset = dice.choice(["", " CHARACTER SET binary", " CHARACTER SET latin1", " CHARACTER SET utf8mb4"])
        return f"LOAD DATA LOCAL INFILE '{path}' {dice.choice(['', 'IGNORE', 'REPLACE'])} INTO TABLE outbox{charset} ({', '.join(columns)})"
