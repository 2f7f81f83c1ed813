"""What http_hostile.py's other listeners do: they write without end, or speak HTTP/2.

Each function serves one connection, or makes a function that does.
"""

import struct
import time

FLOOD_S = 100           # a flood must outlast what the test waits for
PIECE_S = 0.05          # between two pieces of an answer


PROXIES = {     # head of the answer to CONNECT, and what follows until the client has enough
    "407-length": (b"HTTP/1.1 407 Who\r\nContent-Length: 99999999999\r\n\r\n", b"x" * 262144),
    "407-chunks": (b"HTTP/1.1 407 Who\r\nTransfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b"x" * 65536 + b"\r\n"),
    "407-headers": (b"HTTP/1.1 407 Who\r\n", (b"Proxy-Authenticate: Digest x=" + b"a" * 900 + b"\r\n") * 100),
    "200-headers": (b"HTTP/1.1 200 OK\r\n", (b"X-Long: " + b"a" * 900 + b"\r\n") * 100),
    "502-length": (b"HTTP/1.1 502 No\r\nContent-Length: 99999999999\r\n\r\n", b"x" * 262144),
    "interim": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 5000),
    "line": (b"HTTP/1.1 200 OK\r\nX-Long: ", b"a" * 262144),
    "blanks": (b"HTTP/1.1 200", b" " * 262144),
}


def endless_proxy(kind):
    def serve(connection, _number):
        seen = b""
        while b"\r\n\r\n" not in seen:
            piece = connection.recv(65536)
            if not piece:
                return
            seen += piece
        head, rest = PROXIES[kind]
        connection.sendall(head)
        end = time.monotonic() + FLOOD_S
        while time.monotonic() < end:
            connection.sendall(rest)

    return serve


# -- SOCKS5 (RFC 1928) ----------------------------------------------------------
# The answer to the methods that are offered, one where those hold GSSAPI, to a user and to a request.
SOCKS = {
    "refused": (b"\5\0", b"", b"\5\5\0\1" + bytes(6)),
    "unreachable": (b"\5\0", b"", b"\5\4\0\1" + bytes(6)),
    "closed": (b"\5\0", b"", b""),
    "method": (b"\5\xff", b"", b""),
    "user": (b"\5\2", b"\1\1", b""),
    "gssapi": (b"\5\1", b"", b""),
}


def socks_proxy(kind):
    def serve(connection, _number):
        method, user, reply = SOCKS[kind]
        offered = connection.recv(300)
        connection.sendall(b"\5\xff" if kind == "gssapi" and b"\1" not in offered[2:] else method)
        if connection.recv(600) and user:
            connection.sendall(user)
            connection.recv(600)
        connection.sendall(reply)

    return serve


def hello_flood(connection, _number):
    """Asks for a TLS negotiation again and again, while there is one."""
    connection.recv(4096)
    end = time.monotonic() + FLOOD_S
    while time.monotonic() < end:
        connection.sendall((b"\x16\x03\x03\x40\0" + bytes(16384)) * 16)


def tiny_records(connection, _number):
    """TLS 1.2 as far as 32 KiB of certificates, in records of one byte."""
    connection.recv(16384)
    hello = b"\3\3" + bytes(32) + b"\0\xc0\x2b\0\0\5\xff\1\0\1\0"
    certificates = (32700).to_bytes(3, "big") + (32697).to_bytes(3, "big") + bytes(32697)
    for kind, body in ((2, hello), (11, certificates)):
        message = bytes([kind]) + len(body).to_bytes(3, "big") + body
        connection.sendall(b"".join(b"\x16\3\3\0\1" + bytes([byte]) for byte in message))
    connection.recv(100)


# -- HTTP/2 ---------------------------------------------------------------------
def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


FLOODS = {
    "window": frame(8, 0, 0, b"\0\0\0\1") * 10000,      # WINDOW_UPDATE
    "unknown": frame(0xFA, 0, 0) * 15000,
    "settings": frame(4, 0, 0, b"\0\4\0\0\xff\xff") * 8000,
}


def h2_flood(kind):
    """HTTP/2: after the first request it writes frames without a pause, until the client has enough."""

    def serve(connection, _number):
        connection.sendall(frame(4, 0, 0))
        seen = b""
        while len(seen) < 200:                              # preface, SETTINGS, the request's HEADERS
            piece = connection.recv(65536)
            if not piece:
                return
            seen += piece
        connection.sendall(frame(4, 1, 0))
        end = time.monotonic() + FLOOD_S
        while time.monotonic() < end:
            connection.sendall(FLOODS[kind])

    return serve


def h2_given_up(connection, _number):
    """HTTP/2: a 200 whose body is given up in the middle, with RST_STREAM(NO_ERROR)."""
    connection.sendall(frame(4, 0, 0))
    file = connection.makefile("rb")
    file.read(24)                                           # preface
    while head := file.read(9):
        kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
        file.read(int.from_bytes(head[:3], "big"))
        if kind == 4 and not flags & 1:
            connection.sendall(frame(4, 1, 0))
        if kind in (0, 1) and flags & 1:                    # the request has ended
            for kind, flags, payload in ((1, 4, b"\x88"), (0, 0, b'{"status":"fa'), (3, 0, b"\0\0\0\0")):
                connection.sendall(frame(kind, flags, stream, payload))
                time.sleep(PIECE_S)     # in one piece libcurl 7.88 loses the body


GOAWAY, RST_STREAM, CANCEL = 7, 3, 8


def goaway(streams, processed, log):
    """HTTP/2: takes up so many requests of a connection, says GOAWAY and skips those behind; the first ones of them it
    answers, the others it cancels.  log gets the bodies of all that it has taken up."""

    def serve(connection, number):
        connection.sendall(frame(4, 0, 0))
        file = connection.makefile("rb")
        file.read(24)                                       # preface
        bodies, taken = {}, 0
        if streams == 0:
            connection.sendall(frame(GOAWAY, 0, 0, struct.pack(">II", 0, 0)))
        while head := file.read(9):
            kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
            payload = file.read(int.from_bytes(head[:3], "big"))
            if kind == 4 and not flags & 1:
                connection.sendall(frame(4, 1, 0))
            if kind not in (0, 1) or taken == streams:
                continue
            bodies[stream] = bodies.get(stream, b"") + (payload if kind == 0 else b"")
            if not flags & 1:
                continue
            log(f"{bodies[stream].decode()} goaway {number}\n")
            taken += 1
            if taken == streams:
                connection.sendall(frame(GOAWAY, 0, 0, struct.pack(">II", stream, 0)))
            if taken <= processed:
                connection.sendall(frame(1, 5, stream, b"\x88"))
            else:
                connection.sendall(frame(RST_STREAM, 0, stream, struct.pack(">I", CANCEL)))

    return serve
