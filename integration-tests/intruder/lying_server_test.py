# SPDX-License-Identifier: Apache-2.0
"""One of the three servers is the intruder's, and alters what it sends to the honest KDC."""

import config_files
import daemon
import pytest
from start_world import start

LIAR = 1
ALICE = ('alice', 'known to alice alone')
UNAVAILABLE = 'A service is not available'


@pytest.fixture
def live(tmp_path_factory):
    with start(tmp_path_factory.mktemp('liar')) as realm:
        realm.enroll(*ALICE)
        server = realm.servers[LIAR]
        server.stop()
        server.argv[0] = config_files.mpc_program('mpc-server-control')
        server.start()
        assert daemon.wait_until(lambda: realm.kinit(*ALICE, check=False).returncode == 0, 30, 0.2)
        yield realm


def test_a_server_that_alters_its_answers_is_named_and_nothing_is_taken(live):
    control, log = live.dir / 'dropped-defences', live.log_dir / 'kdc.log'
    assert 'altered its answer' not in log.read_text()
    control.write_text('Honesty\n')
    reply = live.kinit(*ALICE, check=False)
    assert reply.returncode and UNAVAILABLE in reply.stdout, reply.stdout
    assert live.failed_attempts(ALICE[0]) == 0
    line = next(line for line in log.read_text().splitlines() if 'altered its answer' in line)
    assert f'{live.ports.clients[LIAR]} (party {LIAR})' in line
    assert 'nothing of' in line and 'taken' in line
    control.write_text('')
    live.kinit(*ALICE)
