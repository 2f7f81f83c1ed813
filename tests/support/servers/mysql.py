"""A private MySQL server, and a private MariaDB of a later version than this Debian's.

Both come from packages of another suite (engines.py) and are used like MariaDB of mariadb.py.  Their data
folder is made once a version and copied.  start_or_skip() skips a pytest test, loudly, where they cannot be had.
"""

import shutil
import subprocess

from . import engines
from .mariadb import CONFIGURATION, MariaDB
from .server import ServerError

MYSQL_CONFIGURATION = CONFIGURATION.replace("[mariadbd]", "[mysqld]") + """\
mysqlx = OFF
secure_file_priv =
"""

BOOTSTRAP = ("mariadb_system_tables.sql", "mariadb_performance_tables.sql", "mariadb_system_tables_data.sql",
             "maria_add_gis_sp_bootstrap.sql", "mariadb_sys_schema.sql")


class Packaged(MariaDB):
    """A server of another suite's packages: how to find it is for the kinds."""

    packages = ()       # suite, then packages
    program = ""

    def __init__(self, folder=None, *, extra_args=(), background=False):
        super().__init__(folder, extra_args=extra_args, background=background)
        self.engine = engines.fetch(*self.packages)
        self.version = self.engine.version

    def _words(self):
        """The program with its folders; before them may come --defaults-file."""
        raise NotImplementedError

    def _initialize(self, data, user):
        """Make a data folder where root has no password and exists on the socket only."""
        raise NotImplementedError

    def _install(self, user):
        template = self.engine.once("data", lambda data: self._initialize(data, user))
        fresh = self.folder / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        subprocess.run(["cp", "-a", "--reflink=auto", template, fresh], check=True)
        self._make_own(fresh)
        fresh.rename(self.data)

    def _make_own(self, data):
        """Nothing of a copied data folder may say that it is the original."""

    def _run_once(self, words, text=None):
        done = subprocess.run(words, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", check=False)
        if done.returncode:
            raise ServerError(f"{words[3]} failed:\n{done.stdout[-4000:]}")

    def _launch(self):
        loader, *rest = self._words()
        program = rest.index(str(self.engine.path(self.program))) + 1
        return self._spawn([loader, *rest[:program], f"--defaults-file={self._configuration}", *rest[program:],
                            *self.extra_args])


class MySQL(Packaged):
    name = "mysql"
    packages = ("sid", "mysql-server-core")
    program = "sbin/mysqld"
    configuration = MYSQL_CONFIGURATION

    def create_user(self, name, password, grants):
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute("DROP USER IF EXISTS %s@'%%'", (name,))
            cursor.execute("CREATE USER %s@'%%' IDENTIFIED BY %s", (name, password))
            for grant in [grants] if isinstance(grants, str) else grants:
                cursor.execute(f"GRANT {grant.replace('%', '%%')} TO %s@'%%'", (name,))

    def set_read_only(self, on):
        self.execute(f"SET GLOBAL super_read_only = {int(on)}")
        if not on:
            self.execute("SET GLOBAL read_only = 0")

    def _words(self):
        share = self.engine.path("share/mysql")
        return [*self.engine.command(self.program), f"--basedir={self.engine.root / 'usr'}",
                f"--lc-messages-dir={share}", f"--character-sets-dir={share / 'charsets'}",
                f"--plugin-dir={self.engine.path('lib/mysql/plugin')}"]

    def _initialize(self, data, user):
        words = self._words()
        program = words.index(str(self.engine.path(self.program))) + 1
        self._run_once([*words[:program], "--no-defaults", *words[program:], "--initialize-insecure",
                        f"--datadir={data}", f"--user={user}", "--secure-file-priv="])

    def _make_own(self, data):
        (data / "auto.cnf").unlink(missing_ok=True)     # the server's uuid


class LaterMariaDB(Packaged):
    name = "mariadb-later"
    packages = ("trixie", "mariadb-server-core", "mariadb-client-core")
    program = "sbin/mariadbd"

    def _words(self):
        share = self.engine.path("share/mariadb")
        return [*self.engine.command(self.program), f"--basedir={self.engine.root / 'usr'}",
                f"--lc-messages-dir={share}", f"--character-sets-dir={share / 'charsets'}"]

    def _initialize(self, data, user):
        share = self.engine.path("share/mariadb")
        text = ("CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket = NULL, @skip_auth_anonymous = 1;\n"
                + "\n".join((share / name).read_text() for name in BOOTSTRAP)
                + "\nDELETE FROM mysql.global_priv WHERE User = '' OR (User = 'root' AND Host <> 'localhost');\n")
        words = self._words()
        program = words.index(str(self.engine.path(self.program))) + 1
        self._run_once([*words[:program], "--no-defaults", *words[program:], "--bootstrap", "--silent-startup",
                        f"--datadir={data}", f"--user={user}"], text)


# For servers that lose no power while their tests make and drop databases.
QUICK = ["--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0", "--innodb-flush-method=nosync"]


def start_or_skip(kind, **how):
    """A started server of the kind; where it cannot be had, the test is skipped and says what is missing."""
    import pytest
    try:
        return kind(**how).start()
    except engines.EngineUnavailable as why:
        pytest.skip(f"NOT TESTED on {kind.name}: {why}")
