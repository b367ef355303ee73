# SPDX-License-Identifier: Apache-2.0
"""A user's TGS-REQ whose authenticator holds authorization data in thousands of containers, one in the
other. libkrb5 decoded each into memory of its own: 400 KB took 3 GB of krb5kdc and two seconds, the
longest request would have taken 20 GB."""

import os
import re
import socket
import struct
import time

import pytest

import datagrams
import keys
from datagrams import der

PASSWORD = 'a password'
SERVICE = 'host/www.example.com'
IF_RELEVANT = 1
AUTHENTICATOR_USAGE = 7
LITTLE, LONG = 150, 150_000  # bytes of containers: some ten, and 6,500
MEGABYTES = 100  # it was more than 400


@pytest.fixture(scope='module')
def live(own_realm):
    own_realm.enroll('alice', PASSWORD)
    own_realm.add_service(SERVICE)
    return own_realm


def header_of(tag, size):
    return der.wrap(tag, bytes(size))[:-size] if size else bytes([tag, 0])


def containers(size):
    """AD-IF-RELEVANT in AD-IF-RELEVANT, in time that grows with `size` alone but for header_of()."""
    kind = der.field(0, der.integer(IF_RELEVANT))
    parts, inner = [header_of(0x30, 0)], 2
    while inner < size:
        octets = header_of(0x04, inner)
        field = header_of(0xa1, len(octets) + inner)
        one = len(kind) + len(field) + len(octets) + inner
        element = header_of(0x30, one)
        parts.append(header_of(0x30, len(element) + one) + element + kind + field + octets)
        inner += len(parts[-1])
    return b''.join(reversed(parts))


class Reader:
    def __init__(self, data):
        self.data = data

    def take(self, size):
        taken, self.data = self.data[:size], self.data[size:]
        return taken

    def number(self, layout):
        return struct.unpack(f'>{layout}', self.take(struct.calcsize(layout)))[0]

    def counted(self):
        return self.take(self.number('I'))

    def principal(self):
        self.number('I')  # its type
        count = self.number('I')
        return [self.counted() for _ in range(1 + count)]  # the realm first


def tgt_in(path):
    """(session key, ticket) of the first TGT in a FILE ccache of version 4."""
    cache = Reader(path.read_bytes())
    cache.take(2)
    cache.take(cache.number('H'))
    cache.principal()
    while cache.data:
        cache.principal()
        server = cache.principal()
        enctype = cache.number('H')
        key = cache.counted()
        cache.take(4 * 4 + 1 + 4)  # times, is_skey, flags
        for _ in range(2):  # addresses, authorization data
            for _ in range(cache.number('I')):
                cache.number('H')
                cache.counted()
        ticket = cache.counted()
        cache.counted()
        if server[1] == b'krbtgt':
            assert enctype == 18, 'keys.cts_seal() is for aes256-cts-hmac-sha1-96'
            return key, ticket
    raise AssertionError('no TGT')


def request(live, authdata):
    """It has no checksum: that is looked for after the authorization data."""
    key, ticket = tgt_in(live.dir / 'alice')
    authenticator = der.application(2, der.sequence(
        der.field(0, der.integer(5)), der.field(1, der.text(live.name)),
        der.field(2, der.name('alice')), der.field(4, der.integer(1)),
        der.field(5, der.kerberos_time(time.time())), der.field(8, authdata)))
    sealed = keys.cts_seal(key, AUTHENTICATOR_USAGE, authenticator, os.urandom(16))
    return datagrams.tgs_request(live.name, SERVICE, der.application(14, der.sequence(
        der.field(0, der.integer(5)), der.field(1, der.integer(14)), der.field(2, der.flags(0)),
        der.field(3, ticket), der.field(4, datagrams.encrypted(18, sealed)))))


def error_of(live, message):
    with socket.create_connection(('127.0.0.1', live.ports.kdc), 60) as stream:
        stream.sendall(len(message).to_bytes(4, 'big') + message)
        answer = stream.makefile('rb').read()[4:]
    [(tag, error)] = der.elements(answer)
    assert tag == 0x7e
    [(_, fields)] = der.elements(error)
    return int.from_bytes(dict(der.elements(fields))[0xa6][2:], 'big')


def most_megabytes(process):
    status = open(f'/proc/{process.pid()}/status', encoding='ascii').read()
    return int(re.search(r'VmHWM:\s+(\d+) kB', status).group(1)) // 1024


INAPPROPRIATE_CHECKSUM, GENERIC = 50, 60


def test_containers_take_little_memory(live):
    live.kinit('alice', PASSWORD, ccache='alice')
    assert error_of(live, request(live, containers(LITTLE))) == INAPPROPRIATE_CHECKSUM, \
        'the authenticator is not opened, or few containers are too many'
    before = most_megabytes(live.kdc)
    error = error_of(live, request(live, containers(LONG)))
    assert most_megabytes(live.kdc) - before < MEGABYTES
    assert error == GENERIC
    live.kinit('alice', PASSWORD)
