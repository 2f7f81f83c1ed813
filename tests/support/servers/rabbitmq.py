"""A private RabbitMQ broker: its own node, Erlang cookie, epmd and folders.

Nothing is shared with a broker that the machine may run: the Erlang port mapper
listens on a port of ours and is stopped with the node, HOME (where the cookie
lives) is a folder of ours, and Debian's wrappers in /usr/sbin, which want to
become the user rabbitmq, are passed by.  No plugin is enabled, and the idle
node does not spin.

ctl() starts an Erlang machine of its own, about a second; the AMQP verbs go
through pika over one connection each and take milliseconds.
"""

import os
import shutil
import subprocess
import zlib

import pika
import pika.exceptions

from ..wait import wait_until
from .server import Cluster, Server, ServerError

SCRIPTS = "/usr/lib/rabbitmq/bin"

CONFIGURATION = """\
# Written at each start by the test harness.
listeners.tcp.1 = 127.0.0.1:{port}
loopback_users = none
log.file = false
log.console = true
log.console.level = warning
disk_free_limit.absolute = 50MB
"""


class RabbitMQ(Server):
    name = "rabbitmq"
    port_names = ("port", "distribution_port", "epmd_port")
    process_names = ("process", "epmd")
    epmd = None

    @property
    def node(self):
        # The data belongs to a node name: the same folder has the same name.
        return f"duebox-{zlib.crc32(bytes(self.folder)):08x}@localhost"

    @property
    def url(self):
        return f"amqp://guest:guest@127.0.0.1:{self.port}/%2f"

    # -- verbs of the broker ------------------------------------------------------

    def ctl(self, *words):
        """Run rabbitmqctl; returns its output."""
        done = subprocess.run(
            [f"{SCRIPTS}/rabbitmqctl", "--quiet", *map(str, words)], env=self._environment(),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, check=False)
        if done.returncode:
            raise ServerError(f"rabbitmqctl {' '.join(map(str, words))} failed:\n"
                              f"{done.stdout}{done.stderr}")
        return done.stdout

    def set_memory_alarm(self, on):
        """Raise or clear the memory alarm: publishers are blocked meanwhile."""
        self.ctl("set_vm_memory_high_watermark", "0.0000001" if on else "0.8")
        wait_until(lambda: self.memory_alarm() == on, 30,
                   f"the memory alarm to be {'raised' if on else 'cleared'}")

    def memory_alarm(self):
        return "memory" in self.ctl("eval", "rabbit_alarm:get_alarms().")

    def close_connections(self, reason="closed by a test"):
        """The broker closes every client connection, as an operator would."""
        self.ctl("close_all_connections", reason)

    # -- verbs of AMQP ----------------------------------------------------------

    def connect(self, **options):
        """A pika BlockingConnection as guest."""
        return pika.BlockingConnection(pika.ConnectionParameters(**{
            "host": "127.0.0.1", "port": self.port, "virtual_host": "/",
            "credentials": pika.PlainCredentials("guest", "guest"),
            "blocked_connection_timeout": 30, **options}))

    def declare_queue(self, queue, *, durable=True, arguments=None):
        """Declare `queue` and return its name."""
        with self._channel() as channel:
            channel.queue_declare(queue, durable=durable, arguments=arguments)
        return queue

    def sync_declarations(self):
        """Wait until what was declared is on disk. The broker answers a declaration before it has written it, and one
        that is killed then forgets the queue with its confirmed messages."""
        said = self.ctl("eval", "mnesia:sync_log().").strip()
        if said != "ok":
            raise ServerError(f"mnesia:sync_log() said {said}")

    def kill9(self):
        """The crash; what was declared is on disk by then, as it would be in a broker that has run for a while."""
        if self.alive():
            self.sync_declarations()
        super().kill9()

    def delete_queue(self, queue):
        with self._channel() as channel:
            channel.queue_delete(queue)

    def declare_exchange(self, exchange, type="topic", *, durable=True, arguments=None):
        """Declare `exchange` and return its name."""
        with self._channel() as channel:
            channel.exchange_declare(exchange, type, durable=durable, arguments=arguments)
        return exchange

    def bind(self, queue, exchange, routing_key=""):
        with self._channel() as channel:
            channel.queue_bind(queue, exchange, routing_key)

    def publish(self, exchange, routing_key, body, *, headers=None, **properties):
        """Publish one persistent message and wait until the broker confirms it."""
        with self._channel() as channel:
            channel.confirm_delivery()
            channel.basic_publish(
                exchange, routing_key, body.encode() if isinstance(body, str) else body,
                pika.BasicProperties(**{"delivery_mode": 2, "headers": headers, **properties}),
                mandatory=True)

    def get(self, queue, limit_s=10):
        """Take one message, waiting for it: a dict as in get_all()."""
        with self._channel() as channel:
            return wait_until(lambda: _take(channel, queue), limit_s, f"a message in queue {queue}")

    def get_all(self, queue):
        """Take and ack all messages that are there now, as a list of dicts: body
        (bytes), headers, exchange, routing_key, redelivered and properties."""
        with self._channel() as channel:
            return list(iter(lambda: _take(channel, queue), None))

    def queue_depth(self, queue):
        """Number of messages that are ready in `queue`."""
        with self._channel() as channel:
            return channel.queue_declare(queue, passive=True).method.message_count

    def env(self):
        return {"DUEBOX_TEST_RABBITMQ_HOST": "127.0.0.1",
                "DUEBOX_TEST_RABBITMQ_PORT": str(self.port),
                "DUEBOX_TEST_RABBITMQ_URL": self.url}

    def stop(self):
        super().stop()
        if self.epmd:
            self.epmd.stop(5)

    # -- how it is run ------------------------------------------------------------

    def _channel(self):
        return _Channel(self.connect())

    def _environment(self):
        home = self.folder / "home"
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "HOME": str(home),
            "ERL_EPMD_PORT": str(self.epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": self.node,
            "RABBITMQ_BASE": str(self.folder),
            "RABBITMQ_MNESIA_BASE": str(self.data),
            "RABBITMQ_LOG_BASE": str(self.folder),
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(self.folder / "advanced.config"),
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "enabled_plugins"),
            "RABBITMQ_PLUGINS_EXPAND_DIR": str(self.data / "plugins-expand"),
            "RABBITMQ_PID_FILE": str(self.folder / "pid"),
            "RABBITMQ_DIST_PORT": str(self.distribution_port),
            "RABBITMQ_CTL_DIST_PORT_MIN": str(self.distribution_port + 1),
            # Makes the script become the node, so that our signals reach it.
            "RABBITMQ_ALLOW_INPUT": "1",
            # Two schedulers that sleep when idle; Erlang nodes too meet on loopback.
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS":
                "-noinput +S 2:2 +sbwt none "
                "-kernel inet_dist_use_interface {127,0,0,1}",
        }

    def _prepare(self):
        self.data.mkdir(exist_ok=True)
        (self.folder / "home").mkdir(exist_ok=True)
        (self.folder / "rabbitmq.conf").write_text(CONFIGURATION.format(port=self.port))
        (self.folder / "enabled_plugins").write_text("[].\n")

    def _launch(self):
        environment = self._environment()
        if not (self.epmd and self.epmd.alive()):
            self.epmd = self._spawn(["epmd", "-port", self.epmd_port, "-address", "127.0.0.1"],
                                    env=environment)
        return self._spawn([f"{SCRIPTS}/rabbitmq-server"], env=environment, cwd=self.folder)

    def _answers(self):
        try:
            self.connect(socket_timeout=2, stack_timeout=2).close()
            return True
        except (pika.exceptions.AMQPError, OSError):
            return False


class _Channel:
    """A channel on a connection of its own, for one with statement."""

    def __init__(self, connection):
        self._connection = connection

    def __enter__(self):
        return self._connection.channel()

    def __exit__(self, *_):
        if self._connection.is_open:
            self._connection.close()


def _take(channel, queue):
    method, properties, body = channel.basic_get(queue, auto_ack=True)
    if method is None:
        return None
    return {"body": body, "headers": properties.headers or {}, "exchange": method.exchange,
            "routing_key": method.routing_key, "redelivered": method.redelivered,
            "properties": properties}


class _Node(RabbitMQ):
    """One of a cluster: all have the first one's cookie and port mapper."""

    def __init__(self, folder, first=None):
        super().__init__(folder)
        self._first = first
        if first:
            self.epmd_port = first.epmd_port

    def _prepare(self):
        super()._prepare()
        if self._first:
            cookie = self.folder / "home" / ".erlang.cookie"
            cookie.unlink(missing_ok=True)
            shutil.copy(self._first.folder / "home" / ".erlang.cookie", cookie)
            self.epmd = self._first.epmd

    def kill9(self):
        """The crash, at once: what was declared is on the other nodes too."""
        Server.kill9(self)

    def join(self):
        self.ctl("stop_app")
        self.ctl("join_cluster", self._first.node)
        self.ctl("start_app")


class RabbitMQCluster(Cluster):
    """Three nodes; a quorum queue is on all of them, and two of them confirm a message. For tests it is used like a
    RabbitMQ: each verb asks a node that lives."""

    def __init__(self, count=3):
        self.nodes = []
        self._count = count

    def start(self):
        self.nodes.append(_Node(None).start())
        for _ in range(self._count - 1):
            self.nodes.append(_Node(None, self.nodes[0]).start())
            self.nodes[-1].join()
        return self

    @property
    def living(self):
        return next(node for node in self.nodes if node.alive())

    def connect(self, **options):
        return self.living.connect(**options)

    def queue_depth(self, queue):
        return self.living.queue_depth(queue)

    def get_all(self, queue):
        return self.living.get_all(queue)

    def declare_queue(self, queue):
        """A quorum queue, whose leader is the first node."""
        return self.living.declare_queue(queue, arguments={"x-queue-type": "quorum"})

    def leader(self, queue):
        """The node that leads a quorum queue."""
        said = self.living.ctl("list_queues", "name", "leader")
        named = dict(line.split("\t") for line in said.splitlines() if "\t" in line)
        return next(node for node in self.nodes if node.node == named[queue])
