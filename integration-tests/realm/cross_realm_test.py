# SPDX-License-Identifier: Apache-2.0
"""Two realms that trust each other, each with three servers of its own.

A user of EXAMPLE.COM gets a ticket for a service of OTHER.ORG. He asks his own KDC for a TGT of
OTHER.ORG, under a key of krbtgt/OTHER.ORG@EXAMPLE.COM that both realms have from one password: it
is sealed by his own realm's servers and opened by the other's."""

import contextlib

import pytest

import config_files
import realm as realm_module

HOME, AWAY = 'EXAMPLE.COM', 'OTHER.ORG'
BETWEEN = f'krbtgt/{AWAY}@{HOME}'
SERVICE = f'host/www.other.org@{AWAY}'
SECRET, PASSWORD = 'a secret of both realms', 'a password'


@pytest.fixture(scope='module', params=['without PACs', 'with PACs'])
def realms(request, tmp_path_factory):
    options = {'disable_pac': request.param == 'without PACs'}
    folder = tmp_path_factory.mktemp('two')
    with contextlib.ExitStack() as stack:
        home, away = made = [
            stack.enter_context(realm_module.Realm(
                folder / name, realm_module.Options(realm=name, **options)))
            for name in (HOME, AWAY)]
        for one, other in (made, made[::-1]):
            one.create(lambda one=one, other=other: knows(one, other))
        home.enroll('alice', PASSWORD)
        away.add_service('host/www.other.org')
        yield home, away


def knows(one, other):
    """Before it starts: where the other realm's KDC is."""
    with open(one.dir / 'krb5.conf', 'a') as file:
        file.write(config_files.profile({'realms': {other.name: {
            'kdc': f'127.0.0.1:{other.ports.kdc}'}}}))


def handles(realm, principal):
    lines = realm.run(config_files.mpc_program('mpc-kdb'), 'list').stdout.splitlines()
    return [line for line in lines if f'"{principal}"' in line]


def visit(home):
    home.run('kdestroy')
    home.kinit('alice', PASSWORD)
    home.kvno(SERVICE)
    return home.klist('-e').stdout


@pytest.mark.parametrize('enctypes,protected', [
    ('aes256-cts:normal', 1), ('aes256-gcm:normal,aes128-gcm:normal', 2)])
def test_a_ticket_of_the_other_realm(realms, enctypes, protected):
    for realm in realms:
        realm.kadmin_local(f'delprinc -force {BETWEEN}', check=False)
        realm.kadmin_local(f"addprinc -pw '{SECRET}' -e {enctypes} {BETWEEN}")
        assert len(handles(realm, BETWEEN)) == protected
    listing = visit(realms[0])
    assert BETWEEN in listing and SERVICE in listing


@pytest.mark.parametrize('enctypes,protected', [
    ('aes256-cts:normal', 1), ('aes256-gcm:normal,aes128-gcm:normal', 2)])
def test_the_next_key_between_the_realms(realms, enctypes, protected):
    """As deploy/runbooks/rotate-krbtgt.md says: first where tickets come in, then where they are made,
    and the old key goes last. A ticket under it is good until then."""
    home, away = realms
    for realm in realms:
        realm.kadmin_local(f'delprinc -force {BETWEEN}', check=False)
        realm.kadmin_local(f"addprinc -pw '{SECRET}' -e {enctypes} {BETWEEN}")
    home.kinit('alice', PASSWORD, ccache='before')
    home.kvno(BETWEEN, ccache='before')
    refused = home.admin('rotate-krbtgt', f'krbtgt/{AWAY}', check=False)
    assert refused.returncode == 2 and 'cannot be given to the other realm' in refused.stderr
    for realm in (away, home):
        realm.kadmin_local(f"cpw -keepold -pw 'another secret' -e {enctypes} {BETWEEN}")
        assert len(handles(realm, BETWEEN)) == 2 * protected
        assert BETWEEN in visit(home)
    new, newer = f'host/new{protected}.other.org', f'host/newer{protected}.other.org'
    away.add_service(new)
    home.kvno(f'{new}@{AWAY}', ccache='before')
    for realm in (home, away):
        realm.kadmin_local(f'purgekeys {BETWEEN}')
        assert len(handles(realm, BETWEEN)) == protected
    away.add_service(newer)
    assert BETWEEN in visit(home)
    assert home.kvno(f'{newer}@{AWAY}', ccache='before', check=False).returncode
