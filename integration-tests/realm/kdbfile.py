# SPDX-License-Identifier: Apache-2.0
"""What a thief does with a KDC's disk: reads the dump, reads the stash, unseals every key.

The dump is `kdb5_util dump`'s, the stash a keytab that holds the realm's master key K/M. Each key in
a dump is a two-byte length and a message sealed under K/M with key usage 0, or a handle as it is.
"""

import dataclasses
import struct

import keys

REMOTE_KEY_TAG = b'remote-key:'  # a handle instead of a key: the tag and 16 random bytes


@dataclasses.dataclass
class SealedKey:
    principal: str
    kvno: int
    enctype: int
    contents: bytes


def read_dump(path):
    """Every sealed key of a dump."""
    found = []
    with open(path, encoding='utf-8', errors='surrogateescape') as dump:
        for line in dump:
            fields = line.rstrip(';\n').split('\t')
            if fields[0] == 'princ':
                found += _keys_of_principal(fields)
    return found


def _keys_of_principal(fields):
    tagged_count, key_count = int(fields[3]), int(fields[4])
    name = fields[6]
    at = 15 + 3 * tagged_count  # 8 fields of attributes and times, then type, length, contents
    found = []
    for _ in range(key_count):
        version, kvno = int(fields[at]), int(fields[at + 1])
        at += 2
        enctype, contents = int(fields[at]), fields[at + 2]
        found.append(SealedKey(name, kvno, enctype,
                               b'' if contents == '-1' else bytes.fromhex(contents)))
        at += 3 * version  # version 2 has the salt after the key
    return found


def read_keytab(path):
    """(principal, kvno, enctype, key) of each entry of a keytab or stash file."""
    data = open(path, 'rb').read()
    if data[:2] != b'\x05\x02':
        raise ValueError(f'{path} is no keytab')
    at, found = 2, []
    while at + 4 <= len(data):
        size, = struct.unpack_from('>i', data, at)
        at += 4
        if size > 0:
            found.append(_keytab_entry(data[at:at + size]))
        at += abs(size)  # a negative size is a hole
    return found


def _keytab_entry(entry):
    count, at = struct.unpack_from('>H', entry)[0], 2
    strings = []
    for _ in range(count + 1):  # the realm, then the components
        size, = struct.unpack_from('>H', entry, at)
        strings.append(entry[at + 2:at + 2 + size].decode())
        at += 2 + size
    at += 8  # name type, time
    kvno, enctype, size = struct.unpack_from('>BhH', entry, at)
    at += 5
    key = entry[at:at + size]
    if len(entry) >= at + size + 4:
        kvno = struct.unpack_from('>I', entry, at + size)[0] or kvno
    return '/'.join(strings[1:]) + '@' + strings[0], kvno, enctype, key


def unseal(sealed, master_key):
    """The bytes inside a sealed key, or None when this master key does not open it."""
    if sealed.contents.startswith(REMOTE_KEY_TAG):
        return sealed.contents
    size, = struct.unpack_from('<H', sealed.contents)
    plain = keys.cts_open(master_key, 0, sealed.contents[2:])
    return None if plain is None else plain[:size]


def recover_keys(dump, stash):
    """[(SealedKey, what it holds)]: all that a stolen KDC disk gives."""
    masters = [key for name, _, _, key in read_keytab(stash) if name.startswith('K/M@')]
    found = []
    for sealed in read_dump(dump):
        opened = (unseal(sealed, master) for master in masters)
        found.append((sealed, next((plain for plain in opened if plain is not None), None)))
    return found


def is_remote_key(plain):
    return plain is not None and plain.startswith(REMOTE_KEY_TAG)
