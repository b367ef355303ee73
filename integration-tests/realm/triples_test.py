# SPDX-License-Identifier: Apache-2.0
"""Two triples on one PostgreSQL database for each party: what one is told all know, and one, or a
machine of one, can go while the other answers."""

import concurrent.futures
import re
import socket
import threading
import time

import pytest

import config_files
import daemon
import triples
import udp_relay
from triples import OneTripleKdc, machine

WRONG = 'Password incorrect'
AS_REP, KRB_ERROR = b'\x6b', b'\x7e'
REPLAYED = 'verified this request before'


@pytest.fixture(scope='module')
def live(tmp_path_factory):
    parties = triples.postgres_or_skip(pytest)
    try:
        with triples.two_triples(tmp_path_factory.mktemp('triples') / 'realm', parties) as made:
            yield made
    finally:
        parties.remove()


@pytest.fixture(scope='module')
def kdcs(live):
    """A krb5kdc for each triple."""
    with OneTripleKdc(live, 0) as first, OneTripleKdc(live, 1) as second:
        yield first, second


@pytest.fixture(autouse=True)
def all_there(live):
    """Each test leaves the realm whole."""
    triples.wait_until_healthy(live)
    yield
    for server in live.servers:
        if not server.is_running():
            server.start()
    triples.wait_until_healthy(live)


class Logins:
    """`with` it: users who log in at the realm's own KDC all the time."""

    def __init__(self, live, users):
        self.live, self.users = live, users
        self._stop = threading.Event()
        self._pool = concurrent.futures.ThreadPoolExecutor(len(users))
        self.ends = []  # of those that went well
        self.failures = []

    def __enter__(self):
        self._threads = [self._pool.submit(self._log_in, user) for user in self.users]
        time.sleep(0.5)
        return self

    def _log_in(self, user):
        while not self._stop.is_set():
            reply = self.live.kinit(*user, ccache=f'cc-{user[0]}', check=False)
            if reply.returncode:
                self.failures.append(reply.stdout)
            else:
                self.ends.append(time.monotonic())

    def __exit__(self, *error):
        self._stop.set()
        for thread in self._threads:
            thread.result()
        self._pool.shutdown()
        if error[0] is None:
            assert not self.failures, self.failures
            for user in self.users:
                assert self.live.failed_attempts(user[0]) == 0

    def silence(self):
        """Seconds: the longest time without an answer."""
        ends = sorted(self.ends)
        return max(later - earlier for earlier, later in zip(ends, ends[1:]))


def test_each_triple_logs_users_in(live, kdcs, new_user):
    """What mpc-admin enrolled at one is at both."""
    user = new_user(live)
    before = triples.jobs(live)
    for kdc in kdcs:
        live.kinit(*user, env=kdc.env)
        assert WRONG in live.kinit(user[0], 'wrong', check=False, env=kdc.env).stdout
    after = triples.jobs(live)
    assert all(later > earlier for earlier, later in zip(before, after)), (before, after)
    status = live.status()
    assert [server['triple'] for server in status['servers']] == [0, 0, 0, 1, 1, 1]
    assert {server['cluster'] for server in status['servers']} == {config_files.CLUSTER}
    live.admin('verify')
    assert live.admin('doctor').returncode == 0


def test_a_new_password_is_seen_at_once(live, kdcs, new_user):
    """By the cache of the triple that did not write it."""
    name, password = new_user(live)
    for number, kdc in enumerate(kdcs * 2):
        live.kinit(name, password, env=kdc.env)
        old, password = password, f'password {number}'
        live.kadmin_local(f'cpw -pw "{password}" {name}')
        other = kdcs[1 - number % 2]
        live.kinit(name, password, env=other.env)
        assert WRONG in live.kinit(name, old, check=False, env=other.env).stdout
        live.kinit(name, password, env=kdc.env)


def send(port, request):
    with socket.socket(type=socket.SOCK_DGRAM) as client:
        client.settimeout(10)
        client.sendto(request, ('127.0.0.1', port))
        return client.recv(1 << 16)


def recorded_login(live, kdc, user):
    """The request with the pre-authentication that one login was granted for."""
    granted = []

    class Relay(udp_relay.UdpRelay):
        def answer(self, request, reply):
            if reply[:1] == AS_REP:
                granted.append(request)
            return reply

    with Relay(kdc.port) as relay:
        path = live.dir / 'krb5-recorded.conf'
        path.write_text(re.sub(rf':{live.ports.kdc}\b', f':{relay.port}',
                               (live.dir / 'krb5.conf').read_text()))
        live.kinit(*user, env={'KRB5_CONFIG': str(path)})
    return granted[0]


def test_a_replay_at_the_other_triple(live, kdcs, new_user):
    """To another KDC never; to the same, one that forgot, what is left of the grant's two tickets."""
    config_files.mpc_ca('issue', live.dir / 'ca', '--realm', live.name, '--role', 'kdc', '--name',
                        'other')
    user = new_user(live)
    with OneTripleKdc(live, 1, 'stranger', 'kdc-other') as stranger, \
            OneTripleKdc(live, 1, 'again') as again:
        request = recorded_login(live, kdcs[0], user)
        assert send(stranger.port, request)[:1] == KRB_ERROR
        assert REPLAYED in stranger.log.read_text()
        assert send(kdcs[1].port, request)[:1] == AS_REP
        assert send(again.port, request)[:1] == KRB_ERROR
        assert REPLAYED in again.log.read_text()
    assert live.failed_attempts(user[0]) == 0


@pytest.mark.parametrize('triple, party', [(0, 0), (0, 2), (1, 1)])
def test_one_machine_is_killed(live, new_user, triple, party):
    """The other triple answers, at once; restarted, it is in again."""
    users = [new_user(live) for _ in range(4)]
    victim = live.servers[machine(triple, party)]
    with Logins(live, users) as logins:
        victim.kill()
        time.sleep(2)
        lost = live.status()['triples'][triple]
        assert not lost['healthy'] and str(live.ports.clients[machine(triple, party)]) in lost['why']
        live.enroll(f'meanwhile{triple}{party}', 'a password')
        victim.start()
        triples.wait_until_healthy(live)
        time.sleep(1)
    print(f'longest silence {logins.silence():.2f} s')
    live.kinit(f'meanwhile{triple}{party}', 'a password')
    # The KDC has it again: it is the only one left.
    for server in live.servers[3 * (1 - triple):][:3]:
        server.kill()
    assert daemon.wait_until(lambda: live.kinit(*users[0], check=False).returncode == 0, 10)


def test_a_whole_triple_is_killed(live, new_user):
    users = [new_user(live) for _ in range(4)]
    for triple in range(2):
        with Logins(live, users) as logins:
            for server in live.servers[3 * triple:][:3]:
                server.kill()
            time.sleep(2)
            for server in live.servers[3 * triple:][:3]:
                server.start()
            triples.wait_until_healthy(live)
            time.sleep(1)
        print(f'triple {triple}: longest silence {logins.silence():.2f} s')


def test_refresh_under_logins(live, kdcs, new_user):
    users = [new_user(live) for _ in range(4)]
    before = live.server_status()[0]['epoch']
    with Logins(live, users):
        for _ in range(2):
            live.admin('refresh')
    assert epochs(live) == {before + 2}
    for kdc in kdcs:
        live.kinit(*users[0], env=kdc.env)
    live.admin('verify')
    assert live.admin('doctor').returncode == 0


def epochs(live):
    return {server['epoch'] for server in live.server_status()}


def test_a_machine_that_was_down_in_a_refresh_comes_back(live, kdcs, new_user):
    user = new_user(live)
    before = live.server_status()[0]['epoch']
    absent = live.servers[machine(1, 1)]
    absent.stop()
    with Logins(live, [user]):
        live.admin('refresh', '--no-wait')
        time.sleep(2)
    absent.start()
    triples.wait_until_healthy(live)
    assert daemon.wait_until(lambda: epochs(live) == {before + 1}, 10, 0.2), epochs(live)
    assert daemon.wait_until(
        lambda: live.kinit(*user, check=False, env=kdcs[1].env).returncode == 0, 10)
    # With all there the old epoch's key can go.
    assert daemon.wait_until(
        lambda: not any(server['refreshing'] for server in live.server_status()), 30, 0.5)


def test_a_triple_takes_over_a_refresh(live, kdcs, new_user):
    """The first one's machines are away: the second leads."""
    user = new_user(live)
    before = live.server_status()[0]['epoch']
    live.servers[machine(0, 2)].stop()
    live.admin('refresh', '--no-wait')
    live.kinit(*user, env=kdcs[1].env)
    live.servers[machine(0, 2)].start()
    triples.wait_until_healthy(live)
    assert daemon.wait_until(lambda: epochs(live) == {before + 1}, 10, 0.2), epochs(live)
    assert daemon.wait_until(
        lambda: live.kinit(*user, check=False, env=kdcs[0].env).returncode == 0, 10)


def test_two_machines_with_one_number(live):
    """The second is not started: both would use the same nonces."""
    wrong = live.servers[machine(1, 0)]
    wrong.stop()
    live.change_config(machine(1, 0), 'triple = 1', 'triple = 0')
    try:
        wrong.start()
        assert daemon.wait_until(lambda: not wrong.is_running(), triples.PATIENCE)
        assert wrong.exit_status() == 1
        assert 'triple' in wrong.log_tail(3), wrong.log_tail(5)
        print(wrong.log_tail(1))
    finally:
        live.change_config(machine(1, 0), 'triple = 0', 'triple = 1')


def test_a_peer_of_another_triple(live, kdcs, new_user):
    """Its address in [peers] by mistake: the log says where to look, and the other triple goes on."""
    user = new_user(live)
    wrong = live.servers[machine(1, 1)]
    wrong.stop()
    right, mistaken = (f'p2 = "127.0.0.1:{live.ports.peers[machine(t, 2)]}"' for t in (1, 0))
    live.change_config(machine(1, 1), right, mistaken)
    seen = len(wrong.log.read_text())
    try:
        wrong.start()
        assert daemon.wait_until(
            lambda: 'P2): handshake timed out (is its address in [peers]' in
            wrong.log.read_text()[seen:],
            triples.PATIENCE), wrong.log_tail(5)
        live.kinit(*user, env=kdcs[0].env)
        assert triples.healthy(live) == [True, False]
    finally:
        wrong.stop()
        live.change_config(machine(1, 1), mistaken, right)
