"""The C tests of the store (test_store*.c), each as a test of its own, on servers of their own.

Of their own because one of them makes the server read-only for a moment, and because
those about TLS need a server that offers it.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

from support.daemon import preset_folder
from support.servers.mariadb import MariaDB
from support.servers.mysql import QUICK, LaterMariaDB, MySQL, start_or_skip
from support.stage import LATER

HERE = Path(__file__).parent
LIMIT_S = 480


def c_tests(sources):
    for source in sources:
        for name in re.findall(r"\bTEST\((\w+)\)[,}]", source.read_text()):
            yield pytest.param(source.stem, name, id=f"{source.stem}-{name}")


TLS = HERE / "test_store_tls.c"
OTHERS = sorted(set(HERE.glob("test_store*.c")) - {TLS})


def run(program, name, **environment):
    done = subprocess.run([preset_folder() / "tests" / program, name], env={**os.environ, **environment},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout
    assert re.search(r"PASSED +\] 1 test", done.stdout), done.stdout


def run_all(program, **environment):
    """All tests of a program at once: what each came to is in its output."""
    done = subprocess.run([preset_folder() / "tests" / program], env={**os.environ, **environment},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout
    assert re.search(r"PASSED +\] [1-9]", done.stdout), done.stdout


@pytest.fixture(scope="module")
def server():
    with MariaDB() as it:
        yield it


@pytest.mark.parametrize(("program", "name"), c_tests(OTHERS))
def test_c(server, program, name):
    run(program, name, DUEBOX_TEST_MYSQL=str(server.socket))


@pytest.fixture(scope="module")
def mysql():
    """The other server: the contract of the store holds on it as it is."""
    it = start_or_skip(MySQL, extra_args=QUICK)
    yield it
    it.stop()


@pytest.fixture(scope="module")
def later_mariadb():
    it = start_or_skip(LaterMariaDB, extra_args=QUICK[:2])
    yield it
    it.stop()


ALWAYS = ("test_store", "test_store_changed", "test_store_settle", "test_store_results", "test_store_locked",
          "test_store_tables", "test_store_identity", "test_store_lives", "test_store_every", "test_store_silent",
          "test_store_housekeep", "test_store_unknown")


@pytest.mark.parametrize("program", [pytest.param(source.stem, marks=() if source.stem in ALWAYS else LATER)
                                     for source in OTHERS])
def test_c_on_mysql(mysql, program):
    run_all(program, DUEBOX_TEST_MYSQL=str(mysql.socket))


@LATER
@pytest.mark.parametrize("program", [source.stem for source in OTHERS])
def test_c_on_later_mariadb(later_mariadb, program):
    run_all(program, DUEBOX_TEST_MYSQL=str(later_mariadb.socket))


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """ca.pem, and server.pem that it signed for 127.0.0.1; other.pem is a stranger."""
    folder = tmp_path_factory.mktemp("tls")
    for name in ("ca", "other"):
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1",
            "-keyout", folder / "server.key", "-out", folder / "server.csr")
    (folder / "names").write_text("subjectAltName = IP:127.0.0.1\n")
    openssl("x509", "-req", "-days", "2", "-in", folder / "server.csr", "-CA", folder / "ca.pem",
            "-CAkey", folder / "ca.key", "-CAcreateserial", "-extfile", folder / "names", "-out", folder / "server.pem")
    return folder


@pytest.fixture(scope="module")
def tls_server(certificates):
    with MariaDB(extra_args=[f"--ssl-cert={certificates}/server.pem", f"--ssl-key={certificates}/server.key",
                             f"--ssl-ca={certificates}/ca.pem"]) as it:
        yield it


@pytest.mark.parametrize(("program", "name"), c_tests([TLS]))
def test_tls(tls_server, certificates, program, name):
    run(program, name, DUEBOX_TEST_MYSQL=str(tls_server.socket), DUEBOX_TEST_TLS=str(certificates))
