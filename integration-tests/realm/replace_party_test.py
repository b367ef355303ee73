# SPDX-License-Identifier: Apache-2.0
"""A server's disk is lost. Its party is rebuilt from the two others, and nobody enrols anew."""

import shutil
import signal
import threading

import pytest

import config_files
import daemon
import storefile
from long_tests import LONG, some

ALICE = ('alice', 'a first password')
USERS = 40


@pytest.fixture(scope='module')
def live(own_realm):
    own_realm.enroll(*ALICE)
    for user in range(USERS):
        own_realm.enroll(f'user{user}', f'password {user}')
    return own_realm


def lose_disk(live, party):
    """Returns what lay on it, for a thief."""
    live.servers[party].stop()
    lost = live.dir / f'lost{party}'
    shutil.rmtree(lost, ignore_errors=True)
    shutil.copytree(live.dir / f'p{party}', lost)
    live.lose_disk(party)
    return storefile.read_store(lost / 'data/shares.mdb', lost / 'store.key', live.name, party,
                                config_files.CLUSTER)


def settled(live):
    return daemon.wait_until(lambda: not any(status.get('refreshing') or status.get('receiving')
                                             for status in live.server_status()), 120, 0.5)


def logs_in(live, user, password):
    return live.kinit(user, password, check=False).returncode == 0


@pytest.mark.parametrize('party', some(range(3), short=[0]))
def test_a_lost_disk(live, party):
    assert settled(live)
    before = storefile.open_store(live, (party + 1) % 3)
    stolen = lose_disk(live, party)
    refused = live.kinit(*ALICE, check=False)
    assert refused.returncode != 0 and 'not available' in refused.stdout, refused.stdout
    said = live.admin('replace-party', str(party), timeout=300).stdout
    assert 'each verified on shares' in said, said
    assert live.failed_attempts('alice') == 0
    for user in range(0, USERS, 7):
        assert logs_in(live, f'user{user}', f'password {user}')
    assert logs_in(live, *ALICE)
    assert not logs_in(live, 'user3', 'password 4')
    assert live.admin('doctor').returncode == 0
    # The thief of the lost disk, with what the next one has now: nothing; with what it had then: all.
    handle = next(h for h, record in stolen.items() if record.principal == f'alice@{live.name}')
    then = storefile.join(stolen[handle].base, before[handle].base)
    now = storefile.open_store(live, (party + 1) % 3)
    assert then != storefile.join(stolen[handle].base, now[handle].base)
    after = storefile.open_store(live, party)
    assert then == storefile.join(after[handle].base, now[handle].base), 'the key is what it was'


@LONG
def test_it_is_killed_amid(live):
    """The newcomer, then one of the two others: it goes on by itself."""
    for victim in (1, 0, 2):
        assert settled(live)
        lose_disk(live, 1)
        killer = threading.Timer(0.05 * victim, lambda: live.servers[victim].send_signal(signal.SIGKILL))
        killer.start()
        live.admin('replace-party', '1', '--no-wait', check=False)
        killer.join()
        live.servers[victim].stop()
        live.servers[victim].start()
        if not daemon.wait_until(lambda: all(s.get('initialised') for s in live.server_status()), 5, 0.3):
            live.admin('replace-party', '1', '--no-wait')
        live.wait_for_servers()
        assert settled(live)
        assert logs_in(live, *ALICE)
    live.admin('verify')


def test_what_cannot_be_replaced_says_why(live):
    assert settled(live)
    done = live.admin('replace-party', '2', check=False)
    assert done.returncode != 0 and 'what is replaced must be empty' in done.stderr, done.stderr
    done = live.admin('replace-party', '7', check=False)
    assert done.returncode == 2 and 'PARTY is 0, 1 or 2' in done.stderr, done.stderr
    live.servers[2].stop()
    done = live.admin('replace-party', '2', check=False)
    assert done.returncode == 3, done.stderr
    live.servers[2].start()
    live.wait_for_servers()
    assert logs_in(live, *ALICE)
