"""A MariaDB primary with a replica behind one address, and its failover.

    with FailoverPair() as pair:
        pair.port                   # the address that applications and daemons use
        pair.primary.execute(...)   # whichever server is the primary now
        pair.stop_receiving()
        lost = pair.fail_over(last_words)

The replica stops receiving, the primary goes on committing for a moment, then it dies and
the replica is promoted: the last commits are lost and their auto-increment ids are handed
out again.  A new, empty replica then follows the new primary from its first event on, so
failovers can be repeated.

With semi_sync no commit is answered, nor seen by anybody, before the replica has received it.
"""

from pymysql.cursors import DictCursor

from .servers.mariadb import MariaDB
from .tcp_proxy import TcpProxy
from .wait import wait_until

REPLICATION = ("repl", "repl")      # user, password
LIMIT_S = 60


class FailoverPair:
    def __init__(self, *, semi_sync=False):
        self._count = 0
        self._semi_sync = semi_sync
        self.primary = self.replica = self.proxy = None

    def __enter__(self):
        self.primary = self._server().start()
        user, password = REPLICATION
        self.primary.execute(f"CREATE USER {user}@'127.0.0.1' IDENTIFIED BY '{password}'")
        self.primary.execute(f"GRANT REPLICATION SLAVE ON *.* TO {user}@'127.0.0.1'")
        self.proxy = TcpProxy(self.primary.port)
        self._add_replica()
        return self

    def __exit__(self, *_):
        self.proxy.stop()
        for server in (self.primary, self.replica):
            server.stop()
            server.drop_data()

    @property
    def port(self):
        return self.proxy.port

    def wait_replicated(self, limit_s=LIMIT_S):
        """Wait until the replica has all that the primary has now."""
        position = self.primary.execute("SELECT @@GLOBAL.gtid_binlog_pos")[0][0]
        wait_until(lambda: self.replica.execute("SELECT MASTER_GTID_WAIT(%s, 1)", position)[0][0] == 0, limit_s,
                   "the replica to catch up")

    def stop_receiving(self):
        """From now on the replica lags behind."""
        self.replica.execute("STOP SLAVE IO_THREAD")

    def fail_over(self, last_words):
        """Cut the address off, ask last_words(the old primary) what it had committed, kill it, and
        promote the replica, which has all that it received."""
        self.proxy.drop()
        said = last_words(self.primary)
        old = self.primary
        old.kill9()
        self._apply_received()
        self.replica.execute("STOP SLAVE")
        self.replica.execute("RESET SLAVE ALL")
        self.replica.set_read_only(False)
        self.primary = self.replica
        self.proxy.retarget(self.primary.port)
        self.proxy.restore()
        old.drop_data()
        self._add_replica()
        return said

    def _apply_received(self):
        self.replica.execute("STOP SLAVE IO_THREAD")
        with self.replica.connect(cursorclass=DictCursor) as connection, connection.cursor() as cursor:
            cursor.execute("SHOW SLAVE STATUS")
            received = cursor.fetchone()["Gtid_IO_Pos"]
        wait_until(lambda: self.replica.execute("SELECT MASTER_GTID_WAIT(%s, 1)", received)[0][0] == 0, LIMIT_S,
                   "the replica to apply what it received")

    def _server(self):
        self._count += 1
        return MariaDB(extra_args=[f"--server-id={self._count}", "--log-slave-updates=1",
                                   f"--rpl-semi-sync-slave-enabled={int(self._semi_sync)}",
                                   "--rpl-semi-sync-master-wait-point=AFTER_SYNC",
                                   "--rpl-semi-sync-master-timeout=1000000000",      # ms; never without a replica
                                   "--innodb-buffer-pool-size=128M"])

    def _add_replica(self):
        self.replica = self._server().start()
        user, password = REPLICATION
        self.replica.set_read_only(True)
        self.replica.execute(
            f"CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {self.primary.port}, MASTER_USER = '{user}',"
            f" MASTER_PASSWORD = '{password}', MASTER_USE_GTID = slave_pos, MASTER_CONNECT_RETRY = 1")
        self.replica.execute("START SLAVE")
        if self._semi_sync:
            self.primary.execute("SET GLOBAL rpl_semi_sync_master_enabled = 1")
            wait_until(lambda: self.primary.execute("SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'")[0][1] == "1",
                       LIMIT_S, "the replica to answer for commits")
