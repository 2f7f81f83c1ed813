#!/usr/bin/python3
"""An HTTP server that misbehaves on request: one scripted behaviour for each path.

    http_hostile.py FOLDER

Makes certificates in FOLDER with openssl, listens on 127.0.0.1 and prints one
line `name=port` for each listener, then `ready`. It ends when its standard
input does, so it never outlives the test that started it.

FOLDER/requests.log gets one line for each request whose head has been read,
before anything is answered: `<webhook-id> <path> <number of the connection>`.
That is how a test knows that nothing was sent twice.

A behaviour is a generator: what it yields is sent (bytes) or says what to do
with the connection (CLOSE, RESET).  Without such a word at its end the
connection is kept.
"""

import base64
import contextlib
import email.utils
import gzip
import os
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import zlib

from http_floods import (FLOODS, PROXIES, SOCKS, endless_proxy, goaway, h2_flood, h2_given_up, hello_flood, socks_proxy,
                         tiny_records)
from own_curves import integer, own_curve_certificate, own_curves, tlv

CLOSE, RESET = object(), object()
PIECE_S = 0.05          # between two pieces of a slow answer
CLOCK_REALTIME_COARSE = 5       # of Linux; Python has no name for it
PATIENCE_S = 30         # nothing here lasts longer, whatever the client does


def answer(status=200, body=b"", *headers, reason="Odd"):
    lines = [f"HTTP/1.1 {status} {reason}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


JSON = "Content-Type: application/json"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
BEHAVIOURS = {}


def behaviour(function):
    BEHAVIOURS["/" + function.__name__.replace("_", "-")] = function
    return function


def scripted(path, *steps):
    """A behaviour without a loop: the steps one after the other."""
    BEHAVIOURS[path] = lambda _request: iter(steps)


# -- ordinary answers -----------------------------------------------------------
scripted("/ok", answer())
for code in (201, 202, 203, 204, 301, 302, 307, 308, 400, 401, 403, 404, 407, 408, 409, 410, 413, 415,
             418, 422, 425, 429, 500, 501, 502, 503, 504, 511, 599):
    scripted(f"/status-{code}", answer(code, b"", "Location: /trap"))
# As a proxy, which is asked for whole URLs.
scripted("http://crm.invalid:8/status-407", answer(407, b"give a password"))
scripted("/json", answer(200, b'{"ok":true}', JSON))
scripted("/jsend", answer(200, b'{"status":"success"}', JSON))
scripted("/record-done", answer(200, b'{"id":"x","attempt":1,"status":"done","result":{"a":1}}', JSON))
scripted("/record-retry", CHUNKED.replace(b"200 OK", b"200 OK\r\n" + JSON.encode()),
         chunk(b'{"id":"x","att'), chunk(b'empt":1,"status":"retry"}'), b"0\r\n\r\n")
scripted("/record-202", answer(202, b'{"status":"progress","progress":0.4}', JSON))
scripted("/record-as-html", answer(200, b'{"status":"retry"}', "Content-Type: text/html"))
scripted("/record-500", answer(500, b'{"status":"done"}', JSON))
scripted("/record-too-long", answer(200, b'{"status":"retry","error":"' + b"a" * 200000 + b'"}', JSON))
scripted("/record-too-long-done", answer(200, b'{"status":"done","x":"' + b"a" * 200000 + b'"}', JSON))
scripted("/close-after", answer(200, b"", "Connection: close"), CLOSE)
scripted("/http10", b"HTTP/1.0 200 OK\r\n\r\nbody until the end", CLOSE)
scripted("/no-reason", b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n")
scripted("/bare-newlines", b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok")
scripted("/folded", b"HTTP/1.1 200 OK\r\nX-Long: " + b"a" * 200 + b"\r\n" + b" b" * 200 + b"\r\nContent-Length: 0\r\n\r\n")
scripted("/folded-first", b"HTTP/1.1 200 OK\r\n folded: " + b"x" * 500 + b"\r\nContent-Length: 0\r\n\r\n")
scripted("/error-text", answer(500, b"first\x1b[31m line\r\nsecond \xff line\x00 caf\xc3\xa9"))
scripted("/retry-after-7", answer(503, b"", "Retry-After: 7"))
scripted("/retry-after-429", answer(429, b"", "retry-after:   120  "))
scripted("/retry-after-huge", answer(503, b"", "Retry-After: 9223372036854775807"))
scripted("/retry-after-overflow", answer(503, b"", "Retry-After: 99999999999999999999"))
scripted("/retry-after-negative", answer(503, b"", "Retry-After: -7"))
scripted("/retry-after-nonsense", answer(503, b"", "Retry-After: soon"))
scripted("/retry-after-past", answer(503, b"", "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT"))


@behaviour
def retry_after_date(_request):
    # The clock that libcurl's time() reads: a tick behind the precise one, which may have begun the next second already.
    now = time.clock_gettime(CLOCK_REALTIME_COARSE)
    yield answer(503, b"", "Retry-After: " + email.utils.formatdate(now + 100, usegmt=True))


# -- interim responses ----------------------------------------------------------
scripted("/continue", b"HTTP/1.1 100 Continue\r\n\r\n", answer())
scripted("/early-hints", *[b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"] * 5, answer())
scripted("/switching", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", b"whatever", CLOSE)


@behaviour
def interim_flood(_request):
    while True:
        yield b"HTTP/1.1 103 Early Hints\r\nLink: <" + b"a" * 1000 + b">\r\n\r\n"


# -- slow, endless, enormous ------------------------------------------------------
@behaviour
def never(_request):
    time.sleep(PATIENCE_S)
    yield CLOSE


@behaviour
def slow_headers(_request):
    for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"a" * 1000:
        yield bytes([byte])
        time.sleep(PIECE_S)


@behaviour
def slow_body(_request):
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
    for _ in range(1000):
        yield b"a"
        time.sleep(PIECE_S)


@behaviour
def slow_but_in_time(_request):
    for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok":
        yield bytes([byte])
        time.sleep(0.002)


@behaviour
def endless_body(_request):
    yield b"HTTP/1.1 200 OK\r\n\r\n"
    while True:
        yield b"a" * 65536


@behaviour
def endless_chunks(_request):
    yield CHUNKED
    while True:
        yield chunk(b"a" * 16384)


@behaviour
def endless_error(_request):
    yield b"HTTP/1.1 500 Oh\r\n\r\n"
    while True:
        yield b"b" * 65536


@behaviour
def header_flood(_request):
    yield b"HTTP/1.1 200 OK\r\n"
    while True:
        yield b"X-Flood: " + b"a" * 500 + b"\r\n"


scripted("/header-line", b"HTTP/1.1 200 OK\r\nX-Long: " + b"a" * 300000 + b"\r\nContent-Length: 0\r\n\r\n")
scripted("/huge-body", answer(200, b"a" * 3000000))


@behaviour
def trailer_flood(_request):
    yield CHUNKED + chunk(b"ok") + b"0\r\n"
    while True:
        yield b"X-Trailer: " + b"a" * 500 + b"\r\n"


# -- cut off ----------------------------------------------------------------------
scripted("/close", CLOSE)
scripted("/reset", RESET)
scripted("/close-in-status", b"HTTP/1.1 2", CLOSE)
scripted("/close-in-headers", b"HTTP/1.1 200 OK\r\nX-A: b\r\nX-", CLOSE)
scripted("/reset-in-headers", b"HTTP/1.1 200 OK\r\nX-A: b\r\n", RESET)
scripted("/close-in-body", b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this", CLOSE)
scripted("/reset-in-body", b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this", RESET)
scripted("/close-in-chunk", CHUNKED + b"ff\r\nshort", CLOSE)
scripted("/close-before-last-chunk", CHUNKED + chunk(b"whole"), CLOSE)
scripted("/reset-after-500", b"HTTP/1.1 500 Oh\r\nContent-Length: 1000\r\n\r\nonly this", RESET)

# -- not HTTP ----------------------------------------------------------------------
scripted("/garbage", os.urandom(4000).replace(b"HTTP/", b"XXXXX"), CLOSE)
scripted("/http09", b"<html>hello</html>", CLOSE)
scripted("/nul", b"\0" * 1000, CLOSE)
scripted("/ssh", b"SSH-2.0-OpenSSH_9.2\r\n", CLOSE)
scripted("/version-9", b"HTTP/9.9 200 OK\r\nContent-Length: 0\r\n\r\n", CLOSE)
scripted("/status-999", b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n")
scripted("/status-letters", b"HTTP/1.1 OK 200\r\nContent-Length: 0\r\n\r\n", CLOSE)
scripted("/negative-length", b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello", CLOSE)
scripted("/letters-length", b"HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello", CLOSE)
scripted("/overflow-length", b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\nhello", CLOSE)
scripted("/chunk-not-hex", CHUNKED + b"zz\r\nhello\r\n0\r\n\r\n", CLOSE)
scripted("/chunk-overflow", CHUNKED + b"fffffffffffffffffffff\r\nhello\r\n", CLOSE)
scripted("/chunk-negative", CHUNKED + b"-5\r\nhello\r\n", CLOSE)

# -- more or other than announced ----------------------------------------------------
scripted("/short-length", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more than that")
scripted("/body-with-204", b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello")
scripted("/two-answers", answer(200) + answer(500, b"for the next request?"))
scripted("/length-and-chunked", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
         + chunk(b"hello") + b"0\r\n\r\n")
scripted("/length-twice", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok")
scripted("/lengths-differ", b"HTTP/1.1 200 OK\r\nContent-Length: 40\r\nContent-Length: 2\r\n\r\nok" + answer(200))
scripted("/lengths-differ-last", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 40\r\n\r\nok" + answer(200))
scripted("/length-list", b"HTTP/1.1 200 OK\r\nContent-Length: 2, 40\r\n\r\nok" + answer(200))
scripted("/length-plus", b"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok")
scripted("/bare-newline-chunks", CHUNKED + b"5\nhello\n0\n\n")
scripted("/nul-behind-chunked", CHUNKED.replace(b"chunked", b"chunked\0") + chunk(b"hello") + b"0\r\n\r\n")
scripted("/nul-behind-length", b"HTTP/1.1 200 OK\r\nContent-Length: 2\0\r\n\r\nok")
scripted("/nul-in-name", b"HTTP/1.1 200 OK\r\nX\0y: 1\r\nContent-Length: 2\r\n\r\nok")
scripted("/gzip-bomb", answer(200, gzip.compress(b"\0" * 20000000), "Content-Encoding: gzip", JSON))
scripted("/gzip-record", answer(200, gzip.compress(b'{"status":"fail"}'), "Content-Encoding: gzip", JSON))
scripted("/gzip-empty", answer(200, b"", "Content-Encoding: gzip", JSON))
scripted("/gzip-202", answer(202, gzip.compress(b"ok"), "Content-Encoding: gzip"))
scripted("/gzip-503", answer(503, gzip.compress(b"sorry"), "Content-Encoding: gzip"))
scripted("/odd-coding", answer(200, b'{"status":"fail"}', "Content-Encoding: utf-8", JSON))
scripted("/utf16-record", answer(200, '{"status":"fail"}'.encode("utf-16"), JSON))
scripted("/late-status", answer(200, b'{"pad":"' + b"x" * 700000 + b'","status":"fail"}', JSON))
scripted("/late-status-202", answer(202, b'{"pad":"' + b"x" * 70000 + b'","status":"fail"}', JSON))
scripted("/long-object", answer(200, b'{"pad":"' + b"x" * 700000 + b'"}', JSON))
scripted("/longer-object", answer(200, b'{"pad":"' + b"x" * 1200000 + b'"}', JSON))
scripted("/close-in-object", b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b'{"pad":"' + b"x" * 700000, CLOSE)
scripted("/gzip-transfer", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"
         + chunk(gzip.compress(b"\0" * 20000000)) + b"0\r\n\r\n")


def nested(status):
    """A gzip whose file name never ends, in two more: 4 GB that give no byte out, so that no limit of a body is met."""
    def flushed(data):
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        return packer.compress(data) + packer.flush(zlib.Z_FULL_FLUSH)

    named = b"\x1f\x8b\x08\x08\0\0\0\0\0\x03"       # a name follows, up to a NUL
    within = b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + flushed(named) + flushed(b"a" * (1 << 20)) * 4096
    return (b"HTTP/1.1 %d Odd\r\nTransfer-Encoding: gzip, gzip, gzip, chunked\r\n\r\n" % status
            + chunk(gzip.compress(within)) + b"0\r\n\r\n")


scripted("/nested-transfer", nested(200))
scripted("/nested-transfer-500", nested(500))
scripted("/file-redirect", answer(302, b"", "Location: file:///etc/passwd"))
scripted("/cookie", answer(200, b"", "Set-Cookie: a=b; Path=/"))
scripted("/auth", answer(401, b"", "WWW-Authenticate: Negotiate", 'WWW-Authenticate: Basic realm="x"'))
scripted("/upgrade", answer(200, b"", "Alt-Svc: h3=\":443\"", "Strict-Transport-Security: max-age=1", "Upgrade: h2c"))


# The client has read the answer, and its connection lies idle: only the test knows that, and says so by a line.
IDLE = threading.Semaphore(0)


@behaviour
def late_second_answer(_request):
    yield answer(200)
    IDLE.acquire(timeout=PATIENCE_S)
    yield answer(500, b"for the next request?")


@behaviour
def close_when_idle(_request):
    yield answer(200)
    IDLE.acquire(timeout=PATIENCE_S)
    yield CLOSE


SPOILERS = late_second_answer, close_when_idle      # the log says when they have done it


@behaviour
def early_answer(request):
    """Says no before the body has come, as servers with a size limit do."""
    yield answer(413, b"too large", "Connection: close")
    yield CLOSE


early_answer.before_body = True


@behaviour
def read_then_close_if_kept(request):
    """The first request of a connection is answered; the second one is read, perhaps worked on, and dropped."""
    yield answer() if request.number == 1 else CLOSE


@behaviour
def echo_headers(request):
    yield answer(200, request.head, "Content-Type: text/plain")


# -- the server ------------------------------------------------------------------------
class Request:
    def __init__(self, head, connection, number):
        self.head = head
        self.connection = connection
        self.number = number        # on this connection, from 1
        lines = head.decode("latin-1").split("\r\n")
        self.path = lines[0].split(" ")[1].split("?")[0]
        self.headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            self.headers[name.lower()] = value.strip()


class Server:
    def __init__(self, folder):
        self.log = open(os.path.join(folder, "requests.log"), "ab", buffering=0)
        self.lock = threading.Lock()
        self.connections = 0

    def listen(self, name, context=None, serve=None, narrow=False):
        """narrow: like one behind a tunnel, for which the other side's kernel takes some 50 KB at once."""
        listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        if narrow:
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1000)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        threading.Thread(target=self._accept, args=(listener, context, serve or self._serve),
                         daemon=True).start()
        print(f"{name}={listener.getsockname()[1]}", flush=True)

    def _accept(self, listener, context, serve):
        while True:
            connection, _ = listener.accept()
            with self.lock:
                self.connections += 1
                number = self.connections
            threading.Thread(target=self._guard, args=(connection, context, serve, number),
                             daemon=True).start()

    def _guard(self, connection, context, serve, number):
        try:
            connection.settimeout(PATIENCE_S)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context:
                connection = context.wrap_socket(connection, server_side=True)
            serve(connection, number)
        except OSError:
            pass                    # the client went away: what these tests provoke
        finally:
            connection.close()

    def _serve(self, connection, number):
        buffer = b""
        count = 0
        while True:
            while b"\r\n\r\n" not in buffer:
                data = connection.recv(65536)
                if not data:
                    return
                buffer += data
            head, _, buffer = buffer.partition(b"\r\n\r\n")
            count += 1
            request = Request(head, number, count)
            behaviour = BEHAVIOURS.get(request.path, BEHAVIOURS["/status-404"])
            self._note(request)
            if not getattr(behaviour, "before_body", False):
                left = int(request.headers.get("content-length", 0)) - len(buffer)
                while left > 0:
                    data = connection.recv(min(left, 65536))
                    if not data:
                        return
                    left -= len(data)
                buffer = buffer[len(buffer) + left:] if left < 0 else b""
            kept = self._play(connection, behaviour(request))
            if not kept:
                connection.close()
            if behaviour in SPOILERS:
                self.write(f"{request.headers.get('webhook-id', '-')}:spoilt {number}\n")
            if not kept:
                return

    def _note(self, request):
        self.write(f"{request.headers.get('webhook-id', '-')} {request.path} {request.connection}\n")

    def write(self, line):
        with self.lock:
            self.log.write(line.encode())

    @staticmethod
    def _play(connection, steps):
        """Whether the connection is kept."""
        for step in steps:
            if step is CLOSE:
                if isinstance(connection, ssl.SSLSocket):
                    connection.setblocking(False)
                    with contextlib.suppress(ssl.SSLWantReadError):     # our end is said; theirs is not waited for
                        connection.unwrap()
                return False
            if step is RESET:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return False
            connection.sendall(step)
        return True


def silent(connection, _number):
    """Accepts and says nothing: a TLS handshake that never ends."""
    connection.recv(1)
    time.sleep(PATIENCE_S)


def cut_handshake(connection, _number):
    connection.recv(100)


# -- certificates ------------------------------------------------------------------------
CA_CONFIG = """
[ca]
default_ca = here
[here]
database = {folder}/index.txt
new_certs_dir = {folder}
serial = {folder}/serial
default_md = sha256
policy = any
copy_extensions = copy
unique_subject = no
[any]
commonName = supplied
"""


P256 = ("ec", "-pkeyopt", "ec_paramgen_curve:P-256")


class Authority:
    """A certificate authority in a folder, by the openssl command."""

    def __init__(self, folder):
        self.folder = folder
        with open(self.path("ca.cnf"), "w") as file:
            file.write(CA_CONFIG.format(folder=folder))
        open(self.path("index.txt"), "w").close()
        with open(self.path("serial"), "w") as file:
            file.write("1000\n")
        self.self_signed("ca", "test authority", "basicConstraints=critical,CA:TRUE")

    def path(self, name):
        return os.path.join(self.folder, name)

    def _openssl(self, *arguments):
        done = subprocess.run(["openssl", *arguments], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"openssl {' '.join(arguments)} failed:\n{done.stderr}")

    def self_signed(self, name, common_name, extension):
        self._openssl("req", "-x509", "-newkey", *P256, "-noenc",
                      "-keyout", self.path(name + ".key"), "-out", self.path(name + ".pem"),
                      "-subj", "/CN=" + common_name, "-days", "2", "-addext", extension)

    def issue(self, name, alternatives, start="20200101000000Z", end="20491231000000Z", key=P256):
        self._openssl("req", "-newkey", *key, "-noenc",
                      "-keyout", self.path(name + ".key"), "-out", self.path(name + ".csr"),
                      "-subj", "/CN=" + name, "-addext", "subjectAltName=" + alternatives)
        self._openssl("ca", "-batch", "-notext", "-config", self.path("ca.cnf"), "-cert", self.path("ca.pem"),
                      "-keyfile", self.path("ca.key"), "-in", self.path(name + ".csr"),
                      "-out", self.path(name + ".pem"), "-startdate", start, "-enddate", end)

    def finite_field(self, name, bits):
        """TLS 1.2 with Diffie-Hellman over a finite field only; its p need not be prime."""
        context = self.context(name)
        with open(self.path("dh.pem"), "w") as file:
            file.write("-----BEGIN DH PARAMETERS-----\n")
            file.write(base64.encodebytes(tlv(0x30, integer(2**bits - 1), integer(2))).decode())
            file.write("-----END DH PARAMETERS-----\n")
        context.load_dh_params(self.path("dh.pem"))
        context.set_ciphers("DHE-RSA-AES128-GCM-SHA256")
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        return context

    def own_curve(self, name):
        """The certificate, followed by one with a curve of its own."""
        with open(self.path(name + ".pem")) as first, open(self.path("own-curve.pem"), "w") as chain:
            chain.write(first.read() + ssl.DER_cert_to_PEM_cert(own_curve_certificate()))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.path("own-curve.pem"), self.path(name + ".key"))
        return context

    def finite_field_13(self, name):
        """The port of a server of TLS 1.3 with Diffie-Hellman over a finite field only: Python's ssl cannot do that."""
        server = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "openssl", "s_server", "-accept", "127.0.0.1:0", "-tls1_3",
             "-groups", "ffdhe8192", "-www", "-cert", self.path(name + ".pem"), "-key", self.path(name + ".key")],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in server.stdout:
            if line.startswith("ACCEPT "):
                return int(line.split()[1].rpartition(":")[2])
        raise SystemExit("openssl s_server did not begin to listen")

    def context(self, name, *, newest=None, client_ca=None, protocol=None):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if protocol:
            context.set_alpn_protocols([protocol])
        context.load_cert_chain(self.path(name + ".pem"), self.path(name + ".key"))
        if newest:
            context.set_ciphers("ALL:@SECLEVEL=0")
            context.minimum_version = ssl.TLSVersion.TLSv1
            context.maximum_version = newest
        if client_ca:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.path(client_ca + ".pem"))
        return context


def main(folder):
    authority = Authority(folder)
    local = "DNS:localhost,IP:127.0.0.1"
    authority.issue("good", local)
    authority.issue("client", "DNS:client")
    authority.issue("wronghost", "DNS:other.example")
    authority.issue("expired", local, "20200101000000Z", "20200201000000Z")
    authority.issue("future", local, "20480101000000Z", "20491231000000Z")
    authority.self_signed("selfsigned", "localhost", "subjectAltName=" + local)
    authority.issue("rsa", local, key=("rsa:2048",))
    server = Server(folder)
    server.listen("plain")
    for name in ("good", "wronghost", "expired", "future", "selfsigned"):
        server.listen(name, authority.context(name))
    server.listen("narrow", authority.context("good"), narrow=True)
    server.listen("tls11", authority.context("good", newest=ssl.TLSVersion.TLSv1_1))
    server.listen("mutual", authority.context("good", client_ca="ca"))
    server.listen("mutual12", authority.context("good", newest=ssl.TLSVersion.TLSv1_2, client_ca="ca"))
    for kind in FLOODS:
        server.listen("flood-" + kind, authority.context("good", protocol="h2"), serve=h2_flood(kind))
    for name, streams, processed in (("goaway", 7, 7), ("goaway-cancel", 7, 6), ("goaway-none", 0, 0)):
        server.listen(name, authority.context("good", protocol="h2"), serve=goaway(streams, processed, server.write))
    server.listen("given-up", authority.context("good", protocol="h2"), serve=h2_given_up)
    for kind in PROXIES:
        server.listen("proxy-" + kind, serve=endless_proxy(kind))
    for kind in SOCKS:
        server.listen("socks-" + kind, serve=socks_proxy(kind))
    server.listen("silent", serve=silent)
    server.listen("cut", serve=cut_handshake)
    server.listen("hello-flood", serve=hello_flood)
    server.listen("tiny-records", serve=tiny_records)
    server.listen("own-curve-13", authority.own_curve("good"))
    server.listen("own-curves", serve=own_curves(10))      # seconds of processor time to parse
    server.listen("many-certificates", serve=own_curves(11))
    server.listen("large-certificates", serve=own_curves(60))
    server.listen("finite-field", authority.finite_field("rsa", 10000))
    print(f"finite-field-13={authority.finite_field_13('good')}", flush=True)
    print("ready", flush=True)
    for _ in sys.stdin:
        IDLE.release()


if __name__ == "__main__":
    main(sys.argv[1])
