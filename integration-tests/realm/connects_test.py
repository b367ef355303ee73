# SPDX-License-Identifier: Apache-2.0
"""Strangers at the TCP ports of servers and KDC, and a peer that is denied while it is at work."""

import contextlib
import functools
import os
import re
import signal
import socket
import subprocess
import time

import pytest

import daemon
import datagrams
import strangers

SOON = 3          # seconds in which servers must meet, and clients be served
FEW_FILES = 1024  # open files: what many systems give a program
LONG_MESSAGES = 160  # of a megabyte
TLS_HEADER = b'\x16\x03\x01\x02\x00'  # of a message that never comes


@pytest.fixture(scope='module')
def live(own_realm):
    own_realm.enroll('alice', 'a first password')
    return own_realm


@pytest.fixture(autouse=True)
def all_up(live):
    yield
    deny(live, '')
    for server in live.servers:
        if not server.is_running():
            server.start()
    live.wait_for_servers()


def login(live, **options):
    return live.kinit('alice', 'a first password', check=False, **options)


def seconds_until(condition, limit=30):
    began = time.monotonic()
    return time.monotonic() - began if daemon.wait_until(condition, limit, 0.02) else limit


def open_files(process):
    return len(os.listdir(f'/proc/{process.pid()}/fd'))


@pytest.mark.parametrize('party', [0, 1, 2])
def test_the_port_between_servers_is_not_held_shut(live, party):
    """A server comes back while strangers hold its port and another's."""
    with strangers.Strangers(live.ports.peers[party], live.ports.peers[(party + 1) % 3],
                             per_second=2 * strangers.PER_SECOND):
        time.sleep(1)
        live.servers[party].kill()
        time.sleep(1)
        live.servers[party].start()
        live._wait_for_port(live.servers[party], live.ports.clients[party])
        took = seconds_until(live.servers_connected)
        print(f'P{party} met the others after {took:.2f} s')
        assert took < SOON
        assert daemon.wait_until(lambda: login(live).returncode == 0, SOON)


@pytest.mark.parametrize('first', [b'', TLS_HEADER], ids=['silent', 'half-a-handshake'])
def test_the_port_for_clients_is_not_held_shut(live, first):
    """gRPC alone closes its port for good when a server has no more descriptors."""
    live.stop_kdc()
    for server in live.servers:
        subprocess.run(['prlimit', f'--pid={server.pid()}', f'--nofile={FEW_FILES}:{FEW_FILES}'],
                       check=True)
    with strangers.Strangers(*live.ports.clients, per_second=6 * strangers.PER_SECOND,
                             addresses=3, first=first) as crowd:
        time.sleep(8)
        most = max(open_files(server) for server in live.servers)
        print(f'{crowd.connected} strangers, {most} open files')
        assert most < FEW_FILES * 3 // 4
        assert live.admin('status', check=False).returncode == 0
        live.start_kdc()
        assert daemon.wait_until(lambda: login(live).returncode == 0, SOON)
        began = time.monotonic()
        assert login(live).returncode == 0
        assert time.monotonic() - began < SOON
    assert login(live).returncode == 0


def test_logins_over_tcp_while_strangers_hold_krb5kdcs_port(live):
    path = live.dir / 'krb5-tcp.conf'
    path.write_text((live.dir / 'krb5.conf').read_text().replace(
        '[libdefaults]', '[libdefaults]\n    udp_preference_limit = 1', 1))
    with strangers.Strangers(live.ports.kdc):
        time.sleep(3)
        for _ in range(10):
            began = time.monotonic()
            assert login(live, env={'KRB5_CONFIG': str(path)}).returncode == 0
            assert time.monotonic() - began < SOON


def is_answered(live, size):
    request = datagrams.garbage_login(live.name, 'nobody', size)
    try:
        with socket.create_connection(('127.0.0.1', live.ports.kdc), 20) as asking:
            asking.sendall(len(request).to_bytes(4, 'big') + request)
            return asking.makefile('rb').read(5)[4:] == b'\x7e'
    except ConnectionError:
        return False


def test_long_messages_that_never_end_take_little_memory(live):
    """Each lacks its last byte. Shorter ones, and one that is as long and ends, are served."""
    longest = (1 << 20) - 4

    def megabytes():
        status = open(f'/proc/{live.kdc.pid()}/status', encoding='ascii').read()
        return int(re.search(r'VmRSS:\s+(\d+) kB', status).group(1)) / 1024
    before = megabytes()
    with contextlib.ExitStack() as stack:
        for _ in range(LONG_MESSAGES):
            held = stack.enter_context(socket.create_connection(('127.0.0.1', live.ports.kdc), 20))
            with contextlib.suppress(OSError):  # closed to make room
                held.sendall(longest.to_bytes(4, 'big') + bytes(longest - 1))
        daemon.wait_until(lambda: megabytes() - before > LONG_MESSAGES // 2, SOON)
        grown = megabytes() - before
        print(f'{LONG_MESSAGES} connections, {grown:.0f} MB')
        assert 16 < grown < 80
        for size in (4000, 60_000, longest):
            # Among those that came in the same second krb5kdc may drop any to make room.
            assert daemon.wait_until(functools.partial(is_answered, live, size), SOON), size


def deny(live, text):
    """P0's deny list."""
    (live.dir / 'p0/denied').write_text(text)
    live.servers[0].send_signal(signal.SIGHUP)


def fingerprint(certificate):
    shown = subprocess.run(['openssl', 'x509', '-noout', '-fingerprint', '-sha256', '-in',
                            certificate], check=True, capture_output=True, encoding='utf-8')
    return shown.stdout.split('=', 1)[1].strip()


def test_a_peer_denied_at_work_is_put_out(live):
    """Its session ends, and it gets no other until it is taken off the list."""
    assert login(live).returncode == 0
    deny(live, f'{fingerprint(live.dir / "ca/peer-p1.pem")}  # p1, broken into\n')
    took = seconds_until(lambda: not any(status.get('peers_connected')
                                         for status in live.server_status()))
    print(f'put out after {took:.2f} s')
    assert took < SOON
    why = 'peer/p1 (P1) is on this server\'s deny list'
    assert daemon.wait_until(lambda: why in live.servers[0].log.read_text(), SOON)
    assert 'A service is not available' in login(live).stdout
    time.sleep(2)  # P1 tries again and again
    assert not live.servers_connected()
    deny(live, '')
    assert daemon.wait_until(live.servers_connected, 10)
    assert daemon.wait_until(lambda: login(live).returncode == 0, SOON)
