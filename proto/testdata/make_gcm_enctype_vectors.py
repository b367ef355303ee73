# SPDX-License-Identifier: Apache-2.0
"""Writes gcm_enctype_vectors.json: vectors of the enctypes aes128-gcm and aes256-gcm.

This is a third implementation, kept apart from the one in the krb5 patches and the one in
mpc-server, both of which are tested against the file it writes. Primitives (AES, AES-GCM, PBKDF2,
SHA-256) are those of the PyPI package `cryptography`; n-fold, key derivation and the message
layout are written here from RFC 3961, RFC 3962 and mpc-server/doc/enctype.md.

    python3 -m venv venv && venv/bin/pip install cryptography
    venv/bin/python make_gcm_enctype_vectors.py > gcm_enctype_vectors.json

With --check FILE nothing is written: the exit code says whether FILE is what would be written.
With --c the same vectors come out as the C tables of the krb5 test program.

All bytes are hexadecimal in the output; `name` and `why` are text for people.
"""

import argparse
import hashlib
import json
import math
import sys

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

AES128_GCM = -24001
AES256_GCM = -24002
KEY_SIZE = {AES128_GCM: 16, AES256_GCM: 32}
GCM_BYTE = 0x47
ZERO_BLOCK = bytes(16)


# ---- Primitives ----------------------------------------------------------------------------------

def aes_block(key, block):
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    return encryptor.update(block) + encryptor.finalize()


def n_fold(data, size):
    """RFC 3961 section 5.1: copies, each rotated 13 bits further, added in ones' complement."""
    bits = len(data) * 8
    number = int.from_bytes(data, "big")
    total_bytes = math.lcm(len(data), size)
    stream = b""
    for copy in range(total_bytes // len(data)):
        turn = 13 * copy % bits
        rotated = (number >> turn | number << (bits - turn)) & ((1 << bits) - 1)
        stream += rotated.to_bytes(len(data), "big")
    modulus = (1 << size * 8) - 1  # ones' complement addition is addition modulo 2^n - 1
    total = sum(int.from_bytes(stream[i:i + size], "big") for i in range(0, total_bytes, size))
    while total > modulus:
        total = (total & modulus) + (total >> size * 8)
    return total.to_bytes(size, "big")


def derive_key(base, constant):
    """DK of RFC 3961 for AES: chained block encryptions of the folded constant."""
    block, out = n_fold(constant, 16), b""
    while len(out) < len(base):
        block = aes_block(base, block)
        out += block
    return out[:len(base)]


def string_to_key(enctype, password, salt, iterations):
    temporary = hashlib.pbkdf2_hmac("sha1", password, salt, iterations, KEY_SIZE[enctype])
    return derive_key(temporary, b"kerberos")


# ---- The enctype ---------------------------------------------------------------------------------

def usage_constant(usage):
    return usage.to_bytes(4, "big") + bytes([GCM_BYTE])


def usage_key(base, usage):
    return derive_key(base, usage_constant(usage))


def seal(base, usage, nonce, header, plaintext, zero_block=ZERO_BLOCK):
    associated = bytes([len(header)]) + header
    return nonce + associated + AESGCM(usage_key(base, usage)).encrypt(
        nonce, zero_block + plaintext, associated)


def open_message(base, usage, message):
    """Returns (header, plaintext) or None."""
    if len(message) < 12 + 1 + 16 + 16 or len(message) < 12 + 1 + message[12] + 16 + 16:
        return None
    associated = message[12:13 + message[12]]
    try:
        opened = AESGCM(usage_key(base, usage)).decrypt(
            message[:12], message[12 + len(associated):], associated)
    except InvalidTag:
        return None
    if opened[:16] != ZERO_BLOCK:
        return None
    return associated[1:], opened[16:]


def gmac(base, usage, nonce, data):
    return nonce + AESGCM(usage_key(base, usage)).encrypt(nonce, b"", data)


def pseudo_random(base, data):
    return aes_block(derive_key(base, b"prf" + bytes([GCM_BYTE])),
                     hashlib.sha256(data).digest()[:16])


# ---- Inputs: counting bytes and hashes, so that anyone can retype them ---------------------------

def pattern(name, size):
    blocks = (hashlib.sha256(f"{name} {i}".encode()).digest() for i in range(size // 32 + 1))
    return b"".join(blocks)[:size]


def base_key(enctype):
    return bytes(range(KEY_SIZE[enctype]))


def server_nonce(seconds, cluster, sequence):
    return seconds.to_bytes(4, "big") + cluster.to_bytes(2, "big") + sequence.to_bytes(6, "big")


def principal_id(name):
    return hashlib.sha256(b"mpc-kdc principal v1\0" + name.encode()).digest()[:16]


def tgt_header(name, origin_time, renewable_cap, job):
    return (bytes([1]) + principal_id(name) + origin_time.to_bytes(4, "big")
            + renewable_cap.to_bytes(4, "big") + job.to_bytes(8, "big"))


TGT_HEADER = tgt_header("alice@EXAMPLE.COM", 1700000000, 1700604800, 42)

# RFC 3962 appendix B. The keys there are AES keys and hold for these enctypes unchanged.
RFC3962 = [
    (1, b"password", b"ATHENA.MIT.EDUraeburn",
     "42263c6e89f4fc28b8df68ee09799f15",
     "fe697b52bc0d3ce14432ba036a92e65bbb52280990a2fa27883998d72af30161"),
    (2, b"password", b"ATHENA.MIT.EDUraeburn",
     "c651bf29e2300ac27fa469d693bdda13",
     "a2e16d16b36069c135d5e9d2e25f896102685618b95914b467c67622225824ff"),
    (1200, b"password", b"ATHENA.MIT.EDUraeburn",
     "4c01cd46d632d01e6dbe230a01ed642a",
     "55a6ac740ad17b4846941051e1e8b0a7548d93b0ab30a8bc3ff16280382b8c2a"),
    (5, b"password", bytes.fromhex("1234567878563412"),
     "e9b23d52273747dd5c35cb55be619d8e",
     "97a4e786be20d81a382d5ebc96d5909cabcdadc87ca48f574504159f16c36e31"),
    (1200, b"X" * 64, b"pass phrase equals block size",
     "59d1bb789a828b1aa54ef9c2883f69ed",
     "89adee3608db8bc71f1bfbfe459486b05618b70cbae22092534e56c553ba4b34"),
    (1200, b"X" * 65, b"pass phrase exceeds block size",
     "cb8005dc5f90179a7f02104c0018751d",
     "d78c5c9cb872a8c9dad4697f0bb5b2d21496c82beb2caeda2112fceea057401b"),
    (50, "\U0001d11e".encode(), b"EXAMPLE.COMpianist",
     "f149c1f2e154a73452d43e7fe62a56e5",
     "4b6d9839f84406df1f09cc166db4b83c571848b784a3d6bdc346589a3e393f9e"),
]


# ---- The lists -----------------------------------------------------------------------------------

def row(**fields):
    """A vector: bytes become hexadecimal."""
    return {name: value.hex() if isinstance(value, bytes) else value
            for name, value in fields.items()}


# The test cases with 96-bit nonces of McGrew and Viega's GCM submission to NIST, which SP 800-38D
# refers to: (case, key, nonce, aad, plaintext, tag).
GCM_KEY = "feffe9928665731c6d6a8f9467308308"
GCM_NONCE = "cafebabefacedbaddecaf888"
GCM_AAD = "feedfacedeadbeeffeedfacedeadbeefabaddad2"
GCM_TEXT = ("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
            "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255")
GCM_CASES = [
    (1, "00" * 16, "00" * 12, "", "", "58e2fccefa7e3061367f1d57a4e7455a"),
    (2, "00" * 16, "00" * 12, "", "00" * 16, "ab6e47d42cec13bdf53a67b21257bddf"),
    (3, GCM_KEY, GCM_NONCE, "", GCM_TEXT, "4d5c2af327cd64a62cf35abd2ba6fab4"),
    (4, GCM_KEY, GCM_NONCE, GCM_AAD, GCM_TEXT[:120], "5bc94fbc3221a5db94fae95ae7121a47"),
    (13, "00" * 32, "00" * 12, "", "", "530f8afbc74536b9a963b4f1c4cb738b"),
    (14, "00" * 32, "00" * 12, "", "00" * 16, "d0d1c8a799996bf0265b98b5d48ab919"),
    (15, GCM_KEY * 2, GCM_NONCE, "", GCM_TEXT, "b094dac5d93471bdec1a502270e3cc6c"),
    (16, GCM_KEY * 2, GCM_NONCE, GCM_AAD, GCM_TEXT[:120], "76fc6ece0f4e1768cddf8853bb2d551b"),
]


def gcm_vectors():
    for case, *inputs, tag in GCM_CASES:
        key, nonce, aad, plaintext = map(bytes.fromhex, inputs)
        sealed = AESGCM(key).encrypt(nonce, plaintext, aad)
        assert sealed[-16:].hex() == tag
        yield row(name=f"GCM test case {case}", key=key, nonce=nonce, aad=aad,
                  plaintext=plaintext, ciphertext=sealed[:-16], tag=tag)


def string_to_key_vectors():
    def vector(enctype, password, salt, iterations):
        return row(enctype=enctype, password=password, salt=salt, iterations=iterations,
                   key=string_to_key(enctype, password, salt, iterations))

    for iterations, password, salt, *keys in RFC3962:
        for enctype, key in zip(KEY_SIZE, keys):
            published = vector(enctype, password, salt, iterations)
            assert published["key"] == key
            yield published
    for enctype in KEY_SIZE:  # the default count, with no parameters sent
        yield vector(enctype, b"correct horse", b"EXAMPLE.COMalice", 4096)


def usage_key_vectors():
    for enctype in KEY_SIZE:
        for usage in (1, 2, 3, 17, 56, 0x01020304):
            constant, key = usage_constant(usage), usage_key(base_key(enctype), usage)
            yield row(enctype=enctype, base=base_key(enctype), usage=usage, constant=constant,
                      folded=n_fold(constant, 16), key=key, h=aes_block(key, ZERO_BLOCK))


def prf_vectors():
    for enctype in KEY_SIZE:
        for data in (b"", b"a", b"FRIDAY the 13th", pattern("prf", 100)):
            yield row(enctype=enctype, base=base_key(enctype), input=data,
                      output=pseudo_random(base_key(enctype), data))


MESSAGES = [
    # name, usage, nonce, header, plaintext
    ("empty plaintext", 1, pattern("nonce 0", 12), b"", b""),
    ("one byte", 1, pattern("nonce 1", 12), b"", b"\x2a"),
    ("one block", 3, server_nonce(1700000000, 1, 1), b"", pattern("block", 16)),
    ("a block and a byte", 3, server_nonce(1700000000, 1, 2), b"", pattern("block and byte", 17)),
    ("size of a PA-ENC-TS-ENC", 1, pattern("nonce 2", 12), b"", pattern("timestamp", 28)),
    ("size of a TGT, with TGT header", 2, server_nonce(1700000000, 1, 3), TGT_HEADER,
     pattern("ticket", 166)),
    ("size of an AS reply", 3, server_nonce(1700000000, 1, 4), b"", pattern("reply", 279)),
    ("header of one byte", 2, server_nonce(1700000000, 1, 5), b"\xff", pattern("short header", 5)),
    ("header of 15 bytes: one block with its length", 2, server_nonce(1700000000, 1, 6),
     pattern("header 15", 15), pattern("text", 31)),
    ("header of 16 bytes", 2, server_nonce(1700000000, 1, 7), pattern("header 16", 16),
     pattern("text", 32)),
    ("longest header", 2, server_nonce(1700000000, 1, 8), pattern("header 255", 255),
     pattern("text", 48)),
    ("header, empty plaintext", 2, server_nonce(1700000000, 1, 9), TGT_HEADER, b""),
    ("long plaintext", 7, pattern("nonce 3", 12), b"", pattern("long", 4099)),
    ("usage above 2^24", 0x01020304, pattern("nonce 4", 12), b"", pattern("high usage", 40)),
    ("nonce of all ones", 1, b"\xff" * 12, b"", pattern("ones", 33)),
]


def message_vectors():
    for enctype in KEY_SIZE:
        base = base_key(enctype)
        for name, usage, nonce, header, plaintext in MESSAGES:
            message = seal(base, usage, nonce, header, plaintext)
            assert open_message(base, usage, message) == (header, plaintext)
            yield row(name=name, enctype=enctype, base=base, usage=usage, nonce=nonce,
                      header=header, plaintext=plaintext, message=message)


def flip(data, position):
    changed = bytearray(data)
    changed[position] ^= 1
    return bytes(changed)


def bad_messages_of(enctype):
    base, usage, nonce = base_key(enctype), 2, server_nonce(1700000000, 1, 10)
    plaintext = pattern("bad", 50)
    good = seal(base, usage, nonce, TGT_HEADER, plaintext)
    plain = seal(base, usage, nonce, b"", plaintext)
    minimal = seal(base, usage, nonce, b"", b"")
    header_end = 13 + len(TGT_HEADER)
    yield "wrong tag, first byte", usage, flip(good, len(good) - 16)
    yield "wrong tag, last byte", usage, flip(good, len(good) - 1)
    yield "tag of zeros", usage, good[:-16] + bytes(16)
    yield "ciphertext changed", usage, flip(good, header_end + 20)
    yield "encrypted zero block changed", usage, flip(good, header_end + 3)
    yield "nonce changed", usage, flip(good, 11)
    yield "header changed", usage, flip(good, 20)
    yield "header length lowered", usage, good[:12] + bytes([len(TGT_HEADER) - 1]) + good[13:]
    yield "header removed", usage, good[:12] + b"\0" + good[header_end:]
    yield "header added", usage, plain[:12] + bytes([3]) + b"abc" + plain[13:]
    yield "header length beyond the message", usage, plain[:12] + b"\xff" + plain[13:]
    yield "header leaves no room for the zero block", usage, minimal[:12] + b"\x01" + minimal[13:]
    yield "wrong usage", 3, good
    yield "last byte cut off", usage, good[:-1]
    yield "tag cut off", usage, good[:-16]
    yield "one byte less than the shortest message", usage, minimal[:-1]
    yield "nonce only", usage, good[:12]
    yield "nothing", usage, b""
    yield "byte appended", usage, good + b"\0"
    yield "right tag, zero block has one bit", usage, seal(
        base, usage, nonce, TGT_HEADER, plaintext, bytes(15) + b"\x01")
    yield "right tag, zero block is plaintext", usage, seal(
        base, usage, nonce, b"", plaintext[16:], plaintext[:16])
    yield "right tag, no zero block", usage, nonce + b"\0" + AESGCM(
        usage_key(base, usage)).encrypt(nonce, b"short", b"\0")
    other = flip(base, 0)
    yield "other key", usage, seal(other, usage, nonce, b"", plaintext)
    cbc_key = derive_key(base, usage.to_bytes(4, "big") + b"\xaa")
    yield "encrypted under Ke instead of Kg", usage, nonce + b"\0" + AESGCM(cbc_key).encrypt(
        nonce, ZERO_BLOCK + plaintext, b"\0")


def bad_message_vectors():
    for enctype in KEY_SIZE:
        base = base_key(enctype)
        for why, usage, message in bad_messages_of(enctype):
            assert open_message(base, usage, message) is None, why
            yield row(why=why, enctype=enctype, base=base, usage=usage, message=message)


CHECKSUMS = [
    # name, usage, nonce, data
    ("no data", 56, server_nonce(1700000000, 1, 11), b""),
    ("one byte", 56, server_nonce(1700000000, 1, 12), b"\x2a"),
    ("one block", 17, server_nonce(1700000000, 1, 13), pattern("block", 16)),
    ("size of an AS-REQ", 56, server_nonce(1700000000, 1, 14), pattern("as-req", 211)),
    ("size of a PAC", 17, server_nonce(1700000000, 1, 15), pattern("pac", 1500)),
    ("client's nonce", 6, pattern("nonce 5", 12), pattern("req-body", 99)),
]


def checksum_vectors():
    for enctype in KEY_SIZE:
        base = base_key(enctype)
        for name, usage, nonce, data in CHECKSUMS:
            yield row(name=name, enctype=enctype, cksumtype=enctype, base=base, usage=usage,
                      nonce=nonce, data=data, checksum=gmac(base, usage, nonce, data))


def bad_checksum_vectors():
    for enctype in KEY_SIZE:
        base, nonce, data = base_key(enctype), server_nonce(1700000000, 1, 16), pattern("data", 60)
        good = gmac(base, 17, nonce, data)
        for why, usage, tampered, checksum in (
                ("wrong tag, first byte", 17, data, flip(good, 12)),
                ("wrong tag, last byte", 17, data, flip(good, 27)),
                ("nonce changed", 17, data, flip(good, 0)),
                ("data changed", 17, flip(data, 59), good),
                ("data cut", 17, data[:-1], good),
                ("zero byte appended to data", 17, data + b"\0", good),
                ("wrong usage", 16, data, good),
                ("tag cut off", 17, data, good[:-16]),
                ("last byte cut off", 17, data, good[:-1]),
                ("byte appended", 17, data, good + b"\0"),
                ("nothing", 17, data, b"")):
            yield row(why=why, enctype=enctype, cksumtype=enctype, base=base, usage=usage,
                      data=tampered, checksum=checksum)


def tgt_header_vectors():
    name, origin, cap, job = "alice@EXAMPLE.COM", 1700000000, 1700604800, 42
    yield row(principal=name, principal_id=principal_id(name), origin_time=origin,
              renewable_cap=cap, origin_job=job, header=tgt_header(name, origin, cap, job))


ABOUT = ("Vectors of the enctypes aes128-gcm (-24001) and aes256-gcm (-24002); "
         "written by make_gcm_enctype_vectors.py, do not edit.")
LISTS = {
    "gcm": gcm_vectors,
    "string_to_key": string_to_key_vectors,
    "usage_keys": usage_key_vectors,
    "prf": prf_vectors,
    "messages": message_vectors,
    "bad_messages": bad_message_vectors,
    "checksums": checksum_vectors,
    "bad_checksums": bad_checksum_vectors,
    "tgt_headers": tgt_header_vectors,
}


def all_vectors():
    return {"about": ABOUT, **{name: list(vectors()) for name, vectors in LISTS.items()}}


# ---- Output --------------------------------------------------------------------------------------

# JSON list -> (C array, fields). The structures are declared in t_gcm.c.
C_TABLES = {
    "gcm": ("gcm_vector", ("name", "key", "nonce", "aad", "plaintext", "ciphertext", "tag")),
    "string_to_key": ("s2k_vector", ("enctype", "password", "salt", "iterations", "key")),
    "usage_keys": ("kg_vector", ("enctype", "base", "usage", "key")),
    "prf": ("prf_vector", ("enctype", "base", "input", "output")),
    "messages": ("message_vector",
                 ("name", "enctype", "base", "usage", "header", "plaintext", "message")),
    "bad_messages": ("bad_message_vector", ("why", "enctype", "base", "usage", "message")),
    "checksums": ("cksum_vector", ("name", "enctype", "base", "usage", "data", "checksum")),
    "bad_checksums": ("bad_cksum_vector",
                      ("why", "enctype", "base", "usage", "data", "checksum")),
}
C_HEAD = """\
/* -*- mode: c; c-basic-offset: 4; indent-tabs-mode: nil -*- */
/* lib/crypto/crypto_tests/t_gcm_vectors.h - Vectors for t_gcm.c */
/* Made by make_gcm_enctype_vectors.py --c; do not edit.  Bytes are hex. */
"""


def c_value(value):
    """An integer, or a string in pieces which fit MIT's 79 columns."""
    if isinstance(value, int):
        return f"      {value}"
    pieces = [value[i:i + 64] for i in range(0, len(value), 64)] or [""]
    return "\n".join(f'      "{piece}"' for piece in pieces)


def as_c(vectors):
    out = [C_HEAD]
    for json_list, (name, fields) in C_TABLES.items():
        rows = ",\n".join("    {\n" + ",\n".join(c_value(row[f]) for f in fields) + "\n    }"
                          for row in vectors[json_list])
        out.append(f"static const struct {name} {name}s[] = {{\n{rows}\n}};\n")
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", metavar="FILE", help="compare with FILE, write nothing")
    parser.add_argument("--c", action="store_true", help="write C tables instead of JSON")
    options = parser.parse_args()
    text = as_c(all_vectors()) if options.c else json.dumps(all_vectors(), indent=1) + "\n"
    if options.check:
        with open(options.check, encoding="utf-8") as file:
            same = file.read() == text
        print(f"{options.check}: {'up to date' if same else 'DIFFERS'}", file=sys.stderr)
        return 0 if same else 1
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
