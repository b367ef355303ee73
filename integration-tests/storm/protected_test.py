# SPDX-License-Identifier: Apache-2.0
"""login-storm against a realm of ours: through the KDC, and `login-storm jobs` without it."""

import functools
import json

import pytest

import storm
from long_tests import some
from storm import PASSWORD, SERVICE, USERS, make_keytab, user_name

GCM = ['aes128-gcm', 'aes256-gcm']
STANDARD = some(['aes128-cts', 'aes256-cts', 'aes128-sha2', 'aes256-sha2'],
                short=['aes256-cts', 'aes256-sha2'])


@pytest.fixture
def by_keytab(ours):
    return ['--keytab', ours.dir / 'users.keytab', '--enctype', 'aes128-gcm']


def jobs_of(live, *arguments, keytab='users.keytab', enctype='aes128-gcm', status=0):
    """login-storm jobs as the realm's KDC."""
    return storm.run(live, *storm.jobs_target(live), '--keytab', live.dir / keytab, '--enctype',
                     enctype, *arguments, status=status)


@pytest.fixture
def jobs(ours):
    return functools.partial(jobs_of, ours)


@pytest.mark.parametrize('enctype', GCM)
def test_logins_and_service_tickets(ours, enctype):
    done = storm.logins(ours, '--users', 'user%04d', '--number', USERS, '--password-file',
                        ours.dir / 'password', '--enctype', enctype, '--tgs', 1, '--service',
                        SERVICE, '--count', 40)
    assert done.report['logins']['ok'] == done.report['logins']['decrypted'] == 40
    assert done.report['tickets'] == 40


def test_wrong_passwords(ours, by_keytab):
    done = storm.logins(ours, *by_keytab, '--two-step', '--wrong-passwords', '25%', '--count', 80)
    counts = done.report['logins']
    assert counts['refused'] > 0 and counts['failed'] == 0
    assert done.report['errors']['KDC_ERR_PREAUTH_FAILED']['expected'] == counts['refused']


@pytest.mark.parametrize('enctype', STANDARD)
def test_logins_under_the_standard_enctypes(ours_standard, enctype):
    live = ours_standard
    done = storm.logins(live, '--keytab', live.dir / 'users.keytab', '--enctype', enctype,
                        '--two-step', '--tgs', 1, '--service', SERVICE, '--wrong-passwords', '10%',
                        '--count', 40)
    counts = done.report['logins']
    assert counts['ok'] == counts['decrypted'] == 40 - counts['refused']
    assert counts['failed'] == 0 and counts['wrong_answers'] == 0


@pytest.mark.parametrize('enctype', [*GCM, *STANDARD])
def test_jobs_agree_with_the_oracle(request, enctype):
    realm, krbtgt, blocks = (
        ('ours', enctype, {'keystream': 33, 'tags': 4}) if enctype in GCM else
        ('ours_standard', 'aes128-gcm', {'keystream': 12, 'tags': 1, 'cbc': 21}))
    live = request.getfixturevalue(realm)
    pids = [argument for party, server in enumerate(live.servers)
            for argument in ('--pid', f'p{party}={server.pid()}')]
    done = jobs_of(live, '--count', 100, '--timeout', '10s', '--fail-if', 'failed>0', '--fail-if',
                   'servers-cpu>10s', *pids, enctype=enctype)
    assert done.report['logins']['ok'] == 100
    assert done.report['oracle'] == {'compared': 100, 'tickets_opened': 100}
    assert done.report['blocks_per_login'] == blocks
    assert done.report['setup']['krbtgt_enctype'] == krbtgt
    assert set(done.report['cpu']['seconds_per_1000_logins']) == {'p0', 'p1', 'p2'}


def test_unavailable_is_asked_again_if_wanted(ours, by_keytab):
    """krb5kdc, if it knew the servers before, lets requests wait for the first 3 s."""
    ours.servers[1].stop()
    try:
        done = storm.logins(ours, *by_keytab, '--count', 4, '--resend-after', '4s', '--resends', 1,
                            '--again-when-unavailable')
    finally:
        ours.servers[1].start()
        ours.wait_for_servers()
    assert done.report['resends'] == done.report['logins']['failed'] == 4
    # The next login makes krb5kdc try the servers again.
    done = storm.logins(ours, *by_keytab, '--count', 4, '--resend-after', '1s', '--resends', 3,
                        '--again-when-unavailable')
    assert done.report['logins']['ok'] == 4


def test_jobs_compare_a_sample(jobs):
    done = jobs('--count', 60, '--check', '10%', '--clients', 2)
    assert done.report['oracle']['compared'] == 6


def test_jobs_with_a_wrong_key_fail(ours, jobs):
    make_keytab(ours, 'other.keytab', [user_name(0)], PASSWORD + '?', 'aes128-cts')
    done = jobs('--count', 5, '--fail-if', 'failed>0', keytab='other.keytab', status=1)
    assert done.report['verdicts'] == {'BAD_TAG': 5}
    assert done.report['logins'] == {'started': 5, 'ok': 0, 'failed': 5, 'wrong_answers': 0,
                                     'ok_per_s': 0}


def test_jobs_that_cannot_run(ours, jobs):
    """Users without a handle, a list without keys, somebody else's servers."""
    make_keytab(ours, 'stranger.keytab', ['stranger'], PASSWORD, 'aes128-cts')
    (ours.dir / 'empty.json').write_text(json.dumps({'keys': []}))
    for arguments, keytab, why in (
            ((), 'stranger.keytab', 'stranger@EXAMPLE.COM'),
            (('--handles', ours.dir / 'empty.json'), 'users.keytab', 'mpc-admin list --json'),
            (('--servers', '192.0.2.1:1,192.0.2.2:1,192.0.2.3:1'), 'users.keytab',
             '--i-own-this-kdc')):
        assert why in jobs('--count', 5, *arguments, keytab=keytab, status=2).errors


# The last one, for it stops a server.
def test_a_server_that_is_down_is_unavailable_and_no_wrong_answer(ours, jobs, by_keytab):
    ours.servers[2].stop()
    try:
        done = jobs('--duration', '500ms', '--timeout', '300ms', '--fail-if', 'failed>0', status=1)
        assert set(done.report['verdicts']) == {'UNAVAILABLE'}
        done = storm.logins(ours, *by_keytab, '--count', 5)
        assert done.report['errors'] == {'KDC_ERR_SVC_UNAVAILABLE': {
            'code': 29, 'expected': 0, 'unexpected': 5}}
    finally:
        ours.servers[2].start()
        ours.wait_for_servers()
