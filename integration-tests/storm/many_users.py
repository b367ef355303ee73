# SPDX-License-Identifier: Apache-2.0
"""Many users with random keys, as a keytab: what `mpc-admin enroll --all` and login-storm read.

    file   05 02, then entries
    entry  size (4) | components (2) = 1 | realm | component | name type (4) | time (4) | kvno (1) |
           enctype (2) | key | kvno (4)            realm, component and key: length (2) | bytes
"""

import os
import struct

import keys  # of integration-tests/realm

NAME_TYPE_PRINCIPAL = 1
NUMBERS = {name: number for number, name in keys.NAMES.items()}
# A GCM key is written as a keytab's key of 17 or 18, which has the same base key.
KEYTAB_NUMBERS = {**NUMBERS, 'aes128-gcm': 17, 'aes256-gcm': 18}


def user_name(number):
    """Seven digits: names sort as their numbers do, and all have one length."""
    return f'u{number:07d}'


def _counted(data):
    return struct.pack('>H', len(data)) + data


def entry(name, realm, enctype, key, kvno=1):
    body = (struct.pack('>H', 1) + _counted(realm.encode()) + _counted(name.encode())
            + struct.pack('>IIBh', NAME_TYPE_PRINCIPAL, 0, kvno & 0xff, enctype) + _counted(key)
            + struct.pack('>I', kvno))
    return struct.pack('>i', len(body)) + body


def write_keytab(path, realm, count, enctype=17, first=0, key=None):
    """`count` users from number `first` on, each with a random key, or all with `key`."""
    size = keys.KEY_BYTES[enctype]
    with open(path, 'wb') as out:
        os.fchmod(out.fileno(), 0o600)
        out.write(b'\x05\x02')
        for number in range(first, first + count):
            out.write(entry(user_name(number), realm, enctype, key or os.urandom(size)))
    return path
