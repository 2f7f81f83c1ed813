"""Three MariaDB servers as a Galera cluster: each takes writes, and applies those of the others a little later.

    with Galera() as cluster:
        cluster.nodes[0].execute("...")
"""

import os
import re
import shutil
from pathlib import Path

from ..wait import wait_until
from .mariadb import CONFIGURATION, MariaDB
from .ports import free_port
from .server import Cluster

PROVIDERS = ("/usr/lib/galera/libgalera_smm.so", "/usr/lib64/galera-4/libgalera_smm.so")

# Galera does not keep a commit by syncing, but by the other nodes.
NODE_CONFIGURATION = re.sub(r"(innodb_flush_log_at_trx_commit|sync_binlog) = 1", r"\1 = 0", CONFIGURATION).replace(
    "innodb_buffer_pool_size = 512M", "innodb_buffer_pool_size = 128M") + """\
log_slave_updates = ON
innodb_autoinc_lock_mode = 2
wsrep_on = ON
wsrep_provider = {provider}
wsrep_cluster_name = {cluster}
wsrep_cluster_address = gcomm://{members}
wsrep_node_address = 127.0.0.1:{port}
wsrep_sst_method = duebox
wsrep_sst_receive_address = 127.0.0.1:{sst_port}
wsrep_slave_threads = 2
# A test makes a node slow by a trigger.
slave_run_triggers_for_rbr = YES
wsrep_provider_options = "gmcast.listen_addr=tcp://127.0.0.1:{group_port};ist.recv_addr=127.0.0.1:{ist_port};\
gcache.size=128M"
"""

# How a node gets the data of another: as the one of rsync does, without a daemon of rsync's.
TRANSFER = """\
#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in
    --role) role=$2 ;;
    --gtid) gtid=$2 ;;
    --datadir) data=${2%/} ;;
    --address) address=$(echo "$2" | cut -d / -f 1 | tr : _) ;;
    esac
    shift
done
place=$DUEBOX_SST/place-$address
if [ "$role" = donor ]; then
    echo "flush tables"
    until [ -s "$data/tables_flushed" ]; do sleep 0.05; done
    cd "$data"
    for name in *; do
        case $name in
        galera.cache | grastate.dat | gvwstate.dat | tables_flushed | binlog.* | sst_in_progress) ;;
        *) cp -a "$name" "$(cat "$place.to")/" ;;
        esac
    done
    cat tables_flushed >"$place.new"
    rm tables_flushed
    echo continue
    mv "$place.new" "$place.done"
    echo "done $gtid"
else
    rm -f "$place.done"
    echo "$data" >"$place.to"
    echo "ready $(echo "$address" | tr _ :)"
    until [ -s "$place.done" ]; do sleep 0.05; done
    cat "$place.done"
fi
"""


def provider():
    return next((path for path in PROVIDERS if Path(path).exists()), None)


class Node(MariaDB):
    """A server that is a member of a cluster, not to be started by itself."""

    name = "galera"
    port_names = ("port", "group_port", "ist_port", "sst_port")

    def __init__(self, cluster, members):
        super().__init__()
        self.cluster = cluster
        for name in self.port_names:
            setattr(self, name, free_port())
        self.configuration = NODE_CONFIGURATION
        self.members = members      # their group ports, shared by all nodes
        members.append(self.group_port)

    def _prepare(self):
        self.configuration = (NODE_CONFIGURATION.replace("{provider}", provider())
                              .replace("{cluster}", self.cluster)
                              .replace("{members}", ",".join(f"127.0.0.1:{port}" for port in self.members))
                              .replace("{group_port}", str(self.group_port))
                              .replace("{ist_port}", str(self.ist_port)).replace("{sst_port}", str(self.sst_port)))
        super()._prepare()

    def _launch(self):
        script = self.folder / "bin" / "wsrep_sst_duebox"
        script.parent.mkdir(exist_ok=True)
        script.write_text(TRANSFER)
        script.chmod(0o755)
        program = shutil.which("mariadbd") or "/usr/sbin/mariadbd"
        return self._spawn([program, f"--defaults-file={self._configuration}", *self.extra_args],
                           env={**os.environ, "PATH": f"{script.parent}:{os.environ['PATH']}",
                                "DUEBOX_SST": str(self.folder.parent)})

    def state(self, name):
        return dict(self.execute(f"SHOW GLOBAL STATUS LIKE 'wsrep_{name}'")).get(f"wsrep_{name}")


class Galera(Cluster):
    def __init__(self, count=3):
        members = []
        self.nodes = [Node("duebox", members) for _ in range(count)]

    def start(self):
        first, *others = self.nodes
        self._found(first)
        for node in others:
            node.start()
        self.wait_complete()
        return self

    def wait_complete(self, limit_s=120):
        """Wait until each node works with all others."""
        for node in self.nodes:
            wait_until(lambda node=node: (node.state("cluster_size"), node.state("ready"))
                       == (str(len(self.nodes)), "ON"), limit_s, "the cluster to be complete", detail=node.log_tail)

    def _found(self, node):
        """Start a node as the first of its cluster."""
        node.extra_args = ["--wsrep-new-cluster"]
        node.start()
        node.extra_args = []
        wait_until(lambda: node.state("ready") == "ON", 120, "the first node to be ready", detail=node.log_tail)
