# SPDX-License-Identifier: Apache-2.0
"""The runbooks for a party that runs two machines on one database (deploy/runbooks/epochs.md,
deploy/postgresql.md), done word by word."""

import shutil
import threading
import time

import pytest

import daemon
import postgres
import triples
from long_tests import LONG
from triples import machine
from triples_night_test import start

pytestmark = LONG

ALICE = ('alice', 'a first password')


@pytest.fixture(scope='module')
def parties():
    made = triples.postgres_or_skip(pytest)
    yield made
    made.remove()


@pytest.fixture(scope='module')
def live(parties, tmp_path_factory):
    with triples.two_triples(tmp_path_factory.mktemp('pair') / 'realm', parties) as made:
        for user in range(20):
            made.enroll(f'user{user}', f'password {user}')
        made.enroll(*ALICE)
        yield made


def settled(live):
    return daemon.wait_until(lambda: not any(
        status.get('refreshing') or status.get('receiving') for status in live.server_status()),
        60, 0.5)


def folder(live, number):
    return live.dir / live.machines()[number]


def forget_database(live, number):
    """Its DATA_DIR/database is removed."""
    (folder(live, number) / 'data/database').unlink(missing_ok=True)


def stop_party(live, party):
    for triple in range(2):
        live.servers[machine(triple, party)].stop()


def empty_database(live, parties, party):
    cluster = parties.clusters[party]
    cluster.sql(f'DROP DATABASE p{party} WITH (FORCE)')
    cluster.sql(f'CREATE DATABASE p{party} OWNER mpcowner')
    done = postgres.migrate(live, cluster, party)
    assert done.returncode == 0, done.stderr


def lose_database(live, parties, party, first):
    stop_party(live, party)
    empty_database(live, parties, party)
    forget_database(live, first)
    (folder(live, first) / 'store.key').unlink()
    start(live, first)


def bring_back(live, first, other):
    """The party's other machine, when the first one has its keys."""
    shutil.copy2(folder(live, first) / 'store.key', folder(live, other) / 'store.key')
    forget_database(live, other)
    start(live, other)
    triples.wait_until_healthy(live)
    assert settled(live)


def all_log_in(live):
    for user in range(0, 20, 5):
        live.kinit(f'user{user}', f'password {user}')
    live.kinit(*ALICE)
    assert live.failed_attempts('alice') == 0


@pytest.mark.parametrize('triple', [1, 0])
def test_a_partys_database_is_lost(live, parties, triple, party=1):
    """"Where the party ran several machines on a database that is lost"."""
    assert settled(live)
    first, other = machine(triple, party), machine(1 - triple, party)
    lose_database(live, parties, party, first)
    live.admin('replace-party', str(party), timeout=300)
    bring_back(live, first, other)
    all_log_in(live)
    live.admin('refresh')
    live.admin('verify')
    doctor = live.admin('doctor', check=False)
    assert doctor.returncode == 0, doctor.stdout


def test_a_database_of_before_the_refresh(live, parties, party=1):
    """Its file is put back from a copy. "To go on with it all the same": it must say that it cannot
    and what to do instead."""
    assert settled(live)
    cluster = parties.clusters[party]
    stop_party(live, party)
    cluster.crash()
    copy = cluster.dir / 'copy'
    shutil.copytree(cluster.dir / 'data', copy, symlinks=True)
    cluster.start()
    for triple in range(2):
        start(live, machine(triple, party))
    triples.wait_until_healthy(live)
    live.admin('refresh')
    assert settled(live)
    stop_party(live, party)
    cluster.crash()
    shutil.rmtree(cluster.dir / 'data')
    shutil.copytree(copy, cluster.dir / 'data', symlinks=True)
    for path in [cluster.dir / 'data', *(cluster.dir / 'data').rglob('*')]:
        shutil.chown(path, 'nobody', 'nogroup')
    cluster.start()
    said = []
    for triple in range(2):
        number = machine(triple, party)
        forget_database(live, number)
        live.servers[number].start()
        daemon.wait_until(lambda: not live.servers[number].is_running(), 10)
        said.append(live.servers[number].log_tail(3))
    for text in said:
        assert 'replace-party' in text, text
    first, other = machine(0, party), machine(1, party)
    lose_database(live, parties, party, first)
    live.admin('replace-party', str(party), timeout=300)
    bring_back(live, first, other)
    all_log_in(live)


def test_a_lone_login_waits_for_a_database_that_is_read_only_for_a_moment(live, parties):
    """As long as the outage is young. What the two others wrote down of a try that the third could
    not write must not use the login up."""
    triples.wait_until_healthy(live)
    assert settled(live)
    live.kinit(*ALICE)
    cluster = parties.clusters[1]
    for _ in range(5):
        cluster.sql("ALTER DATABASE p1 SET default_transaction_read_only = on")
        cluster.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'p1'")
        login = threading.Thread(target=lambda: said.append(live.kinit(*ALICE, check=False)))
        said = []
        login.start()
        time.sleep(1)
        cluster.sql("ALTER DATABASE p1 SET default_transaction_read_only = off")
        login.join()
        assert said[0].returncode == 0, said[0].stdout
        time.sleep(2)


@pytest.mark.parametrize('victim', [1, 0])
def test_a_database_crashes_while_a_party_is_replaced(live, parties, victim, party=1):
    """The newcomer's, or another's. "Interrupted, it goes on by itself; replace-party again watches and
    refreshes"."""
    assert settled(live)
    first, other = machine(0, party), machine(1, party)
    lose_database(live, parties, party, first)
    replacing = threading.Thread(target=lambda: said.append(
        live.admin('replace-party', str(party), timeout=300, check=False)))
    said = []
    replacing.start()
    time.sleep(1.2)
    parties.clusters[victim].kill()
    time.sleep(2)
    parties.clusters[victim].start()
    replacing.join()
    assert daemon.wait_until(lambda: live.admin('replace-party', str(party), timeout=300,
                                                check=False).returncode == 0, 60, 2), said[0].stderr
    bring_back(live, first, other)
    all_log_in(live)
    live.admin('verify')


def test_refresh_with_a_slow_database(live, parties, party=1):
    """A commit takes a second: its standby is far away."""
    assert settled(live)
    cluster = parties.clusters[party]
    slow = cluster.add_standby()
    slow.sql("ALTER SYSTEM SET recovery_min_apply_delay = '1s'")
    slow.sql('SELECT pg_reload_conf()')
    cluster.sql("ALTER SYSTEM SET synchronous_commit = 'remote_apply'")
    cluster.sql('SELECT pg_reload_conf()')
    try:
        begin = time.monotonic()
        cluster.sql('CREATE TABLE slow (a int)')
        assert time.monotonic() - begin > 1
        before = live.server_status()[0]['epoch']
        done = live.admin('refresh', check=False, timeout=200)
        assert daemon.wait_until(
            lambda: {s.get('epoch') for s in live.server_status()} == {before + 1}, 60, 1)
        for user in range(4):
            live.kinit(f'user{user}', f'password {user}')
        assert done.returncode == 0, done.stderr
    finally:
        cluster.sql("ALTER SYSTEM RESET synchronous_commit")
        cluster.sql("ALTER SYSTEM RESET synchronous_standby_names")
        cluster.sql('SELECT pg_reload_conf()')
    assert settled(live)
    all_log_in(live)
