"""Whatever answers on the database's port must not learn the database's password, and takes no more than some memory.

A server chooses the login method, and on loopback there is no TLS by default: a process that took the port, or a
database that somebody else administers, could ask for the password as it is.
"""

import contextlib
import os
import pathlib
import re
import socket
import struct
import subprocess
import threading
import time

import pytest

PASSWORD = "correct horse battery staple"
CHALLENGE = b"0123456789abcdefghij"
OK, EOF = b"\0\0\0\x02\0\0\0", b"\xfe\0\0\x02\0"
WANT_PASSWORD, SWITCH = b"\x01\x04", b"\xfe"
COLUMN = b"\x03def\0\0\0\x01x\0\x0c" + struct.pack("<HIBHB", 33, 100, 253, 0, 0) + b"\0\0"


def packet(number, body):
    return struct.pack("<I", len(body))[:3] + bytes([number]) + body


def greeting(method):
    """Protocol 10 as MySQL 8 says it, with the method that the server begins with."""
    flags = 0x0000_0001 | 0x0008 | 0x0200 | 0x8000 | 0x0008_0000 | 0x0020_0000     # CONNECT_WITH_DB, 41, PLUGIN_AUTH
    return (b"\x0a8.0.36\0" + struct.pack("<I", 7) + CHALLENGE[:8] + b"\0" + struct.pack("<H", flags & 0xffff)
            + b"\x2d" + struct.pack("<H", 2) + struct.pack("<H", flags >> 16) + bytes([21]) + bytes(10)
            + CHALLENGE[8:] + b"\0" + method.encode() + b"\0")


class Rogue:
    """Begins with one method, asks for another, and keeps all that it is sent."""

    def __init__(self, begins, asks=None, then=(), says=b"no", path=None):
        self.begins, self.asks, self.then, self.says = begins, asks, then, says
        self.heard, self.packets = b"", []
        if path:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(str(path))
            self.listener.listen()
        else:
            self.listener = socket.create_server(("127.0.0.1", 0))
            self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()

    def _serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve_one, args=(client,), daemon=True).start()

    def _serve_one(self, client):
        with client:
            client.settimeout(60)
            try:
                self._talk(client)
            except (OSError, EOFError):
                pass

    def _hear(self, client):
        head = self._exactly(client, 4)
        body = self._exactly(client, head[0] | head[1] << 8 | head[2] << 16)
        self.heard += body
        self.packets.append(body)
        return head[3] + 1

    @staticmethod
    def _exactly(client, count):
        data = b""
        while len(data) < count:
            more = client.recv(count - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def _let_in(self, client):
        """Takes any password."""
        client.sendall(packet(0, greeting("mysql_native_password")))
        client.sendall(packet(self._hear(client), OK))

    def _talk(self, client):
        client.sendall(packet(0, greeting(self.begins)))
        number = self._hear(client)
        if self.asks:
            client.sendall(packet(number, SWITCH + self.asks.encode() + b"\0" + CHALLENGE + b"\0"))
            number = self._hear(client)
        for answer in self.then:
            client.sendall(packet(number, answer))
            number = self._hear(client)
        client.sendall(packet(number, b"\xff" + struct.pack("<H", 1045) + b"#28000" + self.says))


def key_pair(folder, name):
    private, public = folder / f"{name}.pem", folder / f"{name}.pub"
    subprocess.run(["openssl", "genrsa", "-out", private, "2048"], check=True, capture_output=True)
    subprocess.run(["openssl", "rsa", "-in", private, "-pubout", "-out", public], check=True, capture_output=True)
    return private, public


def decrypt(private, text):
    done = subprocess.run(["openssl", "pkeyutl", "-decrypt", "-inkey", private, "-pkeyopt", "rsa_padding_mode:oaep"],
                          input=text, capture_output=True, check=False)
    return bytes(byte ^ CHALLENGE[at % 20] for at, byte in enumerate(done.stdout))


def point_at(stage, rogue, **database):
    """From now on the rogue is the database of the configuration."""
    stage.configuration["database"] = {"host": "127.0.0.1", "port": rogue.port, "user": "duebox", "name": "shop",
                                       "password": PASSWORD, **database}


def attempt(stage, rogue, **database):
    """`duebox migrate` against the rogue; what it says."""
    stage.daemon()      # the real database has its tables: what is refused from now on is the rogue
    point_at(stage, rogue, **database)
    done = stage.daemon().run("migrate", check=False)
    assert done.returncode != 0
    return done.stderr


@pytest.mark.parametrize("begins, asks", [
    ("mysql_clear_password", None), ("dialog", None), ("caching_sha2_password", "mysql_clear_password"),
    ("mysql_native_password", "dialog"), ("mysql_native_password", "sha256_password"),
    ("mysql_native_password", "mysql_old_password"), ("mysql_native_password", "auth_gssapi_client")])
def test_the_password_is_not_sent_in_clear(stage, begins, asks):
    """No method that sends the password is used, whatever the server asks for."""
    with Rogue(begins, asks, then=(b"\x04Password: ",)) as rogue:
        said = attempt(stage, rogue)
    assert PASSWORD.encode() not in rogue.heard
    assert len(rogue.packets) == (1 if asks else 0), "an answer was given to a method that reveals the password"
    assert "reveal the password" in said, said


def test_a_key_that_the_server_sends_is_not_used(stage, tmp_path):
    """caching_sha2_password without TLS: a stranger's key would make the encrypted password readable for it."""
    private, public = key_pair(tmp_path, "stranger")
    with Rogue("caching_sha2_password", then=(WANT_PASSWORD, b"\x01" + public.read_bytes())) as rogue:
        said = attempt(stage, rogue)
    assert b"\x02" not in rogue.packets, "it asked the server for a key"
    assert not any(PASSWORD.encode() in decrypt(private, body) for body in rogue.packets if len(body) == 256)
    assert "server_public_key_file" in said, said


def test_with_the_servers_key_the_password_is_for_that_server_only(stage, tmp_path):
    """The configured key is the one that is used: its owner can read the password, nobody else."""
    private, public = key_pair(tmp_path, "server")
    strange, offered = key_pair(tmp_path, "stranger")
    with Rogue("caching_sha2_password", then=(WANT_PASSWORD, b"\x01" + offered.read_bytes())) as rogue:
        attempt(stage, rogue, server_public_key_file=str(public))
    assert b"\x02" not in rogue.packets and PASSWORD.encode() not in rogue.heard
    sent = [body for body in rogue.packets if len(body) == 256]
    assert len(sent) == 1
    assert decrypt(private, sent[0]).rstrip(b"\0") == PASSWORD.encode()
    assert PASSWORD.encode() not in decrypt(strange, sent[0])


def test_a_key_file_that_cannot_be_used_reveals_nothing(stage, tmp_path):
    """Neither a missing key nor a broken one falls back to the server's."""
    broken = tmp_path / "broken.pub"
    broken.write_text("no key\n")
    for file in (tmp_path / "missing.pub", broken, os.devnull):
        with Rogue("caching_sha2_password", then=(WANT_PASSWORD, b"\x01x")) as rogue:
            said = attempt(stage, rogue, server_public_key_file=str(file))
        assert b"\x02" not in rogue.packets and PASSWORD.encode() not in rogue.heard
        assert not [body for body in rogue.packets if len(body) == 256]
        assert "server_public_key_file" in said, said


def test_a_socket_that_others_could_listen_on_is_not_connected_to(stage, tmp_path):
    """The server is down, and its socket in a folder like /tmp: another user takes the name, asks for the password itself,
    and could invent tasks."""
    stage.daemon()
    if os.geteuid() != 0:
        pytest.skip("only root can give the socket to another user")
    tmp_path.chmod(0o1777)
    path = tmp_path / "mysql.sock"
    ours = {"socket": str(path), "user": "duebox", "name": "shop", "password": PASSWORD}
    with Rogue("caching_sha2_password", then=(WANT_PASSWORD,), path=path) as rogue:
        os.chown(path, 65534, 65534)
        stage.configuration["database"] = ours
        daemon = stage.daemon(migrate=False)
        said = {command: daemon.run(*command.split(), check=False, limit_s=60)
                for command in ("migrate", "doctor", "check --connect")}
        daemon.start(wait_ready=False)
        daemon.wait_log("DUEBOX-DB-REFUSED", limit_s=30, text="belongs to another user (uid 65534)")
        assert not rogue.packets and not rogue.heard
        os.chown(path, 0, 0)        # as a server of root would have it: now it is asked, and gets what the socket may carry
        daemon.run("doctor", check=False, limit_s=60)
        assert rogue.packets
    for command, done in said.items():
        text = done.stdout + done.stderr
        assert done.returncode != 0 and f"{path} belongs to another user (uid 65534)" in text, (command, text)


class Repeats(Rogue):
    """Lets everybody in, and refuses each statement with the text."""

    def _talk(self, client):
        self._let_in(client)
        while True:
            client.sendall(packet(self._hear(client), b"\xff" + struct.pack("<H", 1064) + b"#42000" + self.says))


@pytest.mark.parametrize("kind", [Rogue, Repeats])
def test_what_the_server_says_reveals_nothing_and_is_not_obeyed(stage, kind):
    """A proxy, or the server, may repeat what it was configured with or sent, and its text goes to logs, to terminals and
    to the HTTP API."""
    password, other = "hunter2\"sekäret", "migr4tor-sekret"
    says = f"\x1b]0;owned\x07 no\r\nlevel=info id=FORGED: {password} {other} hunter2%22sek%C3%A4ret for 'duebox'".encode()
    with kind("mysql_native_password", says=says) as rogue:
        point_at(stage, rogue, password=password, migrate_user="migr4tor", migrate_password=other)
        daemon = stage.daemon(migrate=False)
        said = {command: daemon.run(*command.split(), check=False, limit_s=120) for command in (
            "check --connect", "migrate", "doctor", "doctor -o json", "task list", "route list")}
        said = {command: done.stdout + done.stderr for command, done in said.items() if done.returncode}
        daemon.start(wait_ready=False)
        daemon.wait_log("DUEBOX-DB-REFUSED", limit_s=30, text="for 'duebox'")
        daemon.wait_log("DUEBOX-ADMIN-LISTEN")
        said["/readyz"] = str(daemon.api("GET", "/readyz"))
        said["log"] = daemon.log.read_text()
    assert set(said) >= {"check --connect", "migrate", "doctor", "doctor -o json", "task list", "log"}, said.keys()
    for command, text in said.items():
        assert "sek" not in text and "\x1b" not in text and "\n" not in text.split("FORGED")[0].split("owned")[-1], \
            (command, text)
        assert "***" in text and "'duebox'" in text or command == "/readyz", (command, text)


class Endless(Rogue):
    """Lets everybody in, and answers each statement with rows that never end."""

    def _talk(self, client):
        self._let_in(client)
        self._hear(client)
        client.sendall(packet(1, b"\x01") + packet(2, COLUMN) + packet(3, EOF))
        rows = b"".join(packet((4 + number) % 256, b"\xfc" + struct.pack("<H", 4096) + b"x" * 4096)
                        for number in range(256))
        while True:
            client.sendall(rows)


def test_an_answer_that_never_ends_is_cut_off(stage):
    """A stranger in the database's place, or a broken proxy, cannot make duebox take all memory or wait for ever: a few
    megabytes before it is known to be our database, then the connection is over and the error says why."""
    stage.daemon()
    with Endless("mysql_native_password") as rogue:
        point_at(stage, rogue)
        daemon = stage.daemon()
        for command in (["check", "--connect"], ["migrate"], ["doctor"]):
            done = daemon.run(*command, check=False, limit_s=120)
            said = done.stdout + done.stderr
            assert done.returncode != 0 and "which no statement gives" in said, said


class Switches(Rogue):
    """Asks for another login method again and again, and does not wait for the answers."""

    at_once, pause_s = 1, 0.02

    def _talk(self, client):
        client.sendall(packet(0, greeting("mysql_native_password")))
        number = self._hear(client)
        threading.Thread(target=self._swallow, args=(client,), daemon=True).start()
        switch = SWITCH + b"mysql_native_password\0" + CHALLENGE + b"\0"
        while True:
            client.sendall(b"".join(packet((number + 2 * times) % 256, switch) for times in range(self.at_once)))
            number += 2 * self.at_once
            time.sleep(self.pause_s)

    @staticmethod
    def _swallow(client):
        with contextlib.suppress(OSError):
            while client.recv(65536):
                pass


class SwitchesAtOnce(Switches):
    """The same as fast as it can."""

    at_once, pause_s = 128, 0


class Trickles(Rogue):
    """Lets everybody in, and answers the first statement with a column's name, a byte now and then."""

    def _talk(self, client):
        self._let_in(client)
        self._hear(client)
        client.sendall(struct.pack("<I", 0xffff)[:3] + b"\x01")
        while True:
            client.sendall(b"x")
            time.sleep(0.3)


@pytest.mark.parametrize("kind, limits, word", [
    (Switches, {"connect_timeout": "1s"}, "database.connect_timeout"),
    (SwitchesAtOnce, {"connect_timeout": "30s"}, "more than 1024 KiB"),
    (Trickles, {"connect_timeout": "30s", "read_timeout": "2s"}, "database.read_timeout")])
def test_a_login_ends_whatever_the_server_does(stage, kind, limits, word):
    """No single wait is long, but the whole has a limit: the daemon says so and stops when it is asked to, and so does
    doctor."""
    stage.daemon()
    with kind("mysql_native_password") as rogue:
        point_at(stage, rogue, **limits)
        daemon = stage.daemon(migrate=False)
        done = daemon.run("doctor", check=False, limit_s=60)
        assert done.returncode != 0 and word in done.stdout + done.stderr, done.stdout + done.stderr
        daemon.start(wait_ready=False)
        daemon.wait_log("DUEBOX-LEASE-TROUBLE", limit_s=30, text=word)
        daemon.stop(limit_s=30)


class Columns(Rogue):
    """Lets everybody in, and describes columns without end: of its first answer, or of one in the midst of a script."""

    before = b""        # answers to the statements in front

    def _talk(self, client):
        self._let_in(client)
        self._hear(client)
        number = len(self.before) + 1
        client.sendall(b"".join(packet(1 + at, answer) for at, answer in enumerate(self.before))
                       + packet(number, b"\xfe" + struct.pack("<Q", 2**63 - 1)))
        while True:
            number += 512
            client.sendall(b"".join(packet((number + at) % 256, COLUMN) for at in range(512)))


class LaterColumns(Columns):
    before = [b"\0\0\0\x0a\0\0\0"]      # OK, and more results follow


class Packet(Rogue):
    """Lets everybody in, and answers with one packet that has no end."""

    def _talk(self, client):
        self._let_in(client)
        self._hear(client)
        number = 1
        while True:
            client.sendall(b"\xff\xff\xff" + bytes([number % 256]) + b"x" * 0xffffff)
            number += 1


@pytest.mark.parametrize("kind", [Columns, LaterColumns, Packet])
def test_what_comes_before_the_rows_has_a_limit_too(stage, kind):
    """The client library keeps all columns, or the whole packet, before anybody can look at them: memory stays small,
    the daemon says why it has no database and ends when it is asked to, and so do the commands."""
    stage.daemon()
    with kind("mysql_native_password") as rogue:
        point_at(stage, rogue)
        daemon = stage.daemon(migrate=False)
        for command in (["doctor"], ["migrate"], ["task", "list"]):
            done = daemon.run(*command, check=False, limit_s=60)
            said = done.stdout + done.stderr
            assert done.returncode != 0 and "in more than 256 KiB, which no statement gives" in said, said
        daemon.start(wait_ready=False)
        daemon.wait_log("DUEBOX-LEASE-TROUBLE", limit_s=30, text="which no statement gives")
        peak = re.search(r"VmHWM:\s+(\d+) kB", (pathlib.Path("/proc") / str(daemon.process.pid) / "status").read_text())
        assert int(peak[1]) < 100 * 1024, peak[0]
        daemon.stop(limit_s=30)
