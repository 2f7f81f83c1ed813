"""A Kafka broker that says in its metadata that it is to be reached elsewhere, and knows every topic.

Speaks just enough for a producer to go there: ApiVersions 0, Metadata 0 to 4, InitProducerId 0.
"""

import socket
import struct
import threading

PRODUCE, METADATA, API_VERSIONS, INIT_PRODUCER_ID = 0, 3, 18, 22


class StrayKafka:
    def __init__(self, host, port=9092):
        self._elsewhere = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.bootstrap = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection, connection.makefile("rb") as stream:
            while len(head := stream.read(4)) == 4:
                request = stream.read(struct.unpack(">i", head)[0])
                api, version, correlation, name = struct.unpack_from(">hhih", request)
                answer = self._answer(api, version, request[10 + max(name, 0):])
                connection.sendall(struct.pack(">ii", 4 + len(answer), correlation) + answer)

    def _answer(self, api, version, body):
        if api == API_VERSIONS:
            known = ((PRODUCE, 0, 7), (METADATA, 0, 4), (API_VERSIONS, 0, 0), (INIT_PRODUCER_ID, 0, 0))
            return struct.pack(">hi", 35 if version else 0, len(known)) + b"".join(
                struct.pack(">hhh", *one) for one in known)
        if api == INIT_PRODUCER_ID:
            return struct.pack(">ihqh", 0, 0, 1, 0)
        assert api == METADATA, api
        return self._metadata(version, body)

    def _metadata(self, version, body):
        host, port = self._elsewhere
        count = struct.unpack_from(">i", body)[0]
        names, at = [], 4
        for _ in range(max(count, 0)):
            size = struct.unpack_from(">h", body, at)[0]
            names.append(body[at + 2:at + 2 + size])
            at += 2 + size
        out = struct.pack(">i", 0) if version >= 3 else b""
        out += struct.pack(">iih", 1, 1, len(host)) + host.encode() + struct.pack(">i", port)
        out += struct.pack(">h", -1) if version >= 1 else b""  # rack
        out += struct.pack(">h", -1) if version >= 2 else b""  # cluster
        out += struct.pack(">i", 1) if version >= 1 else b""  # controller
        out += struct.pack(">i", len(names))
        for name in names:
            out += struct.pack(">hh", 0, len(name)) + name
            out += struct.pack(">b", 0) if version >= 1 else b""
            out += struct.pack(">i hii ii ii", 1, 0, 0, 1, 1, 1, 1, 1)
        return out
