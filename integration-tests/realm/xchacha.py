# SPDX-License-Identifier: Apache-2.0
"""XChaCha20-Poly1305 (RFC 8439 with the extended nonce) in plain Python: opening only.

For looking into a server's store with its own key, as its thief would. Slow, not constant-time.
"""

import hmac
import struct

_MASK = 0xFFFFFFFF
_CONSTANTS = struct.unpack('<4I', b'expand 32-byte k')
_COLUMNS_AND_DIAGONALS = (
    (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
    (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),
)


def _rounds(state):
    words = list(state)
    for _ in range(10):
        for a, b, c, d in _COLUMNS_AND_DIAGONALS:
            for first, second, third, turn in ((a, b, d, 16), (c, d, b, 12),
                                               (a, b, d, 8), (c, d, b, 7)):
                words[first] = (words[first] + words[second]) & _MASK
                mixed = words[third] ^ words[first]
                words[third] = (mixed << turn | mixed >> (32 - turn)) & _MASK
    return words


def _hchacha20(key, nonce16):
    words = _rounds(_CONSTANTS + struct.unpack('<8I', key) + struct.unpack('<4I', nonce16))
    return struct.pack('<8I', *words[:4], *words[12:])


def _chacha20_block(key, counter, nonce12):
    state = (_CONSTANTS + struct.unpack('<8I', key) + (counter,) + struct.unpack('<3I', nonce12))
    words = _rounds(state)
    return struct.pack('<16I', *((a + b) & _MASK for a, b in zip(words, state)))


def _poly1305(key, message):
    r = int.from_bytes(key[:16], 'little') & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    total = 0
    for at in range(0, len(message), 16):
        total += int.from_bytes(message[at:at + 16] + b'\x01', 'little')
        total = total * r % ((1 << 130) - 5)
    return ((total + int.from_bytes(key[16:], 'little')) % (1 << 128)).to_bytes(16, 'little')


def _padded(data):
    return data + bytes(-len(data) % 16)


def xchacha20poly1305_open(key, nonce, sealed, additional):
    """The plaintext, or None when the key, the nonce, the data or the additional data is another."""
    subkey, short_nonce = _hchacha20(key, nonce[:16]), bytes(4) + nonce[16:]
    cipher, tag = sealed[:-16], sealed[-16:]
    signed = (_padded(additional) + _padded(cipher)
              + struct.pack('<QQ', len(additional), len(cipher)))
    expected = _poly1305(_chacha20_block(subkey, 0, short_nonce)[:32], signed)
    if not hmac.compare_digest(tag, expected):
        return None
    plain = b''
    for number, at in enumerate(range(0, len(cipher), 64), 1):
        stream = _chacha20_block(subkey, number, short_nonce)
        plain += bytes(a ^ b for a, b in zip(cipher[at:at + 64], stream))
    return plain
