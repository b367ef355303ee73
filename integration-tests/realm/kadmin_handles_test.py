# SPDX-License-Identifier: Apache-2.0
"""A key that somebody else's entry names stays what it is: in the KDB module and, should that be
deceived, on the servers."""

import json

import config_files

HTTP = 'HTTP/www.example.com'
KRBTGT = 'krbtgt/EXAMPLE.COM'
PROBE = config_files.CMAKE / 'kdc-plugin/tests/mpckdc_kadm5_remote'


def keys_of(live, name):
    keys = json.loads(live.admin('list', '--json').stdout)['keys']
    return {key['handle']: key for key in keys if key['principal'] == f'{name}@{live.name}'}


def mpc_kdb(live, *arguments, stdin=''):
    return live.run(config_files.mpc_program('mpc-kdb'), *arguments, stdin=stdin)


def krbtgt_handle(live):
    lines = [json.loads(line) for line in mpc_kdb(live, 'list').stdout.splitlines()]
    return next(key for key in lines if key['principal'] == f'{KRBTGT}@{live.name}')


def as_web(live, query):
    return live.kadmin(query, 'web', 'secret').stdout


def test_delegate_does_not_reach_krbtgt(make_realm):
    live = make_realm()

    def delegate():
        (live.kdc_dir / 'kadm5.acl').write_text('web asdi HTTP/*\n')
    live.create(prepare=delegate)
    live.enroll('web', 'secret')
    before, key = keys_of(live, KRBTGT), krbtgt_handle(live)
    assert key['handle'] in before
    reference = b'remote-key:'.hex() + key['handle']
    as_web(live, f'addprinc -randkey {HTTP}')
    tried = live.run(PROBE, 'web', 'secret', 'setkey3', HTTP, key['enctype'], reference,
                     check=False)
    assert tried.returncode and 'Communication failure' in tried.stdout
    assert 'deleted' in as_web(live, f'delprinc -force {HTTP}')
    assert keys_of(live, KRBTGT) == before

    # As if it had got by the module: the entry does have krbtgt's handle. The servers refuse.
    as_web(live, f'addprinc -randkey {HTTP}')
    planted = {'enctype': key['enctype'], 'salt_type': 0, 'salt': '', 'handle': key['handle']}
    mpc_kdb(live, 'set-handles', HTTP, stdin=json.dumps({'kvno': 2, 'keys': [planted]}))
    assert reference in live.dump(live.dir / 'dump').read_text().split(HTTP)[1].split('princ\t')[0]
    assert 'deleted' in as_web(live, f'delprinc -force {HTTP}')
    assert keys_of(live, KRBTGT) == before
    assert 'may stay on the MPC servers' in (live.log_dir / 'kadmind-requests.log').read_text()
    live.kinit('web', 'secret')
