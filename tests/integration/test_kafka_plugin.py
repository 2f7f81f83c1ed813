"""plugins/kafka against a real Kafka: the C programs of tests/contract, with a broker of their own.

The programs do the testing; here the broker is started for them, and hurt when
they ask for it (tests/support/kafka_cluster.h).
"""

import pytest

from support.programs import run_program
from support.servers.kafka import start_best

LIMIT_S = 900


@pytest.fixture(scope="module")
def own_broker():
    """A broker that nobody else uses, to be killed."""
    with start_best() as broker:
        if not broker.is_real:
            pytest.skip("needs a broker that survives a crash; the mock cluster stands in here")
        yield broker


@pytest.fixture(autouse=True)
def broker_on_its_feet(own_broker):
    yield
    if own_broker.alive():
        own_broker.resume()
    own_broker.start()


def run(name, broker):
    verbs = {"kill": broker.kill9, "start": broker.start, "pause": broker.pause, "resume": broker.resume}
    run_program(name, verbs, LIMIT_S, DUEBOX_TEST_KAFKA_BOOTSTRAP=broker.bootstrap)


def test_contract(own_broker):
    run("test_kafka_contract", own_broker)


def test_real(own_broker):
    run("test_kafka_real", own_broker)
