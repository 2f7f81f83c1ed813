"""plugins/kafka and a broker that speaks TLS: whom it believes, and what files that are not in order cost."""

import shutil

import pytest

from support.certificates import make_certificates
from support.servers.kafka import Kafka, start_best

LIMIT_S = 60


class TlsKafka(Kafka):
    """Listens with TLS too, with a certificate for "localhost"."""

    port_names = (*Kafka.port_names, "tls_port")

    def _prepare(self):
        self.certificates = self.folder / "certificates"
        if not self.certificates.exists():
            self.certificates.mkdir(parents=True)
            make_certificates(self.certificates)
            (self.certificates / "keystore.pem").write_text(
                (self.certificates / "server.key").read_text() + (self.certificates / "server.pem").read_text())
        self.properties = (
            f"listeners=PLAINTEXT://127.0.0.1:{self.port},TLS://127.0.0.1:{self.tls_port},"
            f"CONTROLLER://127.0.0.1:{self.controller_port}",
            f"advertised.listeners=PLAINTEXT://127.0.0.1:{self.port},TLS://localhost:{self.tls_port}",
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,TLS:SSL",
            "ssl.keystore.type=PEM", f"ssl.keystore.location={self.certificates / 'keystore.pem'}")
        super()._prepare()


@pytest.fixture(scope="module")
def tls_broker():
    with start_best() as broker:
        if not broker.is_real:
            pytest.skip("needs a real Kafka broker; librdkafka's mock cluster has no TLS")
    with TlsKafka() as broker:
        yield broker


@pytest.fixture
def secure(stage, tls_broker):
    """A stage with a way to start a daemon that sends to the broker and, by another plugin, to the receiver."""
    def start(ca_file, port=tls_broker.tls_port, **options):
        for name in ("topic", "answers"):
            tls_broker.create_topic(f"{stage.name}-{name}", 1)
        stage.plugin("bus", module="kafka", brokers=f"localhost:{port}", tls=True, ca_file=str(ca_file), **options)
        stage.route("k", via="bus", topic=f"{stage.name}-topic")
        stage.configuration["results"] = [{"via": "bus", "topic": f"{stage.name}-answers", "routes": ["h"]}]
        stage.http("h")
        stage.consume_http()
        return stage.daemon("duebox").start(wait_ready=False)
    stage.secure = start
    return stage


def records(broker, stage):
    return broker.consume_all(f"{stage.name}-topic")


def test_a_broker_whose_authority_is_known(secure, tls_broker):
    daemon = secure.secure(tls_broker.certificates / "ca.pem")
    secure.insert("k", b"over TLS", count=20)
    secure.wait_empty(LIMIT_S)
    daemon.wait_log("KAFKA-REBALANCE", text="1 partitions")
    assert len(records(tls_broker, secure)) == 20


@pytest.mark.parametrize("authority, port, says", [
    ("other-ca", "tls_port", "verify that ssl.ca.location is correctly configured"),
    ("ca", "port", "kafka.ssl"),
])
def test_a_broker_that_is_not_believed(secure, tls_broker, authority, port, says):
    """Nothing is sent to it, no attempt is counted, and the other plugin's route goes on."""
    daemon = secure.secure(tls_broker.certificates / f"{authority}.pem", getattr(tls_broker, port))
    [message_id] = secure.insert("k", b"secret")
    daemon.wait_log("KAFKA-DOWN", text=says)
    secure.insert("h", count=5)
    secure.wait_empty(LIMIT_S, "route = 'h'")
    assert secure.row(message_id)["attempt"] == 0
    assert not records(tls_broker, secure)


def test_files_that_are_not_in_order_cost_only_their_own_routes(secure, tls_broker):
    """librdkafka does not start with them: that is said and tried again, and is no end of the daemon."""
    ca_file = secure.folder / "ca.pem"
    daemon = secure.secure(ca_file)
    [message_id] = secure.insert("k", b"waits")
    daemon.wait_log("KAFKA-DOWN", text="instance=bus kafka.no_client")
    daemon.wait_log("KAFKA-DOWN", text="instance=bus#1 kafka.no_client")
    secure.insert("h", count=5)
    secure.wait_empty(LIMIT_S, "route = 'h'")
    secure.wait_row(message_id, LIMIT_S, error_class="kafka.no_client", attempt=0)
    ca_file.write_text("no certificate")
    mark = daemon.mark()
    shutil.copy(tls_broker.certificates / "ca.pem", ca_file)
    secure.wait_empty(LIMIT_S)
    daemon.wait_log("KAFKA-REBALANCE", text="1 partitions", after=mark)
    assert len(records(tls_broker, secure)) == 1
