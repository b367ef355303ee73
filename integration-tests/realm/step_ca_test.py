# SPDX-License-Identifier: Apache-2.0
"""A realm whose certificates a real authority issues and renews: step-ca."""

import time

import pytest

import step_ca
from long_tests import LONG
from renewal_test import FIVE, assert_used, expires, logins, prepare

pytestmark = LONG
HOSTS = ('localhost', '127.0.0.1')


@pytest.fixture(scope='module')
def authority(tmp_path_factory):
    reason = step_ca.why_not()
    if reason:
        pytest.skip(reason)
    ca = step_ca.StepCa(tmp_path_factory.mktemp('step') / 'ca').create().start()
    yield ca
    ca.stop()


def uri(role, name, realm='EXAMPLE.COM'):
    return f'spiffe://{realm}/mpc/{role}/{name}'


def issue(authority, live, name, *options):
    role, _, who = name.partition('-')
    base = live.dir / 'ca' / name
    authority.certificate(f'{role}s', who, f'{base}.pem', f'{base}.key', uri(role, who),
                          *(HOSTS if role == 'peer' else ()), options=options)


def test_a_realm(authority, make_realm):
    """All of a realm's certificates; then each is renewed, with its key and with another, amid logins."""
    live = make_realm()

    def use_step_ca():
        (live.dir / 'ca/ca.key').unlink()  # mpc-ca's: nothing of it is used
        (live.dir / 'ca/ca.pem').write_text(authority.authority())
        for name in (*FIVE, 'admin-administrator'):
            issue(authority, live, name)
    live.create(use_step_ca)
    user = prepare(live)
    assert live.admin('doctor').returncode == 0
    with logins(live, user):
        for number, name in enumerate(FIVE):
            base = live.dir / 'ca' / name
            before, key = expires(f'{base}.pem'), base.with_suffix('.key').read_bytes()
            time.sleep(1.1)  # they end at another second
            authority.renew(f'{base}.pem', f'{base}.key', rekey=number % 2 == 1)
            assert expires(f'{base}.pem') > before
            assert (base.with_suffix('.key').read_bytes() == key) == (number % 2 == 0)
            assert_used(live, name)


def test_short_ones_are_renewed_by_the_daemon(authority, make_realm):
    """`step ca renew --daemon` beside a server and krb5kdc whose certificates live 40 seconds."""
    live = make_realm()

    def use_step_ca():
        (live.dir / 'ca/ca.pem').write_text(authority.authority())
        for name in (*FIVE, 'admin-administrator'):
            issue(authority, live, name, *(['--not-after', '40s'] if name in ('peer-p1', 'kdc-kdc') else []))
    import subprocess
    daemons = []
    try:
        def begin():
            use_step_ca()
            for name in 'peer-p1', 'kdc-kdc':
                base = live.dir / 'ca' / name
                daemons.append(subprocess.Popen(
                    [step_ca.PROGRAMS / 'step', 'ca', 'renew', '--daemon', '--expires-in', '20s', f'{base}.pem',
                     f'{base}.key', *authority.reach()], env=authority.env, stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT))
        live.create(begin)
        user = prepare(live)
        with logins(live, user, threads=1):
            time.sleep(100)
        live.admin('refresh')
        live.kinit(*user)
    finally:
        for process in daemons:
            process.terminate()
            process.wait(20)


@pytest.mark.parametrize('provisioner, names, said', [
    ('kdcs', [uri('peer', 'p1'), *HOSTS], 'signs for the role kdc alone'),
    ('kdcs', [uri('admin', 'kadmin')], 'signs for the role kdc alone'),
    ('admins', [uri('kdc', 'kdc1')], 'signs for the role admin alone'),
    ('peers', [uri('peer', 'p0', 'OTHER.ORG'), *HOSTS], 'signs for the role peer alone'),
    ('peers', [uri('peer', 'p0'), uri('peer', 'p1'), *HOSTS], 'exactly one URI name'),
    ('peers', HOSTS, 'exactly one URI name')])
def test_a_provisioner_signs_for_its_role_alone(authority, tmp_path, provisioner, names, said):
    refused = authority.certificate(provisioner, 'x', tmp_path / 'x.pem', tmp_path / 'x.key', *names, check=False)
    assert refused.returncode, refused.stdout
    assert not (tmp_path / 'x.pem').exists()
    assert said in refused.stdout + (authority.dir / 'step-ca.log').read_text()
