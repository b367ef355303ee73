# SPDX-License-Identifier: Apache-2.0
"""Session keys of the types that clients know, with nothing set by hand: krbtgt's and kadmin's own
keys are of types that no client must know (krb5-patches/README.md, 35)."""

import re

import pytest

import config_files

SERVICE = 'host/www.example.com'
NO_SUPPORT = 'no support for encryption type'


@pytest.fixture(scope='module')
def live(own_realm):
    own_realm.enroll('alice', 'secret')
    own_realm.enroll('root/admin', 'secret')
    own_realm.add_service(SERVICE)
    return own_realm


def asking_for(live, enctype):
    """The environment of a client that wants session keys of this type alone."""
    path = config_files.replace(
        live.dir / 'krb5.conf', '[libdefaults]',
        f'[libdefaults]\n    default_tkt_enctypes = {enctype}\n    default_tgs_enctypes = {enctype}',
        into=live.dir / f'krb5-{enctype}.conf')
    return {'KRB5_CONFIG': str(path)}


def session_keys(live):
    lines = re.findall(r'  (\S+)\n(?:\t(?!.*Etype).*\n)*\t.*Etype \(skey, tkt\): (\S+?),',
                       live.klist('-e').stdout)
    return {name.split('@')[0]: enctype for name, enctype in lines}


def logs_in(live, enctype, check=True):
    return live.kinit('alice', 'secret', env=asking_for(live, enctype), check=check)


@pytest.mark.parametrize('enctype,shown', [
    ('aes256-cts', 'aes256-cts-hmac-sha1-96'), ('aes128-cts', 'aes128-cts-hmac-sha1-96'),
    ('aes256-sha2', 'aes256-cts-hmac-sha384-192'), ('aes128-sha2', 'aes128-cts-hmac-sha256-128')])
def test_each_type_by_itself(live, enctype, shown):
    logs_in(live, enctype)
    assert session_keys(live)[f'krbtgt/{live.name}'] == shown
    live.kvno(f'krbtgt/{live.name}', '--cached-only')
    env = asking_for(live, enctype)
    done = live.run('kadmin', '-p', 'root/admin', '-w', 'secret', '-q', 'getprinc alice', env=env)
    assert 'Principal: alice@' in done.stdout, done.stdout
    done = live.run('kpasswd', 'alice', stdin='secret\nsecret\nsecret\n', env=env, check=False)
    assert NO_SUPPORT not in done.stdout, done.stdout


def test_ours_is_no_session_key(live):
    """A ticket cache may be read by a library that does not know it."""
    live.kinit('alice', 'secret')
    live.kvno(SERVICE)
    assert session_keys(live) == {f'krbtgt/{live.name}': 'aes256-cts-hmac-sha1-96',
                                  SERVICE: 'aes256-cts-hmac-sha1-96'}
    assert NO_SUPPORT in logs_in(live, 'aes256-gcm', check=False).stdout


def test_what_an_administrator_sets_wins(live):
    live.kadmin_local(f'setstr krbtgt/{live.name} session_enctypes aes128-sha2,aes256-gcm')
    try:
        assert NO_SUPPORT in logs_in(live, 'aes256-cts', check=False).stdout
        logs_in(live, 'aes128-sha2')
        logs_in(live, 'aes256-gcm')
        assert session_keys(live)[f'krbtgt/{live.name}'].endswith('aes256-gcm')
    finally:
        live.kadmin_local(f'delstr krbtgt/{live.name} session_enctypes')
    logs_in(live, 'aes256-cts')


def test_the_realm_may_say_otherwise(live):
    conf = live.kdc_dir / 'kdc.conf'
    before = conf.read_text()
    try:
        for said, refused, taken in (('none', 'aes128-cts', 'aes256-gcm'),
                                     ('aes128-cts', 'aes256-cts', 'aes128-cts')):
            conf.write_text(re.sub(rf'(    {live.name} = {{\n)',
                                   rf'\1        remote_session_enctypes = {said}\n', before))
            live.stop_kdc()
            live.start_kdc()
            assert NO_SUPPORT in logs_in(live, refused, check=False).stdout
            logs_in(live, taken)
    finally:
        conf.write_text(before)
        live.stop_kdc()
        live.start_kdc()
