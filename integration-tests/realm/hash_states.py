# SPDX-License-Identifier: Apache-2.0
"""The compression functions of SHA-1, SHA-256 and SHA-384 (FIPS 180-4) and the states of an HMAC.

hashlib does not show a hash's state, and the states of HMAC under Ki or Kc are secrets like the key
itself: whoever has them can finish any HMAC. Written apart from the C++ code, checked against hashlib.
"""

import math


def _primes(count):
    found = []
    number = 2
    while len(found) < count:
        if all(number % prime for prime in found):
            found.append(number)
        number += 1
    return found


def _cube_root(value):
    low, high = 0, 1 << (value.bit_length() // 3 + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle ** 3 <= value else (low, middle)
    return low


def _fraction_of_square_root(number, bits):
    return math.isqrt(number << 2 * bits) & ((1 << bits) - 1)


def _fraction_of_cube_root(number, bits):
    return _cube_root(number << 3 * bits) & ((1 << bits) - 1)


class _Sha2:
    def __init__(self, bits, rounds, first_primes, big, small):
        self.bits, self.rounds, self.big, self.small = bits, rounds, big, small
        self.block_bytes = 2 * bits
        self.first = [_fraction_of_square_root(prime, bits) for prime in first_primes]
        self.constants = [_fraction_of_cube_root(prime, bits) for prime in _primes(rounds)]

    def _turn(self, word, by):
        return (word >> by | word << (self.bits - by)) & ((1 << self.bits) - 1)

    def _sums(self, word, amounts):
        return (self._turn(word, amounts[0]) ^ self._turn(word, amounts[1])
                ^ self._turn(word, amounts[2]))

    def _spread(self, word, amounts):
        return self._turn(word, amounts[0]) ^ self._turn(word, amounts[1]) ^ word >> amounts[2]

    def compress(self, state, block):
        mask, size = (1 << self.bits) - 1, self.bits // 8
        words = [int.from_bytes(block[i:i + size], 'big') for i in range(0, 16 * size, size)]
        for t in range(16, self.rounds):
            words.append((self._spread(words[t - 2], self.small[1]) + words[t - 7]
                          + self._spread(words[t - 15], self.small[0]) + words[t - 16]) & mask)
        a, b, c, d, e, f, g, h = state
        for constant, word in zip(self.constants, words):
            first = h + self._sums(e, self.big[1]) + (e & f ^ ~e & g & mask) + constant + word
            second = self._sums(a, self.big[0]) + (a & b ^ a & c ^ b & c)
            a, b, c, d, e, f, g, h = ((first + second) & mask, a, b, c, (d + first) & mask, e, f, g)
        return [(x + y) & mask for x, y in zip(state, (a, b, c, d, e, f, g, h))]


class _Sha1:
    bits, block_bytes = 32, 64
    first = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0]

    @staticmethod
    def _turn(word, by):
        return (word << by | word >> (32 - by)) & 0xffffffff

    def compress(self, state, block):
        words = [int.from_bytes(block[i:i + 4], 'big') for i in range(0, 64, 4)]
        for t in range(16, 80):
            words.append(self._turn(words[t - 3] ^ words[t - 8] ^ words[t - 14] ^ words[t - 16], 1))
        a, b, c, d, e = state
        for t, word in enumerate(words):
            mixed, constant = (
                (b & c ^ ~b & 0xffffffff & d, 0x5a827999), (b ^ c ^ d, 0x6ed9eba1),
                (b & c ^ b & d ^ c & d, 0x8f1bbcdc), (b ^ c ^ d, 0xca62c1d6))[t // 20]
            a, b, c, d, e = ((self._turn(a, 5) + mixed + e + constant + word) & 0xffffffff, a,
                             self._turn(b, 30), c, d)
        return [(x + y) & 0xffffffff for x, y in zip(state, (a, b, c, d, e))]


HASHES = {
    'sha1': _Sha1(),
    'sha256': _Sha2(32, 64, _primes(8), ((2, 13, 22), (6, 11, 25)), ((7, 18, 3), (17, 19, 10))),
    'sha384': _Sha2(64, 80, _primes(16)[8:], ((28, 34, 39), (14, 18, 41)),
                    ((1, 8, 7), (19, 61, 6))),
}


def state_after(name, block):
    """The state after a first block, as big-endian bytes."""
    function = HASHES[name]
    state = function.compress(function.first, block)
    return b''.join(word.to_bytes(function.bits // 8, 'big') for word in state)


def hmac_states(name, key):
    """After key ^ ipad and after key ^ opad: 20, 32 or 64 bytes each."""
    size = HASHES[name].block_bytes
    key = key.ljust(size, b'\0')
    return tuple(state_after(name, bytes(byte ^ pad for byte in key)) for pad in (0x36, 0x5c))
