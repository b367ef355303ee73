# SPDX-License-Identifier: Apache-2.0
"""Somebody without any credential at kadmind's port for administrators (749), who stalls. kadmind has one
thread: if it waits for him no password is changed, and no replica is told of anything. Stock krb5's does."""

import contextlib
import shutil
import socket
import struct
import subprocess
import threading
import time

import pytest

import daemon
import datagrams
import realm as realm_module

SOON = 3  # seconds for an answer of kadmind's
ANSWER = 24  # bytes of a refusal
LAST = 1 << 31  # of a record's fragments (RFC 5531, 11)
KADM, VERSION, CALL = 2112, 2, 0
HEARD = 0.3  # seconds in which kadmind has turned to who speaks
MANY = 32 << 20  # bytes of calls: their answers are more than two sockets keep
LONG_NAMES, NAME_BYTES = 200, 900  # in a list of 180 KB
SEGMENT = 536  # bytes; of long ones a socket keeps megabytes
ADMIN, PASSWORD = 'root/admin', 'a password'


@pytest.fixture(scope='module')
def live(tmp_path_factory):
    with realm_module.StockRealm(tmp_path_factory.mktemp('stalled') / 'realm') as stock:
        stock.create()
        stock.kadmin_local(f'addprinc -pw "{PASSWORD}" {ADMIN}')
        stock.run('kadmin.local', stdin=''.join(f'addprinc -randkey {name}\n' for name in long_names()))
        stock.start_kdc()
        yield stock


def long_names():
    return [f'{number:03}' + 'x' * NAME_BYTES for number in range(LONG_NAMES)]


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


class SlowReader:
    """`with` it: a port in front of kadmind's that reads answers only while `reading` is set."""

    def __init__(self, live):
        self._target = ('127.0.0.1', live.ports.kadmind)
        self.reading = threading.Event()
        self.reading.set()
        self._front = socket.create_server(('127.0.0.1', 0))
        self.port = self._front.getsockname()[1]
        self._open = []

    def __enter__(self):
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._front.close()
        self.hang_up()
        self.reading.set()

    def hang_up(self):
        """What has come is not read."""
        for stream in self._open:
            stream.close()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._front.accept()
                far = socket.socket()
                far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
                far.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SEGMENT)
                far.connect(self._target)
                self._open += [near, far]
                for way in (near, far, lambda: True), (far, near, self.reading.wait):
                    threading.Thread(target=self._pass_on, args=way, daemon=True).start()

    @staticmethod
    def _pass_on(source, sink, wait):
        with contextlib.suppress(OSError):
            while wait():
                data = source.recv(1 << 12)
                if not data:
                    sink.shutdown(socket.SHUT_WR)
                    return
                sink.sendall(data)


@pytest.fixture
def slow(live):
    """An administrator who reads through a SlowReader, which is the second thing that this yields."""
    with SlowReader(live) as reader:
        admin = subprocess.Popen(
            [shutil.which('kadmin', path=live.env['PATH']), '-s', f'127.0.0.1:{reader.port}', '-p', ADMIN,
             '-w', PASSWORD], env=live.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, encoding='utf-8')
        try:
            yield admin, reader
        finally:
            admin.kill()
            admin.wait()


def ask_for_names(live, admin, reader):
    """Returns when he waits for the list, of which he reads nothing."""
    tell(admin, 'getprinc ' + ADMIN)
    while not admin.stdout.readline().startswith('Policy:'):
        pass
    reader.reading.clear()
    tell(admin, 'listprincs')
    time.sleep(HEARD)


def tell(admin, query):
    admin.stdin.write(query + '\n')
    admin.stdin.flush()


def test_an_administrator_who_does_not_read(live, slow):
    """Nobody waits for him; and when he reads, all of the answer is there."""
    admin, reader = slow
    ask_for_names(live, admin, reader)
    for _ in range(3):
        assert changes_passwords(live)
    reader.reading.set()
    tell(admin, 'getprinc ' + ADMIN)
    output, _ = admin.communicate(timeout=20)
    assert [line.partition('@')[0] for line in output.splitlines() if 'xxx' in line] == long_names()
    assert output.count('Policy:') == 1, 'the next call is answered'


def test_an_administrator_who_goes_away(live, slow):
    """His answer waits for nobody."""
    admin, reader = slow
    ask_for_names(live, admin, reader)
    log = live.log_dir / 'kadmind-requests.log'
    closed = log.read_text().count('closing down fd')
    reader.hang_up()
    assert daemon.wait_until(lambda: log.read_text().count('closing down fd') > closed, 20)
    assert changes_passwords(live)
