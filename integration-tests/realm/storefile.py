# SPDX-License-Identifier: Apache-2.0
"""What a thief does with one server's disk: opens every record of its store with the key beside it.

Reads the store's LMDB file through mdb_dump and unseals the records with the server's own store key
(mpc-server/doc/share_store_format.md). With two servers' records it also does what two thieves can
do together: join shares into keys. Nothing but tests and the demo does that.
"""

import dataclasses
import struct
import subprocess

import config_files
import keys
import xchacha

_KEY_RECORD, _HEADER, _NONCE, _BLOCK = 1, 12, 24, 16


@dataclasses.dataclass
class StoredKey:
    handle: bytes
    principal: str
    kvno: int
    enctype: int
    plain: bytes  # the whole record, unsealed
    base: list    # shares (x, a), one per block
    usages: dict  # usage -> shares of the round keys, then of H or (17 to 20) of an HMAC's states


def read_store_keys(path):
    """The file of `EPOCH KEY` lines."""
    lines = (line.split() for line in open(path) if line.strip() and line[0] != '#')
    return {int(epoch): bytes.fromhex(key) for epoch, key in lines}


def read_lmdb(path, database):
    """[(key, value)] of one named database of a single-file LMDB environment."""
    text = subprocess.run(['mdb_dump', '-n', '-s', database, str(path)], check=True,
                          stdout=subprocess.PIPE, encoding='ascii').stdout
    lines = [bytes.fromhex(line[1:]) for line in text.splitlines() if line.startswith(' ')]
    return list(zip(lines[::2], lines[1::2]))


def read_records(store_file):
    """Every committed key's record as it lies there, sealed: {handle: bytes}."""
    records = dict(read_lmdb(store_file, 'records'))
    return {handle: records[place] for handle, place in read_lmdb(store_file, 'keys')}


def read_store(store_file, key_file, realm, party, cluster):
    """Every committed key of a server, unsealed: {handle: StoredKey}."""
    store_keys = read_store_keys(key_file)
    found = {}
    for handle, record in read_records(store_file).items():
        version, kind, epoch = struct.unpack('>BBxxQ', record[:_HEADER])
        if (version, kind) != (1, _KEY_RECORD):
            raise ValueError(f'record {handle.hex()} has an unknown format')
        additional = (record[:_HEADER] + struct.pack('>H', len(realm)) + realm.encode()
                      + struct.pack('>BH', party, cluster) + handle)
        plain = xchacha.xchacha20poly1305_open(
            store_keys[epoch], record[_HEADER:_HEADER + _NONCE], record[_HEADER + _NONCE:],
            additional)
        if plain is None:
            raise ValueError(f'record {handle.hex()} does not open with the store key')
        found[handle] = _decode(handle, plain)
    return found


def _decode(handle, plain):
    kvno, enctype, _, _, _, name_size, salt_size, blocks, usage_count = struct.unpack_from(
        '>IiiBBHHBB', plain)
    at = 20
    principal = plain[at:at + name_size].decode()
    at += name_size + salt_size
    base, at = _shares(plain, at, blocks)
    usages = {}
    for _ in range(usage_count):
        usage, round_keys = struct.unpack_from('>IB', plain, at)
        shares, at = _shares(plain, at + 5, round_keys)
        more, at = _shares(plain, at, 1) if enctype < 0 else _shares(plain, at + 1, plain[at])
        usages[usage] = shares + more
    if at != len(plain):
        raise ValueError(f'record {handle.hex()} has a wrong length')
    return StoredKey(handle, principal, kvno, enctype, plain, base, usages)


def _shares(plain, at, count):
    shares = [(plain[i:i + _BLOCK], plain[i + _BLOCK:i + 2 * _BLOCK])
              for i in range(at, at + 2 * _BLOCK * count, 2 * _BLOCK)]
    return shares, at + 2 * _BLOCK * count


def join(own, of_next):
    """What a party and the next one hold together: a share's value is x of the one, a of the other."""
    return b''.join(bytes(x ^ a for x, a in zip(mine[0], theirs[1]))
                    for mine, theirs in zip(own, of_next))


def open_store(live, party):
    """A server's store, with the key beside it."""
    folder = live.dir / f'p{party}'
    return read_store(folder / 'data/shares.mdb', folder / 'store.key', live.name, party,
                      config_files.CLUSTER)


def open_stores(live):
    return [open_store(live, party) for party in range(3)]


def joined_base_keys(stores, principal):
    """[(enctype, base key)] of a principal, which only two servers together can know."""
    for handle, record in stores[0].items():
        if record.principal == principal:
            yield record.enctype, join(record.base, stores[1][handle].base)


def secrets_of_krbtgt(live, stores):
    """Its base keys, which nobody ever saw, and all that is derived from them."""
    return [(f'krbtgt {name}', secret)
            for enctype, base in joined_base_keys(stores, f'krbtgt/{live.name}@{live.name}')
            for name, secret in keys.secrets_of_base_key(enctype, base, (2, 17, 64))]
