# SPDX-License-Identifier: Apache-2.0
"""Servers that are down, killed, or restarted: a reply is right or absent, never a wrong password."""

import concurrent.futures
import signal
import threading
import time

import pytest

import daemon
from long_tests import some

UNAVAILABLE = 'A service is not available'
WRONG = 'Password incorrect'
SERVICE = 'host/www.example.com'
RECOVERY = 20  # seconds within which logins must work again


@pytest.fixture
def live(own_realm):
    """The module's realm with all its servers up, whatever the test before did."""
    if own_realm.kadmin_local(f'getprinc {SERVICE}', check=False).returncode:
        own_realm.add_service(SERVICE)
    yield own_realm
    for server in own_realm.servers:
        server.send_signal(signal.SIGCONT)
        if not server.is_running():
            server.start()
    own_realm.wait_for_servers()


def assert_outage(reply):
    assert reply.returncode
    assert WRONG not in reply.stdout
    assert UNAVAILABLE in reply.stdout, reply.stdout


def recovers(live, user):
    return daemon.wait_until(lambda: live.kinit(*user, check=False).returncode == 0, RECOVERY, 0.2)


@pytest.mark.parametrize('party', some([0, 1, 2], short=[1]))
def test_one_server_down(live, user, party):
    live.servers[party].kill()
    assert_outage(live.kinit(*user, check=False))
    assert_outage(live.kinit(user[0], 'wrong', check=False))
    assert live.failed_attempts(user[0]) == 0
    live.servers[party].start()
    assert recovers(live, user)
    assert WRONG in live.kinit(user[0], 'wrong', check=False).stdout


def test_one_server_hangs(live, user):
    """Stopped, not dead: connections stay open and nothing answers."""
    live.servers[1].send_signal(signal.SIGSTOP)
    assert_outage(live.kinit(*user, check=False))
    assert live.failed_attempts(user[0]) == 0
    live.servers[1].send_signal(signal.SIGCONT)
    assert recovers(live, user)


def test_tickets_outlive_an_outage(live, user):
    """A service ticket in hand needs no server; a new one opens the TGT and needs them all."""
    live.kinit(*user)
    live.kvno(SERVICE)
    live.servers[2].kill()
    live.kvno(SERVICE)  # from the cache
    refused = live.kvno('kadmin/admin', check=False)
    assert refused.returncode and UNAVAILABLE in refused.stdout
    live.servers[2].start()
    assert recovers(live, user)


def test_password_change_during_an_outage_keeps_the_old_one(live, user):
    name, password = user
    live.servers[0].kill()
    assert live.kadmin_local(f'cpw -pw another {name}', check=False).returncode
    live.servers[0].start()
    assert recovers(live, user)
    assert WRONG in live.kinit(name, 'another', check=False).stdout


class Load:
    """Logins without end in a few threads; every outcome is kept with its time."""

    def __init__(self, live, user, threads=4):
        self.outcomes = []
        self._live, self._user = live, user
        self._stop = threading.Event()
        self._pool = concurrent.futures.ThreadPoolExecutor(threads)
        self._tasks = [self._pool.submit(self._run, number) for number in range(threads)]

    def _run(self, number):
        while not self._stop.is_set():
            reply = self._live.kinit(*self._user, ccache=f'load{number}', check=False)
            self.outcomes.append((time.monotonic(), reply.returncode, reply.stdout))

    def wait_for_successes(self, count, patience=RECOVERY):
        since = time.monotonic()
        return daemon.wait_until(lambda: self._successes(since) >= count, patience)

    def _successes(self, since):
        return sum(1 for when, code, _ in list(self.outcomes) if when >= since and code == 0)

    def successes_between(self, begin, end):
        return sum(1 for when, code, _ in list(self.outcomes) if begin < when < end and code == 0)

    def finish(self):
        self._stop.set()
        for task in self._tasks:
            task.result()
        self._pool.shutdown()
        return self.outcomes


def assert_only_outages(outcomes):
    failures = [text for _, code, text in outcomes if code]
    assert not [text for text in failures if WRONG in text], 'an outage looked like a wrong password'
    # No answer within the client's patience is an outage too.
    other = [text for text in failures
             if UNAVAILABLE not in text and 'Cannot contact any KDC' not in text]
    assert not other, other[:3]


def test_servers_killed_and_restarted_under_load(live, user):
    load = Load(live, user)
    try:
        for party in (1, 0, 2):
            assert load.wait_for_successes(8), 'no logins before the kill'
            live.servers[party].kill()
            killed = time.monotonic()
            time.sleep(3)
            assert load.successes_between(killed + 1, killed + 3) == 0, 'it takes all three'
            live.servers[party].start()
            assert load.wait_for_successes(8), f'no logins after P{party} came back'
    finally:
        outcomes = load.finish()
    assert_only_outages(outcomes)
    assert live.failed_attempts(user[0]) == 0


def test_all_servers_restarted_together(live, user):
    """Power is back: share stores and nonce marks are what they were, logins work."""
    for server in live.servers:
        server.kill()
    assert_outage(live.kinit(*user, check=False))
    live.start_servers()
    assert recovers(live, user)
    live.admin('verify')


def test_kdc_started_while_a_server_is_down(live, user):
    live.stop_kdc()
    live.servers[2].kill()
    live.start_kdc()
    assert_outage(live.kinit(*user, check=False))
    live.servers[2].start()
    assert recovers(live, user), 'krb5kdc must find the server by itself'


def test_server_stops_when_asked(live, user):
    assert live.servers[1].stop(patience=8), 'SIGTERM must end a server'
    live.servers[1].start()
    assert recovers(live, user)


def test_kdc_killed_and_restarted(live, user):
    live.kinit(*user)
    live.kdc.kill()
    live.kadmind.stop()
    live.start_kdc()
    live.kinit(*user)
    live.run('kinit', '-r', '1d', user[0], stdin=user[1] + '\n')
