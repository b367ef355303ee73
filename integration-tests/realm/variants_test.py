# SPDX-License-Identifier: Apache-2.0
"""The same login in realms that are set up differently; dump and load."""

import concurrent.futures

import pytest

import realm as realm_module

SERVICE = 'host/www.example.com'

VARIANTS = {
    'klmdb': {'wrapped': 'klmdb'},
    'pac': {'disable_pac': False},
    'two workers': {'workers': 2},
    'other engine': {'extra_server': '[engine]\nworkers = 3\nrecords = "tls"\n'
                                     'randomness = "exchanged"\n'},
    'fixed ticks': {'batch_window_ms': 20, 'batch_mode': 'fixed'},
}


@pytest.fixture(params=VARIANTS, scope='module')
def live(request, tmp_path_factory):
    options = realm_module.Options(**VARIANTS[request.param])
    with realm_module.Realm(tmp_path_factory.mktemp('variant') / 'realm', options) as made:
        made.create()
        made.add_service(SERVICE)
        yield made


def test_everything_that_a_user_does(live, new_user):
    name, password = new_user(live)
    live.kinit(name, password, '-r', '1d')
    live.kvno(SERVICE)
    live.run('kinit', '-R')
    live.kvno(SERVICE)
    live.run('kpasswd', name, stdin=f'{password}\nchanged\nchanged\n',
             env=live.with_ccache('none'))
    assert 'Password incorrect' in live.kinit(name, password, check=False).stdout
    live.kinit(name, 'changed')


def test_many_at_once(live, new_user):
    users = [new_user(live) for _ in range(4)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(
            lambda number: live.kinit(*users[number % 4], ccache=f'many{number}', check=False),
            range(24)))
    assert [reply.stdout for reply in replies if reply.returncode] == []


def test_dump_and_load(live, new_user):
    user = new_user(live)
    dump = live.dump(live.dir / 'everything.dump')
    live.stop_kdc()
    live.run('kdb5_util', 'destroy', '-f')
    live.run('kdb5_util', 'load', dump)
    live.run('kdb5_util', 'stash', '-P', realm_module.MASTER_PASSWORD)
    live.start_kdc()
    live.kinit(*user)
    live.kvno(SERVICE)
    live.admin('verify')


def test_services_that_log_in(new_realm, tmp_path):
    """mpc_service_logins: a host logs in with its own keytab; its TGT is under krbtgt all the same."""
    live = new_realm(extra_database={'mpc_service_logins': True})
    live.add_service(SERVICE)
    keytab = tmp_path / 'keytab'
    live.kadmin_local(f'ktadd -k {keytab} {SERVICE}')
    live.run('kinit', '-k', '-t', keytab, SERVICE)
    live.kvno(SERVICE)
