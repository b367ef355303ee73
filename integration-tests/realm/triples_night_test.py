# SPDX-License-Identifier: Apache-2.0
"""Two triples on a bad night: a machine is down, or set up otherwise than its party's first one. What
is said must name the way out."""

import pytest

import config_files
import daemon
import triples
from long_tests import LONG
from triples import OneTripleKdc, machine
from triples_test import AS_REP, KRB_ERROR, recorded_login, send

pytestmark = LONG

ALICE = ('alice', 'a first password')


@pytest.fixture
def live(tmp_path):
    parties = triples.postgres_or_skip(pytest)
    try:
        with triples.two_triples(tmp_path / 'realm', parties) as made:
            made.enroll(*ALICE)
            yield made
    finally:
        parties.remove()


def start(live, number):
    """As systemd does: once more where a loaded database kept it waiting for too long."""
    server, port = live.servers[number], live.ports.clients[number]

    def listens():
        if not server.is_running():
            server.start()
        return server.listens_on(port)
    assert daemon.wait_until(listens, 60, 1), server.log_tail()


def test_refresh_twice_with_a_machine_down(live):
    """The first keeps the old key for it; the second is refused at once, and says what to do."""
    absent = live.servers[machine(1, 0)]
    absent.stop()
    assert 'is kept for the machines of triples 1' in live.admin('refresh').stderr
    again = live.admin('refresh', check=False, timeout=30)
    assert again.returncode == 4 and 'next: start those machines' in again.stderr, again.stderr
    said = live.admin('doctor', check=False).stdout
    assert 'are in share epochs' not in said, said
    start(live, machine(1, 0))
    triples.wait_until_healthy(live)
    assert daemon.wait_until(
        lambda: not any(server['refreshing'] for server in live.server_status()), 30, 0.5)
    live.admin('refresh')


def test_a_replay_beside_a_smaller_clock_skew(live):
    """No other KDC gets a second answer, though the machines were set up differently."""
    config_files.mpc_ca('issue', live.dir / 'ca', '--realm', live.name, '--role', 'kdc', '--name',
                        'other')
    for party in range(3):
        server = live.servers[machine(1, party)]
        server.stop()
        live.change_config(machine(1, party), '[quota]', '[policy]\nclock_skew = "200s"\n\n[quota]')
        start(live, machine(1, party))
    triples.wait_until_healthy(live)
    said = live.admin('doctor', check=False).stdout
    assert 'differ in [policy] clock_skew: 5m / 3m20s' in said, said
    with OneTripleKdc(live, 0) as kdc, OneTripleKdc(live, 1, 'stranger', 'kdc-other') as stranger:
        request = recorded_login(live, kdc, ALICE)
        answer = send(stranger.port, request)[:1]
        assert answer != AS_REP and answer == KRB_ERROR
