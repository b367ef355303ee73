# SPDX-License-Identifier: Apache-2.0
"""Somebody without any credential at kadmind's port for administrators (749), who stalls. kadmind has one
thread: while it waits for him no password is changed, and no replica is told of anything. It is MIT's
own server of RPC, as it is in stock krb5."""

import contextlib
import socket
import struct
import time

import pytest

import datagrams
import realm as realm_module

SOON = 3  # seconds for an answer of kadmind's
LAST = 1 << 31  # of a record's fragments (RFC 5531, 11)
KADM, VERSION, CALL = 2112, 2, 0
HEARD = 0.3  # seconds in which kadmind has turned to who speaks
MANY = 32 << 20  # bytes of calls: their answers are more than two sockets keep


@pytest.fixture(scope='module')
def live(tmp_path_factory):
    with realm_module.StockRealm(tmp_path_factory.mktemp('stalled') / 'realm') as stock:
        stock.create()
        stock.start_kdc()
        yield stock


def fragment(data, last=True):
    return struct.pack('>I', (LAST if last else 0) | len(data)) + data


def call(number):
    """The null procedure, without credentials."""
    return fragment(struct.pack('>6I', number, CALL, 2, KADM, VERSION, 0) + bytes(16))


@contextlib.contextmanager
def stranger(live, receive=0):
    with socket.socket() as stream:
        if receive:
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
        stream.settimeout(SOON)
        stream.connect(('127.0.0.1', live.ports.kadmind))
        yield stream


def changes_passwords(live):
    """Whether kadmind answers somebody who asks it to, if only that it does not."""
    request = datagrams.garbage_password_change(live.name)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(SOON)
        asking.sendto(request, ('127.0.0.1', live.ports.kpasswd))
        try:
            return bool(asking.recv(1 << 16))
        except socket.timeout:
            return False


def test_the_null_procedure_is_answered(live):
    """The harness speaks to kadmind."""
    with stranger(live) as stream:
        for number in (1, 2):
            stream.sendall(call(number))
            answer = stream.recv(1000)
            assert answer[4:12] == struct.pack('>2I', number, 1)
    assert changes_passwords(live)


@pytest.mark.parametrize('said', [
    b'', pytest.param(b'\x80\x00', marks=pytest.mark.xfail(strict=True, reason=
                      'kadmind waits 35 s for the rest: svc_tcp.c, readtcp()')),
    pytest.param(call(1)[:-1], marks=pytest.mark.xfail(strict=True, reason='likewise')),
    pytest.param(fragment(bytes(24), last=False), marks=pytest.mark.xfail(
        strict=True, reason='likewise, for the next fragment'))],
    ids=['nothing', 'half-a-length', 'half-a-call', 'a-first-fragment'])
def test_who_says_half_of_something(live, said):
    with stranger(live) as stream:
        stream.sendall(said)
        time.sleep(HEARD)
        assert changes_passwords(live)


@pytest.mark.xfail(strict=True, reason='kadmind writes answers for ever: svc_tcp.c, writetcp()')
def test_who_asks_and_never_reads(live):
    with stranger(live, receive=1024) as stream:
        with contextlib.suppress(socket.timeout, ConnectionError):
            stream.sendall(call(1) * (MANY // len(call(1))))
        assert changes_passwords(live)
