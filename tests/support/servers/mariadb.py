"""A private MariaDB server, as durable as a production one.

TCP on 127.0.0.1 and a socket in its folder; root has no password and exists on
the socket only.  Row binlog on, every commit synced: what a test proves about
crashes holds for a real server, and what a bench measures is not flattered.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pymysql

from .server import Server, ServerError

CONFIGURATION = """\
# Written at each start by the test harness.
[mariadbd]
datadir = {data}
# Of its own: a server that starts deletes what looks like temporary tables in its tmpdir.
tmpdir = {folder}/tmp
socket = {socket}
pid-file = {folder}/pid
port = {port}
bind-address = 127.0.0.1
user = {user}
skip-name-resolve
performance_schema = off
character-set-server = utf8mb4
max_connections = 500
max_allowed_packet = 64M
innodb_buffer_pool_size = 512M
# Durable: a commit that was answered survives kill -9 and loss of power.
innodb_flush_log_at_trx_commit = 1
sync_binlog = 1
server-id = 1
log-bin = binlog
binlog_format = ROW
"""

# The longest path that fits into sockaddr_un.
SOCKET_PATH_LIMIT = 107


class MariaDB(Server):
    name = "mariadb"
    configuration = CONFIGURATION

    def __init__(self, folder=None, *, extra_args=(), background=False):
        """extra_args: options for mariadbd; they win over the configured ones."""
        super().__init__(folder, background=background)
        self.extra_args = list(extra_args)

    @property
    def socket(self):
        inside = self.folder / "mariadb.sock"
        if len(str(inside)) <= SOCKET_PATH_LIMIT:
            return inside
        return Path(tempfile.gettempdir()) / f"duebox-mariadb-{os.getuid()}-{self.port}.sock"

    # -- verbs ------------------------------------------------------------------

    def connect(self, db=None, **options):
        """An autocommit pymysql connection, as root through the socket by default."""
        how = {"user": "root", "charset": "utf8mb4", "autocommit": True, "database": db}
        if "host" in options:
            how["port"] = self.port
        else:
            how["unix_socket"] = str(self.socket)
        return pymysql.connect(**{**how, **options})

    def execute(self, statement, *values, db=None):
        """Run one statement on a connection of its own; returns all rows."""
        with self.connect(db) as connection, connection.cursor() as cursor:
            cursor.execute(statement, values or None)
            return cursor.fetchall()

    def create_database(self, name):
        """Create `name`, empty even if it was there before; returns the name."""
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"DROP DATABASE IF EXISTS `{name}`")
            cursor.execute(f"CREATE DATABASE `{name}`")
        return name

    def create_user(self, name, password, grants):
        """grants: texts like "ALL ON shop.*"; the user may come from anywhere."""
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute("CREATE OR REPLACE USER %s@'%%' IDENTIFIED BY %s", (name, password))
            for grant in [grants] if isinstance(grants, str) else grants:
                cursor.execute(f"GRANT {grant.replace('%', '%%')} TO %s@'%%'", (name,))

    def set_read_only(self, on):
        """As on a replica, or a primary that is being failed over from."""
        self.execute(f"SET GLOBAL read_only = {int(on)}")

    def env(self):
        return {"DUEBOX_TEST_MARIADB_HOST": "127.0.0.1",
                "DUEBOX_TEST_MARIADB_PORT": str(self.port),
                "DUEBOX_TEST_MARIADB_SOCKET": str(self.socket)}

    # -- how it is run ----------------------------------------------------------

    @property
    def _configuration(self):
        return self.folder / "my.cnf"

    def _prepare(self):
        user = pwd.getpwuid(os.geteuid()).pw_name
        (self.folder / "tmp").mkdir(exist_ok=True)
        self._configuration.write_text(self.configuration.format(
            data=self.data, folder=self.folder, socket=self.socket, port=self.port, user=user))
        if not self.data.exists():
            self._install(user)

    def _install(self, user):
        # Renamed into place when complete: an install that was killed is redone.
        fresh = self.folder / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        root_only = self.folder / "install.sql"
        root_only.write_text("DELETE FROM mysql.global_priv "
                             "WHERE User = '' OR (User = 'root' AND Host <> 'localhost');\n")
        done = subprocess.run(
            # Relative: its chown takes a blank in a path for the end of it.
            ["mariadb-install-db", "--no-defaults", f"--datadir=./{fresh.name}", f"--user={user}",
             "--auth-root-authentication-method=normal", "--skip-test-db",
             f"--extra-file=./{root_only.name}"],
            cwd=self.folder, env={**os.environ, "TMPDIR": str(self.folder / "tmp")},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            raise ServerError(f"mariadb-install-db failed:\n{done.stdout}")
        fresh.rename(self.data)

    def _launch(self):
        # Not every user has the folder of Debian's daemons in PATH.
        program = shutil.which("mariadbd") or "/usr/sbin/mariadbd"
        return self._spawn([program, f"--defaults-file={self._configuration}",
                            *self.extra_args])

    def _answers(self):
        try:
            with self.connect(connect_timeout=2, read_timeout=2):
                return True
        except pymysql.err.OperationalError:
            return False
