# SPDX-License-Identifier: Apache-2.0
"""Password history of protected users: three real servers compare new keys with old ones."""

import json

import pytest

import config_files
import daemon
import realm as realm_module

REUSE = 'Cannot reuse password'
KINDS = {'gcm': config_files.GCM_ENCTYPES, 'stock': config_files.STOCK_ENCTYPES}


@pytest.fixture(scope='module', params=list(KINDS))
def past(request, tmp_path_factory):
    """A realm in which deleted keys are collected at once, whose users have keys of one kind."""
    keysalts = ' '.join(f'{name}:normal' for name in (*KINDS[request.param], 'aes256-gcm'))
    options = realm_module.Options(extra_realm={'supported_enctypes': keysalts},
                                   extra_server='\n[policy]\ndelete_grace = "1s"\n')
    with realm_module.Realm(tmp_path_factory.mktemp('past') / 'realm', options) as live:
        yield live.create(prepare=lambda: allow_many(live))


def allow_many(live):
    """More than a user has: in an hour the quota allows nineteen changes of five keys."""
    for party in range(3):
        live.change_config(party, '[quota]',
                           '[quota]\ncompared_per_hour = 1000\ncompared_per_day = 1000')


def change(live, name, password, taken=True):
    result = live.kadmin_local(f'cpw -pw "{password}" {name}', check=False)
    assert (REUSE in result.stdout) != taken and (result.returncode == 0) == taken, result.stdout


def handles(live, name):
    lines = [json.loads(line) for line in
             live.run(config_files.mpc_program('mpc-kdb'), 'list').stdout.splitlines()]
    return [key for key in lines if key['principal'] == f'{name}@{live.name}']


def wait_until_reduced(live, name):
    """Of the old keys those in the history have their base key alone, and the others are gone."""
    wanted = {key['handle'] for key in handles(live, name) if key.get('history')}

    def done():
        keys = json.loads(live.admin('list', name, '--json').stdout)['keys']
        old = {key['handle']: key for key in keys if key['retired']}
        return set(old) == wanted and all(key['class'] == 'history' for key in old.values())
    assert daemon.wait_until(done, 60, pause=1)


def expect_history(live, name, refused, taken):
    for password in refused:
        change(live, name, password, taken=False)
    change(live, name, taken)


def test_reuse_is_refused_as_the_policy_says(past):
    live = past
    live.kadmin_local('addpol -history 3 three')
    live.kadmin_local('addprinc -policy three -pw "password 1" ann')
    for number in (2, 3, 4):
        change(live, 'ann', f'password {number}')
    expect_history(live, 'ann', ['password 4', 'password 3', 'password 2'], 'password 1')
    live.kinit('ann', 'password 1')

    # The grace time over, a login by an old key is not possible and a comparison is.
    wait_until_reduced(live, 'ann')
    expect_history(live, 'ann', ['password 1', 'password 4', 'password 3'], 'password 2')
    live.admin('doctor')

    # All shares anew.
    live.admin('refresh')
    expect_history(live, 'ann', ['password 2', 'password 1', 'password 4'], 'password 3')

    # The database dumped and loaded.
    wait_until_reduced(live, 'ann')
    dump = live.dump(live.dir / 'history-dump')
    live.run('kdb5_util', 'load', dump)
    expect_history(live, 'ann', ['password 3', 'password 2', 'password 1'], 'password 4')

    # Under another master key.
    live.run('kdb5_util', 'add_mkey', '-s', stdin='another master\nanother master\n')
    live.run('kdb5_util', 'use_mkey', '2')
    live.run('kdb5_util', 'update_princ_encryption', '-f')
    live.stop_kdc()  # kadmind reads master keys at its start
    live.start_kdc()
    expect_history(live, 'ann', ['password 4', 'password 3', 'password 2'], 'password 1')
    live.kinit('ann', 'password 1')
    wait_until_reduced(live, 'ann')
    live.admin('doctor')
    live.admin('verify', 'ann')


def test_no_answer_is_no_permission(past):
    live = past
    live.kadmin_local('addpol -history 2 two')
    live.kadmin_local('addprinc -policy two -pw "password 1" bea')
    before = handles(live, 'bea')
    live.servers[1].stop()
    for password in ('password 1', 'password 2'):
        said = live.kadmin_local(f'cpw -pw "{password}" bea', check=False).stdout
        assert 'could not be compared' in said and 'nothing was changed' in said, said
    assert handles(live, 'bea') == before
    live.servers[1].start()
    live.wait_for_servers()
    change(live, 'bea', 'password 1', taken=False)
    change(live, 'bea', 'password 2')


def test_kpasswd_is_told(past):
    live = past
    live.kadmin_local('addpol -history 2 both')
    live.kadmin_local('addprinc -policy both -pw "password 1" cem')
    said = live.run('kpasswd', 'cem', stdin='password 1\npassword 1\npassword 1\n', check=False)
    assert said.returncode and 'was used previously' in said.stdout, said.stdout
    live.run('kpasswd', 'cem', stdin='password 1\npassword 2\npassword 2\n')
    live.kinit('cem', 'password 2')


def test_deleted_with_its_principal(past):
    live = past
    live.kadmin_local('addpol -history 3 gone')
    live.kadmin_local('addprinc -policy gone -pw "password 1" dan')
    change(live, 'dan', 'password 2')
    wait_until_reduced(live, 'dan')
    live.kadmin_local('delprinc -force dan')
    assert daemon.wait_until(lambda: 'dan@' not in live.admin('list').stdout, 60, pause=1)


def test_the_quota_says_when(make_realm):
    """At each server; nothing is changed, and the text tells the administrator which quota it was."""
    live = make_realm()
    live.create(prepare=lambda: live.change_config(2, '[quota]', '[quota]\ncompared_per_hour = 13'))
    live.kadmin_local('addpol -history 2 two')
    live.kadmin_local('addprinc -policy two -pw "password 1" -e aes256-gcm:normal eva')
    for number in range(2, 15):
        live.kadmin_local(f'cpw -pw "password {number}" -e aes256-gcm:normal eva')
    before = handles(live, 'eva')
    result = live.kadmin_local('cpw -pw "password 15" -e aes256-gcm:normal eva', check=False)
    assert result.returncode and 'as often as [quota] allows (13 an hour' in result.stdout
    assert handles(live, 'eva') == before
    live.kinit('eva', 'password 14')
