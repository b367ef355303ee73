# SPDX-License-Identifier: Apache-2.0
"""`mpc-admin import-realm` of a realm whose entries lie, and stay, in an LDAP directory (runbook
migrate.md, "MIT krb5 with LDAP"): kldap writes policy and history only where the mask names them, and
takes a load without a policy for one that removes it."""

import pytest

import slapd
from long_tests import LONG
from old_realm import POLICY, USERS, OldRealm

pytestmark = [LONG, pytest.mark.skipif(bool(slapd.missing()), reason=slapd.missing() or 'can run')]


def policy(live, name):
    text = live.kadmin_local(f'getprinc {name}').stdout
    return next(line for line in text.splitlines() if line.startswith('Policy'))


@pytest.fixture(scope='module')
def live(tmp_path_factory):
    folder = tmp_path_factory.mktemp('ldap')
    directory = slapd.Slapd(folder / 'slapd')
    directory.start()
    directory.fill()
    with slapd.DirectoryRealm(folder / 'realm', directory) as live:
        live.write_files()
        live.stash_passwords()
        live.old = OldRealm(live, wrapped='kldap').create()
        live.start_servers()
        live.admin('init-realm')
        live.source = ('import-realm', '--source', live.old.profile)
        live.before = policy(live, 'erin')
        yield live
    directory.stop()


def test_policies_are_kept(live):
    assert POLICY in live.before, 'the control'
    live.admin(*live.source)
    assert policy(live, 'erin') == live.before, 'the import took the password policy away'


def test_the_history_is_kept(live):
    """No policy, no history; and with it given anew the old passwords should be known."""
    live.kadmin_local(f'modprinc -policy {POLICY} erin')
    for former in (*USERS[4].former, USERS[4].password):
        refused = live.kadmin_local(f'cpw -pw "{former}" erin', check=False)
        assert 'Cannot reuse password' in refused.stdout, (former, refused.stdout)


def test_a_commit_keeps_policies(live):
    """And whatever else writes the entry once more."""
    live.kadmin_local(f'modprinc -policy {POLICY} alice')
    assert POLICY in policy(live, 'alice'), 'the control'
    live.admin(*live.source, '--commit', '--yes')
    assert POLICY in policy(live, 'alice')


def test_after_the_commit_no_former_password_is_in_the_directory(live):
    """The history is handles as well; and the servers hold no key of it that nobody names."""
    found = [value for entry in live.directory.search('krbPwdHistory', where='(krbPwdHistory=*)')
             for value in entry['krbPwdHistory']]
    assert found, 'the control'
    real = [value for value in found if b'remote-key:' not in value]
    said = live.admin('doctor', check=False).stdout
    assert not real, (len(real), 'of', len(found), 'former passwords have keys of their own', said)
