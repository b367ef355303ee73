# SPDX-License-Identifier: Apache-2.0
"""Two triples, each party's shares in a PostgreSQL with a synchronous standby. While a primary is
killed and its standby promoted no triple can answer: logins wait, and none fails."""

import time

import pytest

import daemon
import triples
from triples_test import Logins

PROMOTION = 10  # seconds without an answer, at most
USERS = 4
HELD = 'no triple serves; requests wait'


@pytest.fixture(scope='module')
def parties():
    made = triples.postgres_or_skip(pytest, standbys=(0, 1))
    yield made
    made.remove()


@pytest.fixture(scope='module')
def live(parties, tmp_path_factory):
    with triples.two_triples(tmp_path_factory.mktemp('promotion') / 'realm', parties) as made:
        yield made


@pytest.mark.parametrize('party', [0, 1])
def test_no_login_fails_while_a_standby_is_promoted(live, parties, new_user, party):
    users = [new_user(live) for _ in range(USERS)]
    cluster = parties.clusters[party]
    triples.wait_until_healthy(live)
    kdc_log = live.log_dir / 'kdc.log'
    before = len(kdc_log.read_text())
    with Logins(live, users) as logins:
        cluster.kill()
        told = daemon.wait_until(lambda: HELD in kdc_log.read_text()[before:], PROMOTION / 2, 0.1)
        time.sleep(1)
        cluster.standby.promote()
        time.sleep(4)
    print(f'longest silence {logins.silence():.2f} s of {len(logins.ends)} logins')
    assert told, 'a triple served without the database: nothing was tested'
    assert 1 < logins.silence() < PROMOTION
    triples.wait_until_healthy(live)
    live.admin('verify')
