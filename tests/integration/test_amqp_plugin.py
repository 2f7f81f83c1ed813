"""plugins/amqp against a real RabbitMQ: the C programs of tests/contract, each with a broker of its own kind.

The programs do the testing; here brokers are started for them, and hurt when they
ask for it (tests/contract/amqp_broker.h).
"""

import contextlib
import socket
import threading

import pytest

from support.certificates import make_certificates
from support.own_curves import own_curves
from support.programs import run_program
from support.servers.rabbitmq import RabbitMQ

LIMIT_S = 900

TLS = """
listeners.ssl.1 = 127.0.0.1:{port}
ssl_options.cacertfile = {folder}/ca.pem
ssl_options.certfile = {folder}/server.pem
ssl_options.keyfile = {folder}/server.key
ssl_options.verify = verify_peer
ssl_options.fail_if_no_peer_cert = true
"""


class TlsRabbitMQ(RabbitMQ):
    """Listens with TLS too, with a certificate for "localhost", and asks for one of the client."""

    port_names = (*RabbitMQ.port_names, "tls_port")

    def _prepare(self):
        super()._prepare()
        make_certificates(self.folder)
        with open(self.folder / "rabbitmq.conf", "a", encoding="utf-8") as conf:
            conf.write(TLS.format(port=self.tls_port, folder=self.folder))


def run(name, broker, **env):
    verbs = {"alarm on": lambda: broker.set_memory_alarm(True), "alarm off": lambda: broker.set_memory_alarm(False),
             "restart": broker.restart, "close connections": broker.close_connections}
    run_program(name, verbs, LIMIT_S, DUEBOX_TEST_AMQP_URL=broker.url, **env)


@pytest.fixture(scope="module")
def own_broker():
    """A broker that nobody else uses, to be hurt."""
    with RabbitMQ() as broker:
        yield broker


@pytest.fixture(scope="module")
def tls_broker():
    with TlsRabbitMQ() as broker:
        yield broker


def test_contract(rabbitmq):
    run("test_amqp_contract", rabbitmq)


def test_faults(own_broker):
    run("test_amqp_faults", own_broker, DUEBOX_TEST_AMQP_CONTROL="stdio")


def test_results(own_broker):
    run("test_amqp_results", own_broker, DUEBOX_TEST_AMQP_CONTROL="stdio")


def test_tls(tls_broker):
    run("test_amqp_tls", tls_broker, DUEBOX_TEST_AMQPS_PORT=str(tls_broker.tls_port),
        DUEBOX_TEST_AMQPS_FOLDER=str(tls_broker.folder))


@contextlib.contextmanager
def listening(serve):
    """The port of a server that does this with each connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        def accept():
            with contextlib.suppress(OSError):
                for number in range(1000):
                    with server.accept()[0] as connection, contextlib.suppress(OSError):
                        serve(connection, number)
        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize("certificates, says", [(10, "elliptic curve with parameters of its own"),
                                                (11, "more than 10 certificates")])
def test_certificates_that_are_dear_to_parse(stage, certificates, says):
    """Anybody on the way can send them: OpenSSL parses them before it verifies anything."""
    with listening(own_curves(certificates)) as port:
        stage.plugin("rabbit", module="amqp", url=f"amqps://guest:guest@127.0.0.1:{port}/%2f")
        stage.route("orders", via="rabbit", routing_key="orders")
        daemon = stage.start()
        assert says in daemon.wait_log("AMQP-DOWN")["msg"]
        daemon.stop()
