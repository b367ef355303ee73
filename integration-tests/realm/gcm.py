# SPDX-License-Identifier: Apache-2.0
"""The GCM enctypes in plain Python (mpc-server/doc/enctype.md, SP 800-38D), and what an attacker
does with two tags of one nonce.

A message is
nonce (12) | header length (1) | header | ciphertext of (16 zero bytes | text) | tag (16).
"""

import os

import keys

_R = 0xE1 << 120
ZERO_BLOCK = bytes(16)


def xor(left, right):
    return bytes(a ^ b for a, b in zip(left, right))


# GF(2^128), GCM's bit order ---------------------------------------------------------------------

def multiply(left, right):
    product, power = 0, right
    for bit in range(127, -1, -1):
        if left >> bit & 1:
            product ^= power
        power = power >> 1 ^ (_R if power & 1 else 0)
    return product


ONE = 1 << 127


def power(value, exponent):
    out = ONE
    while exponent:
        if exponent & 1:
            out = multiply(out, value)
        value = multiply(value, value)
        exponent >>= 1
    return out


def inverse(value):
    return power(value, 2**128 - 2)


def square_root(value):
    return power(value, 2**127)


# Messages ---------------------------------------------------------------------------------------

def _padded(data):
    return data + bytes(-len(data) % 16)


def additional_data(header):
    return bytes([len(header)]) + header


def ghash(h, header, ciphertext):
    aad = additional_data(header)
    blocks = (_padded(aad) + _padded(ciphertext) + (8 * len(aad)).to_bytes(8, 'big')
              + (8 * len(ciphertext)).to_bytes(8, 'big'))
    out = 0
    for at in range(0, len(blocks), 16):
        out = multiply(out ^ int.from_bytes(blocks[at:at + 16], 'big'), h)
    return out.to_bytes(16, 'big')


def join(nonce, header, ciphertext, tag):
    return nonce + additional_data(header) + ciphertext + tag


def split(message):
    """(nonce, header, ciphertext, tag)"""
    start = 13 + message[12]
    return message[:12], message[13:start], message[start:-16], message[-16:]


def keystream(round_keys, nonce, size):
    """Of the ciphertext, from its zero block on."""
    blocks = (keys.aes_encrypt(round_keys, nonce + number.to_bytes(4, 'big'))
              for number in range(2, 2 + -(-size // 16)))
    return b''.join(blocks)[:size]


def seal(usage_key, text, nonce=None, header=b''):
    """What a client makes with its own key."""
    nonce = nonce or os.urandom(12)
    round_keys = keys.aes_round_keys(usage_key)
    plain = ZERO_BLOCK + text
    ciphertext = xor(plain, keystream(round_keys, nonce, len(plain)))
    h = int.from_bytes(keys.aes_encrypt(round_keys, ZERO_BLOCK), 'big')
    mask = keys.aes_encrypt(round_keys, nonce + (1).to_bytes(4, 'big'))
    return join(nonce, header, ciphertext, xor(ghash(h, header, ciphertext), mask))


# The forbidden attack (Joux): two tags under one nonce --------------------------------------------

def recover_tag_key(header, first, first_tag, second, second_tag):
    """(H, mask of the nonce) from the tags of two ciphertexts that differ in the last block alone.

    Both lengths are the same multiple of 16, so the last block is multiplied by H squared."""
    difference = int.from_bytes(xor(first[-16:], second[-16:]), 'big')
    tags = int.from_bytes(xor(first_tag, second_tag), 'big')
    h = square_root(multiply(tags, inverse(difference)))
    return h, xor(first_tag, ghash(h, header, first))
