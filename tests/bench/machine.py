"""What was measured where: machine, versions, settings."""

import functools
import os
import platform
import subprocess
from pathlib import Path

from .scenario import TOP, preset_folder


def _output(*argv):
    try:
        done = subprocess.run([str(word) for word in argv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False, timeout=30)
    except OSError:
        return ""
    return done.stdout.strip()


def _field(path, name):
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return "?"


def _package(name):
    return _output("dpkg-query", "-W", "-f", "${Version}", name) or "?"


@functools.cache
def describe():
    """{name: text}, in the order of the report."""
    from support.servers.kafka import VERSION
    release = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    return {
        "processor": f"{os.cpu_count()} x {_field('/proc/cpuinfo', 'model name')}",
        "memory": f"{int(_field('/proc/meminfo', 'MemTotal').split()[0]) // 1024:,} MiB",
        "system": f"{release['PRETTY_NAME'].strip(chr(34))}, Linux {platform.release()}",
        "duebox": f"{' '.join(_output(preset_folder() / 'bin' / 'duebox', 'version').splitlines()[0].split())}, commit {commit()}",
        "MariaDB": _package("mariadb-server"),
        "RabbitMQ": _package("rabbitmq-server"),
        "Apache Kafka": VERSION,
        "librdkafka": _package("librdkafka1"),
        "rabbitmq-c": _package("librabbitmq4"),
        "libcurl": _package("libcurl4"),
        "libmariadb": _package("libmariadb3"),
    }


SETTINGS = """\
MariaDB: `innodb_flush_log_at_trx_commit = 1`, `sync_binlog = 1`, row binlog, 512 MiB buffer pool, performance schema off. \
Kafka: one KRaft broker, topics of 4 partitions, acks=all with idempotence. RabbitMQ: one node, two schedulers, persistent \
messages, confirms, mandatory. Everything on one machine, over loopback and unix sockets, and all of it shares its cores. \
duebox: the release build in its default configuration; what differs is said with the scenario."""


def commit():
    changed = _output("git", "-C", TOP, "status", "--porcelain", "--untracked-files=no")
    return (_output("git", "-C", TOP, "rev-parse", "--short", "HEAD") or "unknown") + (", changed" if changed else "")
