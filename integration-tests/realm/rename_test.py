# SPDX-License-Identifier: Apache-2.0
"""renprinc of users whose keys three real servers hold: nobody but they, under the new name alone,
whatever is killed on the way, refreshed, rebuilt or put back afterwards."""

import json
import random
import shutil
import signal
import subprocess
import threading
import time

import pytest

import config_files
import daemon
import long_tests
import realm as realm_module

PASSWORD = 'the only password'
SERVICE = 'host/www.example.com'
ROUNDS = 24 if long_tests.ENABLED else 5
GONE = 'not found in Kerberos database'


@pytest.fixture(scope='module')
def live(tmp_path_factory):
    options = realm_module.Options(wrapped='klmdb', extra_server='\n[policy]\ndelete_grace = "1h"\n')
    with realm_module.Realm(tmp_path_factory.mktemp('rename') / 'realm', options) as one:
        one.create()
        one.add_service(SERVICE)
        yield one


def rename(live, old, new, check=True):
    result = live.kadmin_local(f'renprinc -force {old} {new}', check=False)
    assert not check or result.returncode == 0, result.stdout
    return result.stdout


def names_in(live, names, password=PASSWORD):
    """By which of the names the password lets somebody in. By no other is it a wrong password, or
    an outage."""
    found = []
    for name in names:
        result = live.kinit(name, password, check=False)
        assert result.returncode == 0 or GONE in result.stdout, (name, result.stdout)
        found += [name] if result.returncode == 0 else []
    return found


def doctor(live):
    """What it finds."""
    said = json.loads(live.admin('doctor', '--json', check=False).stdout)
    return [one for one in said['findings'] if one['level'] != 'ok']


def test_the_password_stays_and_the_name_changes(live):
    live.kadmin_local('addpol -history 3 three')
    live.kadmin_local('addprinc -policy three -pw "an older one" anna')
    live.kadmin_local(f'cpw -pw "{PASSWORD}" anna')
    yesterday = live.dump(live.dir / 'yesterday')
    live.kinit('anna', PASSWORD, '-r', '1d', '-f', ccache='before')
    rename(live, 'anna', 'anna.berg')
    assert names_in(live, ['anna', 'anna.berg']) == ['anna.berg']
    assert 'Password incorrect' in live.kinit('anna.berg', 'wrong', check=False).stdout
    live.kvno(SERVICE)
    assert doctor(live) == []
    # The history went along: with the salt of the old name an old password is an old key again.
    rename(live, 'anna.berg', 'anna')
    for password in (PASSWORD, 'an older one'):
        said = live.kadmin_local(f'cpw -pw "{password}" anna', check=False).stdout
        assert 'Cannot reuse password' in said, said
    rename(live, 'anna', 'anna.berg')
    assert doctor(live) == []
    live.admin('verify')

    # A ticket of before goes on under the old name till it ends, as on any realm.
    live.kvno(SERVICE, ccache='before')
    assert 'Default principal: anna@' in live.klist(ccache='before').stdout
    live.run('kinit', '-R', env=live.with_ccache('before'))
    live.kvno(SERVICE, ccache='before')

    # The audit logs say who became whom, at all three.
    for party in range(3):
        lines = [json.loads(line) for line in
                 (live.log_dir / f'p{party}-audit.jsonl').read_text().splitlines()]
        acts = [line for line in lines if line.get('call') == 'RenameKeys']
        assert len(acts) == 3 and acts[-1]['principal'] == f'anna@{live.name}'
        assert acts[-1]['new_principal'] == f'anna.berg@{live.name}'

    # Yesterday's database names the old one: she is that there, for the grace time.
    today = live.dump(live.dir / 'today')
    live.run('kdb5_util', 'load', yesterday)
    assert names_in(live, ['anna', 'anna.berg']) == ['anna']
    assert any('replaced or deleted' in one['what'] for one in doctor(live))
    live.run('kdb5_util', 'load', today)
    assert names_in(live, ['anna', 'anna.berg']) == ['anna.berg']
    assert doctor(live) == []


def test_shares_are_made_anew_and_servers_rebuilt(live):
    """The copies are keys like others: a refresh, a backup of before, a lost disk."""
    live.enroll('bert', PASSWORD)
    live.servers[1].stop()
    shutil.copytree(live.dir / 'p1', live.dir / 'p1-before')
    live.servers[1].start()
    live.wait_for_servers()
    rename(live, 'bert', 'bert.ohm')
    live.servers[1].stop()
    shutil.rmtree(live.dir / 'p1/data')
    shutil.copytree(live.dir / 'p1-before/data', live.dir / 'p1/data')
    live.servers[1].start()
    live.wait_for_servers()
    assert live.kinit('bert.ohm', PASSWORD, check=False).returncode
    live.admin('catch-up', '1')
    assert names_in(live, ['bert', 'bert.ohm']) == ['bert.ohm']
    live.admin('refresh')
    assert names_in(live, ['bert', 'bert.ohm']) == ['bert.ohm']
    live.lose_disk(2)
    live.admin('replace-party', '2', timeout=300)
    assert names_in(live, ['bert', 'bert.ohm']) == ['bert.ohm']
    rename(live, 'bert.ohm', 'bert')
    assert names_in(live, ['bert', 'bert.ohm']) == ['bert']
    live.admin('verify')


def test_it_is_killed_amid(live):
    """kadmin, at any moment; one of the servers, in the midst."""
    rng = random.Random(7)
    took = []
    for number in range(ROUNDS):
        old, new = f'carl{number}', f'carla{number}'
        live.enroll(old, PASSWORD)
        began = time.monotonic()
        process = subprocess.Popen(
            [config_files.krb5_program('kadmin.local'), 'renprinc', '-force', old, new],
            env=live.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if number % 3 == 2:
            victim = live.servers[number % 2]
            timer = threading.Timer(rng.uniform(0, max(took)), lambda: victim.send_signal(signal.SIGKILL))
            timer.start()
            process.communicate(timeout=120)
            timer.join()
            victim.stop()
            victim.start()
            live.wait_for_servers()
        elif number == 0:  # how long it takes
            process.communicate(timeout=120)
            took.append(time.monotonic() - began)
        else:
            time.sleep(rng.uniform(0, max(took)))
            process.kill()
            process.communicate()
        assert len(names_in(live, [old, new])) == 1, number
    findings = [one for one in doctor(live) if one['level'] == 'bad']
    assert findings == []
    # It says what to do about what is left; and it is done.
    for one in doctor(live):
        assert 'unfinished transactions' in one['what'] or 'doctor --fix' in one['next'] or \
            'mpc-admin delete' in one['next'], one
    live.admin('doctor', '--fix')


def test_an_interrupted_one_is_named_and_ended(live):
    """Where the database was written and the servers were not asked again."""
    shim = config_files.CMAKE / 'mpc-server/testing/libmpckdc_fault_shim.so'
    seen = set()
    for number in range(1, 40):
        old, new = f'dora{number}', f'doris{number}'
        live.enroll(old, PASSWORD, '--enctype', 'aes256-gcm')
        env = {'LD_PRELOAD': str(shim), 'MPCKDC_SHIM_FILE': str(live.kdc_dir / 'principal.mdb'),
               'MPCKDC_SHIM_AT': str(number), 'MPCKDC_SHIM_DO': 'kill'}
        done = live.run('kadmin.local', 'renprinc', '-force', old, new, check=False, env=env)
        if done.returncode == 0:
            break
        found = [one for one in doctor(live) if f'{old}@' in one['what'] and 'renam' in one['what']]
        kind = tuple('interrupted' in one['what'] for one in found)
        if kind in seen:
            continue
        seen.add(kind)
        name = names_in(live, [old, new])
        assert len(name) == 1
        for one in found:
            assert one['level'] == 'warning'
            live.admin('delete', one['next'].split('mpc-admin delete ')[1].split()[0])
        assert not any(f'{old}@' in one['what'] and 'renam' in one['what'] for one in doctor(live))
        assert names_in(live, [old, new]) == name
    assert {(), (True,), (False,)} <= seen, seen
    live.admin('doctor', '--fix', check=False)


# ---- Delegates ----

def test_a_delegate_takes_over_nobody(make_realm):
    """One who may add and delete everything, by kadmind; and one who may not."""
    live = make_realm()
    live.create(prepare=lambda: (live.kdc_dir / 'kadm5.acl').write_text(
        'boss ad\nclerk ad */tmp@EXAMPLE.COM\n'))
    for name in ('boss', 'clerk', 'mallory', 'victim', 'x/tmp'):
        live.enroll(name, PASSWORD, '--enctype', 'aes256-gcm')
    live.kadmin_local('addprinc -randkey kadmin/spare')

    def others():
        """All entries but those whose logins are counted."""
        lines = live.dump(live.dir / 'dump').read_text().splitlines()
        return [line for line in lines if '\tboss@' not in line and '\tclerk@' not in line]
    before = others()
    for old, new, why in (
            ('mallory', 'kadmin/evil', 'Cannot change protected principal'),
            ('mallory', 'krbtgt/EVIL.ORG', 'Cannot change protected principal'),
            ('mallory', f'krbtgt/{live.name}', 'already exists'),
            ('mallory', 'kadmin/admin', 'already exists'), ('mallory', 'victim', 'already exists'),
            ('kadmin/spare', 'mallory2', 'Cannot change protected principal'),
            (f'krbtgt/{live.name}', 'mallory2', 'requires ``delete')):  # it is locked down
        said = live.kadmin(f'renprinc -force {old} {new}', 'boss', PASSWORD).stdout
        assert why in said, said
    assert 'neither given to another name' in (live.log_dir / 'kadmind-requests.log').read_text()
    for old, new in (('victim', 'y/tmp'), ('x/tmp', 'victim2')):
        said = live.kadmin(f'renprinc -force {old} {new}', 'clerk', PASSWORD).stdout
        assert 'Insufficient authorization' in said or "requires ``" in said, said
    assert others() == before
    said = live.kadmin('renprinc -force x/tmp y/tmp', 'clerk', PASSWORD).stdout
    assert 'renamed to' in said, said
    assert names_in(live, ['x/tmp', 'y/tmp']) == ['y/tmp']
    said = live.kadmin('renprinc -force mallory alex', 'boss', PASSWORD).stdout
    assert 'renamed to' in said, said
    assert names_in(live, ['mallory', 'alex']) == ['alex']
    assert daemon.wait_until(lambda: doctor(live) == [], 10)
