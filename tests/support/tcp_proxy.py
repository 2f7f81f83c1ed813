"""A TCP proxy that breaks connections the way networks do.

Put it between duebox and a server, then:

    proxy.drop()        close everything, refuse new connections (server gone)
    proxy.reset()       send RST on every connection; new ones are served
    proxy.blackhole()   keep connections, take new ones, pass nothing on
    proxy.deafen()      as a black hole for the connections that are open now; new ones are served
    proxy.deafen_at(b)  the same for one connection, as soon as these bytes have gone to the server
    proxy.trickle_at(b) the server's answer to these bytes, on one connection, is a byte now and then without end
    proxy.slow_at(b, n, s) that connection gets its answers, from that to these bytes on, in n bytes each s seconds
    proxy.rewrite(a, b) bytes on their way to the server, from now on
    proxy.delay(ms)     each direction is late by `ms`, at full throughput
    proxy.restore()     pass on again, with what a black hole held back
    proxy.retarget(port) new connections go to another server: the virtual IP that moves

With several target ports each connection takes the next one, as behind a balancer.

One event loop in one daemon thread; the verbs may be called from any thread and
have taken effect when they return.
"""

import asyncio
import itertools
import socket
import struct
import threading
import time

from .servers.ports import free_port

CHUNK = 64 * 1024
LIMIT_S = 60
ENDLESS = b"\xff\xff\x00\x01"      # the head of the first packet of an answer, which says that 64 KiB follow


class TcpProxy:
    """Listens on 127.0.0.1:`port`, passes on to `host`:`target_port`, a number or several in turn."""

    def __init__(self, target_port, host="127.0.0.1"):
        ports = [target_port] if isinstance(target_port, int) else target_port
        self._targets = itertools.cycle([(host, port) for port in ports])
        self._delay_s = 0.0
        self._pipes = set()         # the stream writers of all open connections
        self._trickling = set()
        self._hearing = set()       # an event for each connection that is not deaf
        self._deaf_at = None
        self.deafened = threading.Event()
        self._trickle_at = None
        self.trickles = threading.Event()
        self._slow_at = None
        self.slowed = threading.Event()
        self._rewritten = []
        self._server = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tcp-proxy", daemon=True)
        self._thread.start()
        self.port = free_port()
        self._in_loop(self._start())

    # -- verbs ----------------------------------------------------------------

    @property
    def connections(self):
        """Number of client connections that are open now."""
        return len(self._pipes) // 2

    def drop(self):
        self._in_loop(self._drop())

    def reset(self):
        self._in_loop(self._break_all(reset=True))

    def blackhole(self):
        self._call(self._open.clear)

    def deafen(self):
        self._call(self._deafen)

    def deafen_at(self, data):
        self.deafened.clear()
        self._deaf_at = data

    def trickle_at(self, data):
        """Of MariaDB's or MySQL's protocol."""
        self.trickles.clear()
        self._trickle_at = data

    def slow_at(self, data, count, pause_s):
        self.slowed.clear()
        self._slow_at = data, count, pause_s

    def rewrite(self, old, new):
        assert len(old) == len(new), "packets say how long they are"
        self._rewritten.append((old, new))

    def delay(self, ms):
        self._delay_s = ms / 1000

    def restore(self):
        self._delay_s = 0.0
        self._call(self._open.set)
        self._in_loop(self._listen())

    def retarget(self, target_port):
        self._targets = itertools.cycle([("127.0.0.1", target_port)])

    def stop(self):
        if self._thread.is_alive():
            self._in_loop(self._finish())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(LIMIT_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    # -- in the loop ------------------------------------------------------------

    def _in_loop(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(LIMIT_S)

    def _call(self, function):
        async def call():
            function()
        self._in_loop(call())

    async def _start(self):
        self._open = asyncio.Event()    # set while data may pass
        self._open.set()
        await self._listen()

    async def _listen(self):
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def _drop(self):
        if self._server:
            self._server.close()
            self._server = None
        await self._break_all(reset=False)

    async def _finish(self):
        await self._drop()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    async def _break_all(self, reset):
        for pipe in list(self._pipes):
            if reset:
                # Lingering for zero seconds makes close() send RST.
                pipe.get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            pipe.transport.abort()

    def _deafen(self):
        for hears in self._hearing:
            hears.clear()
        self._hearing.clear()

    def _to_server(self, hears, pace, client_writer, data):
        """What the server gets of it; the connection may be deaf, or hear nothing of use, from then on."""
        for old, new in self._rewritten:
            data = data.replace(old, new)
        if self._deaf_at and self._deaf_at in data:
            self._deaf_at = None
            self._hearing.discard(hears)
            hears.clear()
            self.deafened.set()
        if self._slow_at and self._slow_at[0] in data:
            pace[:] = self._slow_at[1:]
            self._slow_at = None
            self.slowed.set()
        if self._trickle_at and self._trickle_at in data:
            self._trickle_at = None
            self._hearing.discard(hears)
            hears.clear()
            self._trickling.add(asyncio.create_task(self._trickle(client_writer)))
        return data

    async def _trickle(self, client_writer):
        client_writer.write(ENDLESS)
        self.trickles.set()
        while not client_writer.is_closing():
            client_writer.write(b"x")
            await asyncio.sleep(0.3)

    async def _serve(self, client_reader, client_writer):
        self._pipes.add(client_writer)
        server_writer = None
        hears = asyncio.Event()
        hears.set()
        self._hearing.add(hears)
        pace = []       # of what the client gets: nothing, or how many bytes and how long a pause
        try:
            server_reader, server_writer = await asyncio.open_connection(*next(self._targets))
            self._pipes.add(server_writer)
            await asyncio.gather(self._pass_on(client_reader, server_writer, hears, pace, client_writer),
                                 self._pass_on(server_reader, client_writer, hears, pace))
            for pipe in (client_writer, server_writer):
                pipe.close()
        except OSError:             # one end broke, or was never there: break the other
            for pipe in filter(None, (client_writer, server_writer)):
                pipe.transport.abort()
        finally:
            self._pipes -= {client_writer, server_writer}
            self._hearing.discard(hears)

    async def _write_slowly(self, writer, data, count, pause_s):
        for at in range(0, len(data), count):
            writer.write(data[at:at + count])
            await writer.drain()
            await asyncio.sleep(pause_s)

    async def _pass_on(self, reader, writer, hears, pace, client_writer=None):
        """One direction, to its end; client_writer: towards the server.  The queue lets many chunks be late at once."""
        late = asyncio.Queue(maxsize=1000)
        taking = asyncio.create_task(self._take(reader, late))
        try:
            while True:
                due, data = await late.get()
                await asyncio.sleep(max(0, due - time.monotonic()))
                await self._open.wait()
                await hears.wait()
                if client_writer and data:
                    data = self._to_server(hears, pace, client_writer, data)
                if data is None:
                    raise ConnectionResetError
                if not data:
                    break
                if pace and not client_writer:
                    await self._write_slowly(writer, data, *pace)
                else:
                    writer.write(data)
                    await writer.drain()
            writer.write_eof()
        finally:
            taking.cancel()

    async def _take(self, reader, late):
        """Queue (when due, data) up to the end (b"") or the break (None)."""
        data = None
        while data != b"":
            try:
                data = await reader.read(CHUNK)
            except OSError:
                data = None
            await late.put((time.monotonic() + self._delay_s, data))
            if data is None:
                break
