# SPDX-License-Identifier: Apache-2.0
"""Somebody without any credential at kadmind's port for administrators (749), who stalls. kadmind has one
thread: if it waits for him no password is changed, and no replica is told of anything. Stock krb5's does."""

import contextlib
import socket
import struct
import time

import pytest

import datagrams
import realm as realm_module

SOON = 3  # seconds for an answer of kadmind's
ANSWER = 24  # bytes of a refusal
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


def test_a_call_in_pieces_is_answered(live):
    with stranger(live) as stream:
        whole = fragment(call(7)[4:14], last=False) + fragment(b'', last=False) + fragment(call(7)[14:])
        for piece in range(0, len(whole), 3):
            stream.sendall(whole[piece:piece + 3])
            time.sleep(0.01)
        stream.sendall(call(8) + call(9))
        answers = stream.makefile('rb').read(3 * ANSWER)
        assert [answers[at:at + 4] for at in range(4, 3 * ANSWER, ANSWER)] == [
            struct.pack('>I', number) for number in (7, 8, 9)]


def test_who_says_too_much_is_dropped(live):
    with stranger(live) as stream:
        stream.sendall(struct.pack('>I', LAST | 1 << 24))
        assert stream.recv(1) == b''


@pytest.mark.parametrize('said', [b'', b'\x80\x00', call(1)[:-1], call(1) + call(2)[:-1],
                                  fragment(bytes(24), last=False)],
                         ids=['nothing', 'half-a-length', 'half-a-call', 'one-and-a-half-calls',
                              'a-first-fragment'])
def test_who_says_half_of_something(live, said):
    with stranger(live) as stream:
        stream.sendall(said)
        time.sleep(HEARD)
        assert changes_passwords(live)


def test_who_asks_and_never_reads(live):
    with stranger(live, receive=1024) as stream:
        with contextlib.suppress(socket.timeout, ConnectionError):
            stream.sendall(call(1) * (MANY // len(call(1))))
        assert changes_passwords(live)
