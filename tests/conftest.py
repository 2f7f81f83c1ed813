"""Fixtures for every test that needs a real server.

Each server starts when the first test asks for it and is shared by all tests of
its process; tests keep apart by names (databases, topics, queues) of their own.  Data
is removed at the end; logs and configurations stay when a test failed.
"""

import os
import shutil

import pytest

from support.servers import run_folder
from support.servers.http_receiver import HttpReceiver


@pytest.fixture(scope="session")
def mariadb():
    """support.servers.mariadb.MariaDB, running."""
    from support.servers.mariadb import MariaDB
    with MariaDB() as server:
        yield server


@pytest.fixture(scope="module")
def mysql():
    """support.servers.mysql.MySQL, running; skipped where it cannot be had."""
    from support.servers.mysql import MySQL, start_or_skip
    server = start_or_skip(MySQL)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def rabbitmq():
    """support.servers.rabbitmq.RabbitMQ, running."""
    from support.servers.rabbitmq import RabbitMQ
    with RabbitMQ() as server:
        yield server


@pytest.fixture(scope="session")
def kafka():
    """support.servers.kafka.Kafka, running, or KafkaMock where it must be."""
    from support.servers.kafka import start_best
    server = start_best()
    yield server
    server.stop()


@pytest.fixture
def real_kafka(kafka):
    """As `kafka`, for tests that only a real broker can run."""
    if not kafka.is_real:
        pytest.skip("needs a real Kafka broker; librdkafka's mock cluster stands in for it")
    return kafka


@pytest.fixture
def http_receiver():
    """An HttpReceiver without rules or records, new for each test."""
    with HttpReceiver() as receiver:
        yield receiver


def pytest_sessionstart():
    """Remove the data, not the logs, of runs that were killed."""
    for folder in run_folder().parent.glob("run-*"):
        pid = folder.name.partition("-")[2]
        if not os.path.exists(f"/proc/{pid}"):
            _drop_data(folder)


def pytest_sessionfinish(exitstatus):
    if exitstatus == pytest.ExitCode.OK:
        shutil.rmtree(run_folder(), ignore_errors=True)
    else:
        _drop_data(run_folder())


def pytest_terminal_summary(terminalreporter):
    for folder in run_folder().parent.glob("run-*"):
        terminalreporter.write_line(f"logs of the servers: {folder}")


def _drop_data(folder):
    for data in folder.glob("*/data"):
        shutil.rmtree(data, ignore_errors=True)
