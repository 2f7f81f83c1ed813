"""A Kafka producer that writes what no client writes: batches byte by byte (Produce 8, RecordBatch of magic 2)."""

import gzip
import socket
import struct
import time

PRODUCE = 0
GZIP, ZSTD = 1, 4


def _table():
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ 0x82F63B78 if value & 1 else value >> 1
        yield value


_CRC = tuple(_table())


def _crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _varint(number):
    number = ((number << 1) ^ (number >> 63)) & 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def record(value, delta=0, key_length=-1, value_length=None):
    """A record that says it is `delta` behind the first of its batch, and that key and value are so long."""
    length = len(value) if value_length is None else value_length
    body = b"\0\0" + _varint(delta) + _varint(key_length) + _varint(length) + value + _varint(0)
    return _varint(len(body)) + body


def batch(records, count=1, codec=0):
    now = int(time.time() * 1000)
    tail = struct.pack(">hiqqqhii", codec, count - 1, now, now, -1, -1, -1, count) + records
    return struct.pack(">qiibI", 0, 9 + len(tail), -1, 2, _crc32c(tail)) + tail


def gzip_members(*parts):
    """A batch of one record whose parts are packed each for itself, one behind the other."""
    return batch(b"".join(gzip.compress(part) for part in parts), 1, GZIP)


def zstd_zeros(count, size):
    """A batch of so many records of so many zeros (below 128 KiB), as small as zstd can have it: a frame of raw blocks,
    and of blocks that repeat one byte."""
    frame = bytearray(struct.pack("<IBB", 0xFD2FB528, 0, 0x50))  # window of 1 MiB, the size of the content is not said
    for i in range(count):
        head = record(b"\0" * size, i)[:-size - 1]
        for kind, length, content in ((0, len(head), head), (1, size + 1, b"\0")):
            last = i == count - 1 and kind == 1
            frame += struct.pack("<I", length << 3 | kind << 1 | last)[:3] + content
    return batch(bytes(frame), count, ZSTD)


def _text(text):
    return struct.pack(">h", len(text)) + text.encode()


class RawProducer:
    def __init__(self, port):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._stream = self._socket.makefile("rb")

    def close(self):
        self._stream.close()
        self._socket.close()

    def write(self, topic, content, partition=0):
        """Writes a batch; returns the offset of its first record."""
        request = (struct.pack(">hhi", PRODUCE, 8, 1) + _text("stranger") + struct.pack(">hhii", -1, -1, 60000, 1)
                   + _text(topic) + struct.pack(">iii", 1, partition, len(content)) + content)
        self._socket.sendall(struct.pack(">i", len(request)) + request)
        answer = self._stream.read(struct.unpack(">i", self._stream.read(4))[0])
        _, error, first = struct.unpack_from(">ihq", answer, 4 + 4 + 2 + len(topic) + 4)
        assert error == 0, error
        return first
