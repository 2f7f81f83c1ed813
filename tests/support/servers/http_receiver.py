"""A real HTTP/1.1 receiver of hooks: records every request, answers by rules.

    receiver = HttpReceiver().start()
    receiver.on("/orders", Answer(503, headers={"Retry-After": "2"}), times=1)
    receiver.on("/slow", Answer(delay_s=30))
    receiver.on("/odd", lambda request: Answer(200 if request.body else 400))

The rule for the longest matching path prefix answers; without one it is 200.
A rule with `times` is used up, and the one before it for the same path returns.
Requests are in `requests`, in the order of arrival; the list only grows.

One event loop in one daemon thread, parsing by hand because a bench sends
thousands of requests a second.  Rule functions run in that loop: they must not
block.  `python3 -m support.servers.http_receiver` prints requests as JSON lines.
"""

import argparse
import asyncio
import dataclasses
import json
import signal
import socket
import struct
import sys
import threading
import time
from http import HTTPStatus

from ..wait import wait_until
from .ports import free_port

LIMIT_S = 60
GATE_POLL_S = 0.005
ENDLESS_CHUNK = b"x" * 16384
MAX_HEAD = 64 * 1024


@dataclasses.dataclass
class Request:
    method: str
    path: str               # with the query, as sent
    headers: dict           # names in lower case; of repeated ones the last
    body: bytes
    arrived: float          # local time.time() when the last byte was read
    connection: int         # number of the TCP connection, from 1


@dataclasses.dataclass
class Answer:
    """What the receiver does.  The flags replace the body, or the whole answer."""
    status: int = 200
    body: bytes = b""
    headers: dict = dataclasses.field(default_factory=dict)
    delay_s: float = 0          # before the first byte
    after: threading.Event = None   # no byte before it is set
    drip_s: float = 0           # pause before each single byte of the body
    endless: bool = False       # a body that never ends
    close: bool = False         # after a whole answer: Connection: close
    hang_up: bool = False       # no answer, the connection is closed
    reset: bool = False         # no answer, RST
    never: bool = False         # no answer, the connection stays open

    @staticmethod
    def redirect(location, status=307):
        return Answer(status, headers={"Location": location})


class HttpReceiver:
    """start() listens on 127.0.0.1:`port`; `url` is its root, without a slash.

    tls: an ssl.SSLContext makes it an HTTPS receiver."""

    def __init__(self, port=None, *, tls=None):
        self.port = port or free_port()
        self._tls = tls
        self.requests = []
        self._rules = {}            # path prefix -> stack of [answer, times left]
        self._listeners = []
        self._loop = asyncio.new_event_loop()
        self._server = None
        self._thread = None
        self._connections = set()
        self._numbers = 0

    @property
    def url(self):
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    # -- life -------------------------------------------------------------------

    def start(self):
        if self._thread is None:
            self._thread = threading.Thread(target=self._loop.run_forever,
                                            name="http-receiver", daemon=True)
            self._thread.start()
        self._in_loop(self._listen())
        return self

    def stop(self):
        """Close everything: clients get refused until start()."""
        if self._server:
            self._in_loop(self._shut())

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    # -- rules and records ------------------------------------------------------

    def on(self, path, answer, times=None):
        """From now on answer requests below `path` so, `times` times or for good.

        answer: an Answer, a status, or a function of the Request that returns one."""
        if isinstance(answer, int):
            answer = Answer(answer)
        self._rules.setdefault(path, []).append([answer, times])

    def subscribe(self, function):
        """Call `function(request)` for each request from now on, in the loop."""
        self._listeners.append(function)

    def clear(self):
        """Forget rules, listeners and recorded requests."""
        self._rules.clear()
        self._listeners.clear()
        self.requests = []

    def wait_count(self, count, limit_s, path=""):
        """Wait until `count` requests below `path` are there; returns them."""
        def found():
            return [request for request in self.requests if request.path.startswith(path)]
        wait_until(lambda: len(self.requests) >= count and len(found()) >= count, limit_s,
                   f"{count} requests below {path or '/'}",
                   detail=lambda: f"{len(found())} requests arrived")
        return found()

    def bodies(self):
        """Of all requests, in the order of their arrival."""
        return [request.body.decode() for request in self.requests]

    # -- in the loop --------------------------------------------------------------

    def _in_loop(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(LIMIT_S)

    async def _listen(self):
        if self._server is None:
            self._server = await self._loop.create_server(
                lambda: _Connection(self), "127.0.0.1", self.port, backlog=1024, ssl=self._tls)

    async def _shut(self):
        self._server.close()
        self._server = None
        for connection in list(self._connections):
            connection.transport.abort()

    def _answer_to(self, request):
        self.requests.append(request)
        for listener in self._listeners:
            listener(request)
        matching = [path for path in self._rules if request.path.startswith(path)]
        for path in sorted(matching, key=len, reverse=True):
            stack = self._rules[path]
            while stack and stack[-1][1] == 0:
                stack.pop()
            if stack:
                rule = stack[-1]
                if rule[1] is not None:
                    rule[1] -= 1
                return rule[0](request) if callable(rule[0]) else rule[0]
        return Answer()


class _Connection(asyncio.Protocol):
    """Parses requests one after the other; the next one waits for the answer."""

    def __init__(self, receiver):
        self.receiver = receiver
        self.transport = None
        self._buffer = bytearray()
        self._busy = None           # the task of an answer that takes its time
        self._drained = asyncio.Event()

    def connection_made(self, transport):
        self.transport = transport
        self._drained.set()
        self.receiver._connections.add(self)
        self.receiver._numbers += 1
        self._number = self.receiver._numbers

    def connection_lost(self, _error):
        self.receiver._connections.discard(self)
        self._drained.set()
        if self._busy:
            self._busy.cancel()

    def pause_writing(self):
        self._drained.clear()

    def resume_writing(self):
        self._drained.set()

    def data_received(self, data):
        self._buffer += data
        self._serve()

    def _serve(self):
        while not self._busy and not self.transport.is_closing():
            request = self._next_request()
            if request is None:
                return
            answer = self.receiver._answer_to(request)
            if isinstance(answer, int):
                answer = Answer(answer)
            if answer.after or answer.delay_s or answer.drip_s or answer.endless or answer.never:
                self._busy = asyncio.get_running_loop().create_task(self._take_time(answer))
            else:
                self._reply(answer)

    def _next_request(self):
        """The next whole Request in the buffer, or None."""
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > MAX_HEAD:
                self._bad_request()
            return None
        line, *fields = bytes(self._buffer[:end]).decode("latin-1").split("\r\n")
        headers = {}
        for field in fields:
            name, _, value = field.partition(":")
            headers[name.lower()] = value.strip()
        if headers.get("expect") == "100-continue" and len(self._buffer) == end + 4:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        try:
            method, path, _ = line.split(" ")
            body, used = self._body(headers, end + 4)
        except ValueError:
            self._bad_request()
            return None
        if body is None:
            return None
        del self._buffer[:used]
        return Request(method, path, headers, body, time.time(), self._number)

    def _body(self, headers, start):
        """(body, offset after it), or (None, 0) where it is not all there."""
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return self._chunks(start)
        end = start + int(headers.get("content-length", 0))
        return (bytes(self._buffer[start:end]), end) if len(self._buffer) >= end else (None, 0)

    def _chunks(self, at):
        parts = []
        while True:
            line = self._buffer.find(b"\r\n", at)
            if line < 0:
                return None, 0
            size = int(self._buffer[at:line].split(b";")[0], 16)
            at = line + 2 + size + 2
            if len(self._buffer) < at:
                return None, 0
            if size == 0:           # no trailers: none of our clients sends them
                return b"".join(parts), at
            parts.append(bytes(self._buffer[line + 2:at - 2]))

    def _bad_request(self):
        self._reply(Answer(400, b"not understood", close=True))

    def _head(self, answer, length):
        headers = dict(answer.headers)
        if answer.status >= 200 and answer.status != 204:
            headers.setdefault("Content-Length", length)
        if answer.close:
            headers["Connection"] = "close"
        lines = [f"HTTP/1.1 {answer.status} {_reason(answer.status)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def _reply(self, answer):
        if answer.reset:
            # Lingering for zero seconds makes close() send RST.
            self.transport.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.transport.abort()
        elif answer.hang_up:
            self.transport.close()
        else:
            body = answer.body.encode() if isinstance(answer.body, str) else answer.body
            self.transport.write(self._head(answer, len(body)) + body)
            if answer.close:
                self.transport.close()

    async def _take_time(self, answer):
        while answer.after and not answer.after.is_set():
            await asyncio.sleep(GATE_POLL_S)
        await asyncio.sleep(answer.delay_s)
        if answer.never:
            await asyncio.Event().wait()
        elif answer.endless:
            await self._send_slowly(self._head(answer, 1 << 40), iter(lambda: ENDLESS_CHUNK, None), 0)
        elif answer.drip_s:
            body = answer.body.encode() if isinstance(answer.body, str) else answer.body
            await self._send_slowly(self._head(answer, len(body)),
                                    (body[i:i + 1] for i in range(len(body))), answer.drip_s)
        else:
            self._reply(answer)
        self._busy = None
        self._serve()

    async def _send_slowly(self, head, pieces, pause_s):
        self.transport.write(head)
        for piece in pieces:
            await asyncio.sleep(pause_s)
            await self._drained.wait()
            self.transport.write(piece)


def _reason(status):
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


def main():
    parser = argparse.ArgumentParser(description="Receive HTTP hooks, print them as JSON lines.")
    parser.add_argument("--port", type=int, help="default: a free one")
    options = parser.parse_args()
    receiver = HttpReceiver(options.port)
    receiver.subscribe(lambda request: print(json.dumps(
        {**vars(request), "body": request.body.decode("utf-8", "backslashreplace")}), flush=True))
    with receiver:
        print(f"listening on {receiver.url}", file=sys.stderr, flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    main()
