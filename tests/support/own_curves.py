"""Certificates with an elliptic curve of their own, which cost whoever parses them much, and a server of them."""

import struct


def tlv(tag, *parts):
    content = b"".join(parts)
    size = len(content)
    length = bytes([size]) if size < 128 else bytes([0x82]) + size.to_bytes(2, "big")
    return bytes([tag]) + length + content


def integer(value):
    return tlv(2, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def own_curve_certificate():
    """A certificate whose curve is written out, over a prime for which a square root, which its compressed points
    need, takes as long as it can. Neither the curve nor the signature is one: nobody gets as far as that."""
    prime = 903 * 2**648 + 1
    size = (prime.bit_length() + 7) // 8
    ecdsa, common_name = tlv(6, bytes.fromhex("2a8648ce3d040302")), tlv(6, bytes.fromhex("550403"))
    public_key, prime_field = tlv(6, bytes.fromhex("2a8648ce3d0201")), tlv(6, bytes.fromhex("2a8648ce3d0101"))

    def point():
        x = next(x for x in range(2, 1000) if pow(x**3 + x + 1, (prime - 1) // 2, prime) == 1)
        return b"\2" + x.to_bytes(size, "big")

    one = (1).to_bytes(size, "big")
    curve = tlv(0x30, integer(1), tlv(0x30, prime_field, integer(prime)),
                tlv(0x30, tlv(4, one), tlv(4, one)), tlv(4, point()), integer(prime + 2), integer(1))
    name = tlv(0x30, tlv(0x31, tlv(0x30, common_name, tlv(12, b"localhost"))))
    body = tlv(0x30, tlv(0xA0, integer(2)), integer(1), tlv(0x30, ecdsa), name,
               tlv(0x30, tlv(0x17, b"200101000000Z"), tlv(0x17, b"491231000000Z")), name,
               tlv(0x30, tlv(0x30, public_key, curve), tlv(3, b"\0", point())))
    return tlv(0x30, body, tlv(0x30, ecdsa), tlv(3, b"\0", tlv(0x30, integer(1), integer(1))))


def own_curves(count):
    """TLS 1.2 as far as the endpoint's certificates, as anybody on the way could write it."""
    one = own_curve_certificate()
    chain = (len(one).to_bytes(3, "big") + one) * count
    suite, extensions = b"\xc0\x2b", b"\xff\1\0\1\0"        # ECDHE-ECDSA-AES128-GCM-SHA256, renegotiation_info
    hello = b"\3\3" + bytes(32) + b"\0" + suite + b"\0" + len(extensions).to_bytes(2, "big") + extensions

    def serve(connection, _number):
        connection.recv(16384)
        for kind, body in ((2, hello), (11, len(chain).to_bytes(3, "big") + chain)):
            message = bytes([kind]) + len(body).to_bytes(3, "big") + body
            for at in range(0, len(message), 16384):
                piece = message[at:at + 16384]
                connection.sendall(b"\x16\3\3" + struct.pack(">H", len(piece)) + piece)
        connection.recv(100)

    return serve
