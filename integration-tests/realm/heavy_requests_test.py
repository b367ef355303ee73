# SPDX-License-Identifier: Apache-2.0
"""A user's TGS-REQs for which krb5kdc would take memory that grows with the square of their length: of
400 KB 3 GB, of the longest all that a machine has. They need a TGT; an anonymous one will do.

    containers    authorization data in thousands of containers, one in the other, each of which is
                  decoded into memory of its own
    labels        a realm in a realm in a realm: krbtgt/A.A.A.A, which are all looked for"""

import hashlib
import hmac
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
CHECKSUM_USAGE, AUTHENTICATOR_USAGE = 6, 7
HMAC_SHA1_96_AES256 = 16
LITTLE, LONG = 150, 150_000  # bytes of containers: some ten, and 6,500
LABELS = 15_000
MEGABYTES = 100  # it was more than 400 of either


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


def checksum(key, body):
    made = hmac.new(keys.usage_key(key, CHECKSUM_USAGE, 0x99), body, hashlib.sha1).digest()[:12]
    return der.sequence(der.field(0, der.integer(HMAC_SHA1_96_AES256)),
                        der.field(1, der.octets(made)))


def request(live, service=SERVICE, *more):
    """`more`: fields of the authenticator."""
    key, ticket = tgt_in(live.dir / 'alice')
    body = datagrams.request_body(live.name, service, 18)
    authenticator = der.application(2, der.sequence(
        der.field(0, der.integer(5)), der.field(1, der.text(live.name)),
        der.field(2, der.name('alice')), der.field(3, checksum(key, body)),
        der.field(4, der.integer(1)), der.field(5, der.kerberos_time(time.time())), *more))
    sealed = keys.cts_seal(key, AUTHENTICATOR_USAGE, authenticator, os.urandom(16))
    return datagrams.tgs_request(body, der.application(14, der.sequence(
        der.field(0, der.integer(5)), der.field(1, der.integer(14)), der.field(2, der.flags(0)),
        der.field(3, ticket), der.field(4, datagrams.encrypted(18, sealed)))))


def error_of(live, message):
    """0: a ticket."""
    with socket.create_connection(('127.0.0.1', live.ports.kdc), 60) as stream:
        stream.sendall(len(message).to_bytes(4, 'big') + message)
        answer = stream.makefile('rb').read()[4:]
    [(tag, error)] = der.elements(answer)
    if tag == 0x6d:
        return 0
    assert tag == 0x7e
    [(_, fields)] = der.elements(error)
    return int.from_bytes(dict(der.elements(fields))[0xa6][2:], 'big')


def most_megabytes(process):
    status = open(f'/proc/{process.pid()}/status', encoding='ascii').read()
    return int(re.search(r'VmHWM:\s+(\d+) kB', status).group(1)) // 1024


UNKNOWN_SERVER, GENERIC = 7, 60


@pytest.fixture(scope='module')
def tgt(live):
    live.kinit('alice', PASSWORD, ccache='alice')


def test_containers_take_little_memory(live, tgt):
    few = der.field(8, containers(LITTLE))
    assert error_of(live, request(live, SERVICE, few)) == 0, 'the harness makes good requests'
    before = most_megabytes(live.kdc)
    error = error_of(live, request(live, SERVICE, der.field(8, containers(LONG))))
    assert most_megabytes(live.kdc) - before < MEGABYTES
    assert error == GENERIC
    live.kinit('alice', PASSWORD)


def test_realms_in_realms_take_little_memory(live, tgt):
    before = most_megabytes(live.kdc)
    error = error_of(live, request(live, 'krbtgt/' + 'A.' * LABELS))
    assert most_megabytes(live.kdc) - before < MEGABYTES
    assert error == UNKNOWN_SERVER
    live.kinit('alice', PASSWORD)
