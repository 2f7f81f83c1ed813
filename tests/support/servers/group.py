"""Three MySQL servers as a group (Group Replication): one of them takes writes, and a commit is kept by most of them.

    with Group() as group:
        group.primary.execute("...")
        group.primary.kill9()
        group.wait_primary()
"""

import uuid

import pymysql

from ..wait import wait_until
from .mysql import MySQL
from .ports import free_port
from .server import Cluster

RECOVERY = ("recovery", "recovery")     # user, password
LIMIT_S = 180


class Member(MySQL):
    """A server that is a member of a group, not to be started by itself."""

    name = "group"
    port_names = ("port", "group_port")

    def __init__(self, number, group_name, members):
        super().__init__()
        for name in self.port_names:
            setattr(self, name, free_port())
        self.number = number
        self.members = members      # all of them
        self.group_name = group_name

    def _prepare(self):
        super()._prepare()
        seeds = ",".join(f"127.0.0.1:{member.group_port}" for member in self.members)
        self.extra_args = [
            f"--server-id={self.number}", "--gtid-mode=ON", "--enforce-gtid-consistency=ON",
            "--report-host=127.0.0.1", f"--report-port={self.port}", "--innodb-buffer-pool-size=128M",
            "--plugin-load-add=group_replication.so", "--loose-group-replication-start-on-boot=OFF",
            f"--loose-group-replication-group-name={self.group_name}",
            f"--loose-group-replication-local-address=127.0.0.1:{self.group_port}",
            f"--loose-group-replication-group-seeds={seeds}",
            "--loose-group-replication-ip-allowlist=127.0.0.1",
            "--loose-group-replication-recovery-get-public-key=ON"]

    def found(self):
        """Be the first of the group."""
        user, password = RECOVERY
        self.create_user(user, password, ["REPLICATION SLAVE ON *.*", "BACKUP_ADMIN ON *.*"])
        self.execute("RESET BINARY LOGS AND GTIDS")     # what the others cannot have
        self.create_user(user, password, ["REPLICATION SLAVE ON *.*", "BACKUP_ADMIN ON *.*"])
        self.execute("SET GLOBAL group_replication_bootstrap_group = ON")
        self.join()
        self.execute("SET GLOBAL group_replication_bootstrap_group = OFF")

    def join(self):
        user, password = RECOVERY
        self.execute(f"CHANGE REPLICATION SOURCE TO SOURCE_USER = '{user}', SOURCE_PASSWORD = '{password}'"
                     " FOR CHANNEL 'group_replication_recovery'")
        self.execute("START GROUP_REPLICATION")

    def others(self):
        """{port: (state, role)} of the members, as this one sees them."""
        return {port: (state, role) for port, state, role in self.execute(
            "SELECT MEMBER_PORT, MEMBER_STATE, MEMBER_ROLE FROM performance_schema.replication_group_members")}


class Group(Cluster):
    def __init__(self, count=3):
        name = str(uuid.uuid4())
        self.nodes = []
        self.nodes.extend(Member(number + 1, name, self.nodes) for number in range(count))

    def start(self):
        for node in self.nodes:
            node.start()
        self.nodes[0].found()
        for node in self.nodes[1:]:
            node.execute("RESET BINARY LOGS AND GTIDS")
            node.join()
        self.wait_complete()
        return self

    def wait_complete(self, limit_s=LIMIT_S):
        """Wait until all members are in the group and have what it has."""
        wait_until(lambda: [state for state, _ in self.living.others().values()] == ["ONLINE"] * len(self.nodes),
                   limit_s, "the group to be complete",
                   detail=lambda: "\n".join(node.log_tail(15) for node in self.nodes))

    @property
    def living(self):
        return next(node for node in self.nodes if node.alive())

    @property
    def primary(self):
        return self.wait_primary()

    def wait_primary(self, limit_s=LIMIT_S):
        """Wait until there is a member that takes writes; returns it."""
        def found():
            ports = [port for port, said in self.living.others().items() if said == ("ONLINE", "PRIMARY")]
            return next((node for node in self.nodes if node.alive() and [node.port] == ports
                         and not int(node.execute("SELECT @@super_read_only")[0][0])), None)
        return wait_until(found, limit_s, "a primary", ignore=pymysql.err.MySQLError, detail=self.living.log_tail)
