# SPDX-License-Identifier: Apache-2.0
"""Nothing is deleted at once: a dump of yesterday, servers that collect at different times."""

import json
import time

import pytest

import daemon
from long_tests import LONG

UNAVAILABLE = 'A service is not available'
WRONG = 'Password incorrect'
USERS = ('anna', 'bert', 'cleo')
OLD, NEW = 'the first password', 'the second password'
PATIENCE = 60  # seconds


def grace(time):
    return f'\n[policy]\ndelete_grace = "{time}"\n'


@pytest.fixture
def realm_with(make_realm):
    """realm_with(grace, of_p1): a realm, yesterday's dump and today's; since when keys are deleted."""
    def make(time_of_all, of_p1=None):
        live = make_realm(extra_server=grace(time_of_all))
        live.create(prepare=lambda: of_p1 and live.change_config(
            1, f'"{time_of_all}"', f'"{of_p1}"'))
        for name in USERS:
            live.enroll(name, OLD, '--enctype', 'aes256-gcm')
        yesterday = live.dump(live.dir / 'yesterday')
        live.kadmin_local(f'cpw -pw "{NEW}" anna')
        live.enroll('bert', NEW, '--enctype', 'aes256-gcm', '--replace', '--delete-old')
        live.kadmin_local('delprinc -force cleo')
        return live, yesterday, live.dump(live.dir / 'today')
    return make


def load(live, dump):
    live.run('kdb5_util', 'load', dump)


def deleted(live):
    return json.loads(live.admin('gc', '--json', check=False).stdout)['keys']


def listed(live, name):
    keys = json.loads(live.admin('list', '--json', check=False).stdout)['keys']
    return [key for key in keys if key['principal'].startswith(f'{name}@')]


def assert_today(live):
    for name in ('anna', 'bert'):
        live.kinit(name, NEW)
        assert WRONG in live.kinit(name, OLD, check=False).stdout
    assert 'not found in Kerberos database' in live.kinit('cleo', OLD, check=False).stdout


def test_yesterdays_dump_lets_everybody_in_with_yesterdays_password(realm_with):
    live, yesterday, today = realm_with('1d')
    assert_today(live)
    assert {key['principal'].split('@')[0] for key in deleted(live)} == set(USERS)
    assert '0 bad' in live.admin('doctor').stdout

    load(live, yesterday)
    for name in USERS:
        live.kinit(name, OLD)
        assert WRONG in live.kinit(name, NEW, check=False).stdout
    doctor = live.admin('doctor', check=False)
    assert doctor.returncode == 1
    assert 'names keys that were replaced or deleted' in doctor.stdout
    assert 'mpc-admin gc --keep' in doctor.stdout
    assert live.admin('gc', check=False).returncode == 1
    assert 'NAMES IT' in live.admin('gc', check=False).stdout
    spared = live.admin('gc', '--now', '--yes')
    assert ' 0 keys deleted' in ' ' + spared.stdout and 'are named by' in spared.stderr

    load(live, today)
    assert_today(live)
    assert '0 bad' in live.admin('doctor').stdout
    live.admin('verify')
    status = live.server_status()
    assert all(server['retired'] == len(deleted(live)) for server in status)

    live.admin('gc', '--now', '--yes')
    assert not deleted(live)
    assert_today(live)
    load(live, yesterday)
    for name in USERS:
        outage = live.kinit(name, OLD, check=False)
        assert outage.returncode and UNAVAILABLE in outage.stdout and WRONG not in outage.stdout
        assert live.failed_attempts(name) == 0


def test_after_the_grace_time_they_are_gone(realm_with):
    live, yesterday, today = realm_with('2s')
    assert daemon.wait_until(lambda: not deleted(live), PATIENCE, 0.5)
    assert not listed(live, 'cleo') and len(listed(live, 'bert')) == 1
    assert_today(live)
    assert '0 bad, 0 warnings' in live.admin('doctor').stdout
    for party in range(3):
        audit = (live.log_dir / f'p{party}-audit.jsonl').read_text()
        assert '"call":"collect"' in audit
    load(live, yesterday)
    for name in USERS:
        outage = live.kinit(name, OLD, check=False)
        assert outage.returncode and UNAVAILABLE in outage.stdout and WRONG not in outage.stdout
        assert live.failed_attempts(name) == 0
    load(live, today)
    assert_today(live)


@LONG
def test_one_server_collects_sooner(realm_with):
    """Its clock, or its configuration, is another: the key is dead for all jobs, and nobody's
    password is wrong."""
    live, yesterday, today = realm_with('1d', of_p1='2s')
    assert daemon.wait_until(
        lambda: all(key['parties'] == [0, 2] for key in listed(live, 'cleo')), PATIENCE, 0.5)
    assert_today(live)
    doctor = live.admin('doctor')
    assert 'for different times' in doctor.stdout and '0 bad' in doctor.stdout
    load(live, yesterday)
    for name in USERS:
        outage = live.kinit(name, OLD, check=False)
        assert outage.returncode and UNAVAILABLE in outage.stdout and WRONG not in outage.stdout
        assert live.failed_attempts(name) == 0
    doctor = live.admin('doctor', check=False)
    assert doctor.returncode == 1 and 'missing on a server' in doctor.stdout
    kept = live.admin('gc', '--keep', check=False)
    assert kept.returncode == 1 and 'has collected these already' in kept.stderr
    live.enroll('cleo', NEW, '--replace', '--enctype', 'aes256-gcm')
    live.kinit('cleo', NEW)
    load(live, today)
    assert_today(live)


@LONG
def test_an_old_database_that_is_to_stay(realm_with):
    """gc --keep: what it names is in use again, also when the grace time is over."""
    live, yesterday, _ = realm_with('25s')
    since = time.monotonic()
    load(live, yesterday)
    kept = live.admin('gc', '--keep')
    assert 'keys are in use again' in kept.stdout
    # Those of today are nobody's now.
    live.admin('doctor', '--fix', check=False)
    time.sleep(max(0, since + 25 - time.monotonic()))
    assert daemon.wait_until(lambda: not deleted(live), PATIENCE, 0.5)
    for name in USERS:
        live.kinit(name, OLD)
    assert '0 bad' in live.admin('doctor').stdout
    live.admin('verify')
