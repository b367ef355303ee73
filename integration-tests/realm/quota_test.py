# SPDX-License-Identifier: Apache-2.0
"""Quotas in a whole realm: what a user sees, what is counted, what the administrator sees."""

import json
import re
import signal
import subprocess
import time
import urllib.request

import pytest

import config_files
import daemon
import realm as realm_module

UNAVAILABLE = 'A service is not available'
WRONG = 'Password incorrect'
PATIENCE = 90  # seconds; a token is back after half a minute

# A stock client goes on asking for some ten seconds when a service is not available: with a faster
# rate it would log in on a later try, and the test would see no refusal.
LOW = {'principal_logins': '2/min burst 4', 'principal_failures': '2/min burst 3',
       'principal_reissues': '2/min burst 2'}


@pytest.fixture(scope='module')
def live(tmp_path_factory):
    with realm_module.Realm(
        tmp_path_factory.mktemp('quota') / 'realm',
        realm_module.Options(quota=LOW, metrics=tuple(daemon.free_ports(3)))) as made:
        yield made.create()


def spend(attempt, expected, limit=20):
    """Repeats an attempt until it is refused; returns how often it ended as expected, and when."""
    began = time.monotonic()
    for count in range(limit):
        reply = attempt()
        if UNAVAILABLE in reply.stdout:
            return count, time.monotonic() - began, reply
        expected(reply)
    raise AssertionError(f'{limit} attempts and no quota')


def succeeded(reply):
    assert reply.returncode == 0, reply.stdout


def was_wrong(reply):
    assert reply.returncode and WRONG in reply.stdout, reply.stdout


def assert_rate(count, seconds, burst):
    assert burst <= count <= burst + seconds / 30 + 1, f'{count} in {seconds:.1f} s'


def metric(live, party, name):
    """A metric's value at one server; None if it has no such line."""
    url = f'http://127.0.0.1:{live.options.metrics[party]}/metrics'
    with urllib.request.urlopen(url, timeout=10) as reply:
        text = reply.read().decode()
    found = re.search(rf'^{re.escape(name)} (\S+)$', text, re.MULTILINE)
    return float(found.group(1)) if found else None


def audit_lines(live, party):
    text = (live.log_dir / f'p{party}-audit.jsonl').read_text()
    return [json.loads(line) for line in text.splitlines()]


def jobs_refused_by_quota(live, party):
    return [job for line in audit_lines(live, party) for job in line.get('jobs', [])
            if job['verdict'] == 'QUOTA']


def recovers(attempt):
    return daemon.wait_until(lambda: attempt().returncode == 0, PATIENCE, 0.3)


def test_logins(live, user, new_user):
    name, password = user
    other = new_user(live)
    count, seconds, refused = spend(lambda: live.kinit(name, password, check=False), succeeded)
    assert_rate(count, seconds, burst=4)
    assert WRONG not in refused.stdout
    live.kinit(*other)  # another user is not affected
    assert live.failed_attempts(name) == 0
    kdc_log = (live.log_dir / 'kdc.log').read_text()
    assert f'quota principal_logins (2/min burst 4) of {name}@{live.name} is used up' in kdc_log
    for party in range(3):
        mine = [job for job in jobs_refused_by_quota(live, party) if name in job['detail']]
        assert mine or any('said QUOTA' in job['detail']
                           for job in jobs_refused_by_quota(live, party))
        assert metric(live, party, 'mpckdc_jobs_total{operation="login",verdict="quota"}') >= 1
    assert daemon.wait_until(lambda: sum(
        metric(live, party, 'mpckdc_quota_refusals_total{quota="principal_logins"}')
        for party in range(3)) >= 1, PATIENCE)
    assert recovers(lambda: live.kinit(name, password, check=False))


def test_wrong_passwords(live, user):
    name, password = user
    count, seconds, _ = spend(lambda: live.kinit(name, 'wrong', check=False), was_wrong)
    assert 1 <= count <= 3 + seconds / 30 + 1
    counted = live.failed_attempts(name)
    assert counted >= count
    # The right one is refused too, as an outage; neither counts as a failure.
    refused = live.kinit(name, password, check=False)
    assert UNAVAILABLE in refused.stdout and WRONG not in refused.stdout
    assert live.failed_attempts(name) == counted
    assert recovers(lambda: live.kinit(name, password, check=False))
    assert live.failed_attempts(name) == 0, 'a login that succeeds resets the count as always'


def test_a_refusal_counts_toward_no_lockout(live, user):
    name, password = user
    live.kadmin_local('addpol -maxfailure 1 -failurecountinterval 1h -lockoutduration 1h strict')
    live.kadmin_local(f'modprinc -policy strict {name}')
    spend(lambda: live.kinit(name, password, check=False), succeeded)
    assert live.failed_attempts(name) == 0
    assert recovers(lambda: live.kinit(name, password, check=False)), 'not locked out'


def test_renewals(live, user):
    live.kinit(*user, '-r', '1d', ccache='renewals')
    count, seconds, _ = spend(
        lambda: live.run('kinit', '-R', check=False, env=live.with_ccache('renewals')), succeeded)
    assert_rate(count, seconds, burst=2)
    live.kinit(*user)  # logins have a quota of their own


def rewrite_quota(live, party, old, new):
    live.change_config(party, old, new)
    live.servers[party].send_signal(signal.SIGHUP)


def quotas_of(live, party):
    return live.server_status()[party]['quotas']


def test_sighup_changes_the_rates(live, user):
    low, high = 'principal_logins = "2/min burst 4"', 'principal_logins = "600/min burst 50"'
    rewrite_quota(live, 1, low, high)
    assert daemon.wait_until(lambda: '600/min burst 50' in quotas_of(live, 1), PATIENCE)
    doctor = live.admin('doctor').stdout
    assert 'different quotas' in doctor
    # One server's quota is enough.
    count, seconds, _ = spend(lambda: live.kinit(*user, check=False), succeeded)
    assert_rate(count, seconds, burst=4)
    for party in (0, 2):
        rewrite_quota(live, party, low, high)
    for party in range(3):
        assert daemon.wait_until(lambda: '600/min burst 50' in quotas_of(live, party), PATIENCE)
    assert 'different quotas' not in live.admin('doctor').stdout
    time.sleep(1.5)  # the engines take the new rates with their next heartbeat
    for _ in range(10):
        live.kinit(*user)
    for party in range(3):
        assert any(line['kind'] == 'quotas' for line in audit_lines(live, party))
        rewrite_quota(live, party, high, low)


def test_a_damaged_file_changes_nothing(live):
    before = quotas_of(live, 2)
    rewrite_quota(live, 2, '[quota]\n', '[quota]\nprincipal_logons = "unlimited"\n')
    log = live.servers[2].log
    assert daemon.wait_until(
        lambda: 'unknown key [quota] principal_logons' in log.read_text(), PATIENCE)
    assert quotas_of(live, 2) == before
    check = subprocess.run(
        [config_files.mpc_program('mpc-server'), '--check-config', '--config',
         live.dir / 'p2/mpc-server.toml'], capture_output=True, text=True, check=False)
    assert check.returncode == 2
    assert re.search(r'mpc-server\.toml:\d+: unknown key \[quota\] principal_logons', check.stderr)
    rewrite_quota(live, 2, 'principal_logons = "unlimited"\n', '')


def test_clock_differences_are_shown(live):
    for party, status in enumerate(live.server_status()):
        assert abs(status['peer_skew_us_next']) < 5e6 and abs(status['peer_skew_us_prev']) < 5e6
        assert status['degraded'] == ''
        assert metric(live, party, 'mpckdc_state{what="clock_suspect"}') == 0
        for peer in range(3):
            skew = metric(live, party, f'mpckdc_peer_clock_skew_seconds{{peer="p{peer}"}}')
            assert (skew is None) == (peer == party)
    doctor = live.admin('doctor').stdout
    for party in range(3):
        assert f'party {(party + 1) % 3} differs from party {party}' in doctor


def test_default_quotas_disturb_no_ordinary_use(new_realm, new_user):
    ordinary = new_realm(quota={})
    assert all('principal_logins 60/min burst 120' in status['quotas']
               for status in ordinary.server_status())
    user = new_user(ordinary)
    for _ in range(15):
        ordinary.kinit(*user)
    assert WRONG in ordinary.kinit(user[0], 'wrong', check=False).stdout
    assert sum(status['jobs_over_quota'] for status in ordinary.server_status()) == 0
