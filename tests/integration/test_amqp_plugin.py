"""plugins/amqp against a real RabbitMQ: the C programs of tests/contract, each with a broker of its own kind.

The programs do the testing; here brokers are started for them, and hurt when they
ask for it: a line "@<what>" on their output is done to the broker and answered
with "done" (tests/contract/amqp_broker.h).
"""

import os
import subprocess
import threading

import pytest

from support.daemon import PRESETS
from support.servers import build_folder
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


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def make_certificates(folder):
    """ca, a server and a client signed by it, and another authority that signed nothing."""
    for name in ("ca", "other-ca"):
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem")
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    for name in ("server", "client"):
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}",
                "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.csr")
        openssl("x509", "-req", "-days", "2", "-in", folder / f"{name}.csr", "-CA", folder / "ca.pem",
                "-CAkey", folder / "ca.key", "-CAcreateserial", "-extfile", folder / "names",
                "-out", folder / f"{name}.pem")


def do(broker, what):
    if what in ("alarm on", "alarm off"):
        broker.set_memory_alarm(what == "alarm on")
    elif what == "restart":
        broker.restart()
    elif what == "close connections":
        broker.close_connections()
    else:
        raise AssertionError(f"the program asks for {what!r}")


def program_path(name):
    base = build_folder()
    paths = [folder / "tests" / name for folder in (base, *(base / preset for preset in PRESETS))]
    found = [path for path in paths if path.exists()]
    assert found, f"{name} is not built; looked for {', '.join(map(str, paths))}"
    return found[0]


def run_program(name, broker, **env):
    """Runs a program of the build, serves what it asks for, and fails with its output."""
    program = subprocess.Popen([program_path(name)], text=True, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **env})
    watchdog = threading.Timer(LIMIT_S, program.kill)
    watchdog.start()
    output = []
    try:
        for line in program.stdout:
            output.append(line)
            if line.startswith("@"):
                do(broker, line[1:].strip())
                program.stdin.write("done\n")
                program.stdin.flush()
    finally:
        program.stdin.close()
        program.wait()
        watchdog.cancel()
    text = "".join(output)
    assert program.returncode == 0, f"{name} ended with {program.returncode} (limit {LIMIT_S} s):\n{text}"
    assert "[  SKIPPED ]" not in text, f"{name} skipped what it could have tested:\n{text}"
    assert "[       OK ]" in text, f"{name} tested nothing:\n{text}"


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
    run_program("test_amqp_contract", rabbitmq, DUEBOX_TEST_AMQP_URL=rabbitmq.url)


def test_faults(own_broker):
    run_program("test_amqp_faults", own_broker, DUEBOX_TEST_AMQP_URL=own_broker.url, DUEBOX_TEST_AMQP_CONTROL="stdio")


def test_results(own_broker):
    run_program("test_amqp_results", own_broker, DUEBOX_TEST_AMQP_URL=own_broker.url, DUEBOX_TEST_AMQP_CONTROL="stdio")


def test_tls(tls_broker):
    run_program("test_amqp_tls", tls_broker, DUEBOX_TEST_AMQP_URL=tls_broker.url,
                DUEBOX_TEST_AMQPS_PORT=str(tls_broker.tls_port), DUEBOX_TEST_AMQPS_FOLDER=str(tls_broker.folder))
