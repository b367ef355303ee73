# SPDX-License-Identifier: Apache-2.0
"""Two small realms: MIT's own krb5kdc on db2, and a realm of ours with its three servers."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'realm'))

import realm as realm_module  # noqa: E402
from storm import PASSWORD, SERVICE, USERS, make_keytab, user_name  # noqa: E402

STOCK_ENCTYPES = 'aes128-cts:normal,aes256-cts:normal,aes128-sha2:normal,aes256-sha2:normal'


@pytest.fixture(scope='session')
def stock(tmp_path_factory):
    """A KDC without us; its users have keys of enctypes 17 to 20. No lockout, no last_success."""
    with realm_module.StockRealm(tmp_path_factory.mktemp('stock') / 'realm', realm_module.Options(
        extra_database={'disable_last_success': True, 'disable_lockout': True})) as live:
        live.create()
        (live.dir / 'password').write_text(PASSWORD + '\n')
        live.run('kadmin.local', stdin=''.join(
            f'addprinc -e {STOCK_ENCTYPES} -pw "{PASSWORD}" {user_name(i)}\n'
            for i in range(USERS)) + f'addprinc -randkey -e aes256-cts:normal {SERVICE}\n')
        live.kdc.start()
        live._wait_for_port(live.kdc, live.ports.kdc)
        yield live


def protected(folder, enctypes, options=None):
    """Users' keys of these enctypes shared among three servers, enrolled from a keytab."""
    with realm_module.Realm(folder / 'realm', options) as live:
        live.create()
        (live.dir / 'password').write_text(PASSWORD + '\n')
        for enctype in enctypes:
            make_keytab(live, 'users.keytab', [user_name(i) for i in range(USERS)], PASSWORD,
                        enctype)  # wkt appends
        live.admin('enroll', '--all', '--keytab', live.dir / 'users.keytab')
        live.add_service(SERVICE)
        (live.dir / 'handles.json').write_text(live.admin('list', '--json').stdout)
        yield live


@pytest.fixture(scope='session')
def ours_standard(tmp_path_factory):
    """Keys of enctypes 17 to 20; krbtgt's is of GCM."""
    yield from protected(
        tmp_path_factory.mktemp('standard'),
        ('aes128-cts', 'aes256-cts', 'aes128-sha2', 'aes256-sha2'),
        realm_module.Options(
            extra_realm={'supported_enctypes': f'aes128-gcm:normal,{STOCK_ENCTYPES}'},
            # Sixteen logins are one long batch, and other tests have the cores too.
            extra_database={'mpc_timeout': '15s'}))


@pytest.fixture(scope='session')
def ours(tmp_path_factory):
    """Keys of GCM, from a keytab of enctypes 17 and 18."""
    yield from protected(tmp_path_factory.mktemp('ours'), ('aes128-cts', 'aes256-cts'))
