# SPDX-License-Identifier: Apache-2.0
"""The clock of one server, or of the KDC, leaps while it runs: by a day forward, and back.

clock_shim.c stands for whoever sets the machine's clock."""

import json
import struct
import time

import pytest

import config_files
import daemon
from long_tests import some

SHIM = config_files.CMAKE / 'mpc-server/testing/libmpckdc_clock_shim.so'

DAY = 24 * 3600
PASSWORD = 'a first password'
PATIENCE = 60


class LeapingClock:
    def __init__(self, file):
        self.file = file
        self.set(0)

    def set(self, seconds):
        with open(self.file, 'r+b' if self.file.exists() else 'wb') as file:
            file.write(struct.pack('q', seconds))

    def environment(self):
        return {'LD_PRELOAD': str(SHIM), 'MPCKDC_CLOCK_FILE': str(self.file)}


@pytest.fixture
def leaping(make_realm, tmp_path, monkeypatch):
    """leaping(party): a realm, and the clock of one server, or of krb5kdc. Its certificates are of the day before yesterday."""
    def make(party=None):
        clock = LeapingClock(tmp_path / 'leap')
        live = make_realm()
        with monkeypatch.context() as patch:
            for name, value in clock.environment().items():
                patch.setenv(name, value)
            clock.set(-2 * DAY)
            live.write_files()
        clock.set(0)
        process = live.kdc if party is None else live.servers[party]
        process.env = {**process.env, **clock.environment()}
        live.create()
        return live, clock
    return make


def suspects_its_clock(live, party):
    return 'clock' in (live.server_status()[party].get('degraded') or '')


def listed(live, name):
    keys = json.loads(live.admin('list', '--json', check=False).stdout)['keys']
    return [key for key in keys if key['principal'].startswith(f'{name}@')]


def collections(live, party):
    return (live.log_dir / f'p{party}-audit.jsonl').read_text().count('"call":"collect"')


def logs_in(live, name):
    return live.kinit(name, PASSWORD, check=False).returncode == 0


@pytest.mark.parametrize('party', some(range(3), [1]))
def test_a_day_forward_and_back_collects_nothing(leaping, party):
    """Keys that were deleted just now wait for their day, whatever the clock does."""
    live, clock = leaping(party)
    live.enroll('anna', PASSWORD, '--enctype', 'aes256-gcm')
    live.enroll('bert', PASSWORD, '--enctype', 'aes256-gcm')
    live.kadmin_local('delprinc -force bert')
    for _ in range(4):
        clock.set(DAY + 60)
        assert daemon.wait_until(lambda: suspects_its_clock(live, party), PATIENCE, 0.2)
        time.sleep(7)  # longer than from one look for such keys to the next
        clock.set(0)
        assert daemon.wait_until(lambda: logs_in(live, 'anna'), PATIENCE, 0.1)
        time.sleep(2)
        assert collections(live, party) == 0
    assert [key['parties'] for key in listed(live, 'bert')] == [[0, 1, 2]]


@pytest.mark.parametrize('leap', some([(1, 0), (1, 1), (1, 2), (-1, 0), (-1, 1), (-1, 2)], [(1, 2), (-1, 0)]))
def test_once_it_is_right_again_users_log_in(leaping, leap):
    days, party = leap
    live, clock = leaping(party)
    live.enroll('anna', PASSWORD, '--enctype', 'aes256-gcm')
    assert logs_in(live, 'anna')
    pid = live.servers[party].pid()
    clock.set(days * DAY)
    assert daemon.wait_until(lambda: suspects_its_clock(live, party), PATIENCE, 0.2)
    assert not logs_in(live, 'anna')
    assert live.failed_attempts('anna') == 0
    clock.set(0)
    assert daemon.wait_until(lambda: logs_in(live, 'anna'), PATIENCE, 0.2)
    assert live.servers[party].pid() == pid


@pytest.mark.parametrize('days', some([1, -1], [1]))
def test_the_kdc_meets_a_server_that_was_away_after_its_clock_was_set(leaping, days):
    """A KDC that booted with a wrong clock, which is set while it runs: it looks for its servers by time that passes."""
    live, clock = leaping()
    live.enroll('anna', PASSWORD, '--enctype', 'aes256-gcm')
    assert logs_in(live, 'anna')
    clock.set(days * DAY)
    assert not logs_in(live, 'anna')
    live.servers[1].stop()
    assert not logs_in(live, 'anna')
    clock.set(0)
    live.servers[1].start()
    assert daemon.wait_until(lambda: logs_in(live, 'anna'), PATIENCE, 0.2)
    assert live.failed_attempts('anna') == 0
