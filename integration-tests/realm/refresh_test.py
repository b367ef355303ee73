# SPDX-License-Identifier: Apache-2.0
"""Shares are made anew while users log in, and servers are killed on the way. What was stolen from
one server before a refresh is worth nothing beside what is stolen from another after it."""

import json
import shutil
import signal
import threading

import pytest

import config_files
import daemon
import keys
import storefile
from long_tests import some

ALICE = ('alice', 'a first password')
BOB = ('bob', 'another password')


@pytest.fixture(scope='module')
def live(own_realm):
    own_realm.enroll(*ALICE)
    own_realm.enroll(*BOB)
    return own_realm


def epochs(live):
    return [status['epoch'] for status in live.server_status()]


def refresh(live, *flags, check=True):
    return live.admin('refresh', *flags, check=check)


def steal(live, party, name):
    """A copy of a server's store and key file."""
    folder = live.dir / name
    folder.mkdir()
    live.servers[party].stop()  # a thief of a disk, not of a running machine
    shutil.copy(live.dir / f'p{party}/data/shares.mdb', folder / 'shares.mdb')
    shutil.copy(live.dir / f'p{party}/store.key', folder / 'store.key')
    live.servers[party].start()
    live.wait_for_servers()
    return storefile.read_store(folder / 'shares.mdb', folder / 'store.key', live.name, party,
                                config_files.CLUSTER)


def base_keys(live, one, other):
    """What P0's and P1's stores come to, put together."""
    return {storefile.join(record.base, other[handle].base) for handle, record in one.items()
            if record.principal == f'{ALICE[0]}@{live.name}'}


def real_keys(live, store):
    principal = f'{ALICE[0]}@{live.name}'
    return {keys.string_to_key(record.enctype, ALICE[1], keys.principal_salt(principal))
            for record in store.values() if record.principal == principal}


def test_logins_go_on_across_refreshes(live):
    before = [steal(live, party, f'before{party}') for party in (0, 1)]
    real = real_keys(live, before[0])
    assert real and base_keys(live, *before) == real, 'of one epoch two thieves have everything'
    stop, failed, good = threading.Event(), [], []

    def log_in():
        while not stop.is_set():
            done = live.kinit(*BOB, ccache='loop', check=False)
            (good if done.returncode == 0 else failed).append(done.stdout)

    loop = threading.Thread(target=log_in)
    loop.start()
    try:
        refresh(live)
    finally:
        stop.set()
        loop.join()
    assert not failed and len(good) > 5, failed
    assert epochs(live) == [2, 2, 2]
    for party in range(3):
        lines = (live.dir / f'p{party}/store.key').read_text().splitlines()
        assert [line.split()[0] for line in lines if line[0] != '#'] == ['2']
    live.kinit(*ALICE)
    live.admin('verify')
    after = [steal(live, party, f'after{party}') for party in (0, 1)]
    assert base_keys(live, *after) == real
    assert not base_keys(live, before[0], after[1]) & real
    assert not base_keys(live, after[0], before[1]) & real


def test_a_store_of_before_is_refused_and_says_what_to_do(live):
    """With its own key file of then: without it it does not even open."""
    party = 2
    live.servers[party].stop()
    backup = live.dir / 'backup'
    shutil.copytree(live.dir / f'p{party}', backup)
    live.servers[party].start()
    live.wait_for_servers()
    now = epochs(live)[0]
    refresh(live, '--no-wait')
    assert daemon.wait_until(lambda: not any(s['refreshing'] for s in live.server_status()), 60, 0.5)
    live.servers[party].stop()
    newest = live.dir / 'newest'
    shutil.move(live.dir / f'p{party}', newest)
    shutil.copytree(backup, live.dir / f'p{party}')
    live.servers[party].start()
    assert daemon.wait_until(lambda: 'put back from a backup' in live.servers[0].log_tail(20), 30)
    assert live.kinit(*ALICE, check=False).returncode != 0
    assert live.failed_attempts('alice') == 0
    live.servers[party].stop()
    shutil.rmtree(live.dir / f'p{party}')
    shutil.move(newest, live.dir / f'p{party}')
    live.servers[party].start()
    live.wait_for_servers()
    live.kinit(*ALICE)
    assert epochs(live) == [now + 1] * 3


@pytest.mark.parametrize('party', some(range(3), short=[1]))
def test_a_server_killed_amid_a_refresh(live, party):
    """Wherever it was: the three end in one epoch, and everybody logs in."""
    for delay in (0, 0.01, 0.03):
        assert daemon.wait_until(lambda: not any(s['refreshing'] for s in live.server_status()), 90,
                                 0.5)
        killer = threading.Timer(delay, lambda: live.servers[party].send_signal(signal.SIGKILL))
        killer.start()
        refresh(live, '--no-wait', check=False)
        killer.join()
        live.servers[party].stop()
        live.servers[party].start()
        live.wait_for_servers()
        live.kinit(*ALICE)
        assert live.kinit('alice', 'wrong', check=False).returncode != 0
        assert len(set(epochs(live))) == 1
    live.admin('verify')


def test_a_key_file_that_cannot_be_written(live):
    """The folder is not the server's: the refresh fails and says so, logins go on."""
    assert daemon.wait_until(lambda: not any(s['refreshing'] for s in live.server_status()), 90, 0.5)
    blocked = live.dir / 'p1/store.key.new'
    blocked.mkdir()
    (blocked / 'x').touch()
    before = epochs(live)
    done = refresh(live, '--no-wait', check=False)
    assert done.returncode != 0
    assert 'store.key.new' in done.stderr, done.stderr
    live.wait_for_servers()
    live.kinit(*ALICE)
    assert epochs(live) == before
    shutil.rmtree(blocked)
    result = json.loads(refresh(live, '--no-wait', '--json').stdout)
    assert result['epoch'] == before[0] + 1
