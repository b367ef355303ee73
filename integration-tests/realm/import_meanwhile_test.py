# SPDX-License-Identifier: Apache-2.0
"""Into a new database: what administrators do with users who were imported, before --commit."""

from import_scrub_test import copied
from long_tests import LONG
from old_realm import USERS


def test_who_was_deleted_since_stays_away(make_realm):
    """--commit says that bob is not imported and what to do; whoever does it has not asked for bob."""
    live, _, _, source = copied(make_realm)
    live.admin('import-realm', *source)
    live.kinit('bob', USERS[1].password)
    live.kadmin_local('delprinc -force bob')
    said = live.admin('import-realm', *source, '--commit', '--yes', check=False)
    if said.returncode:
        assert 'import-realm without --commit imports them' in said.stderr, said.stderr
        live.admin('import-realm', *source)
        live.admin('import-realm', *source, '--commit', '--yes')
    back = live.kinit('bob', USERS[1].password, check=False)
    assert back.returncode, 'bob was deleted, and logs in: ' + said.stderr


@LONG
def test_who_was_renamed_since_is_one_user(make_realm):
    """alice is alice.smith: there is no second alice, and --scrub is not held up by her record."""
    live, _, dump, source = copied(make_realm)
    live.admin('import-realm', *source)
    live.kadmin_local('renprinc -force alice alice.smith')
    live.kinit('alice.smith', USERS[0].password)
    said = live.admin('import-realm', *source, '--commit', '--yes', check=False)
    if said.returncode:
        live.admin('import-realm', *source)
        live.admin('import-realm', *source, '--commit', '--yes')
    two = live.kinit('alice', USERS[0].password, check=False).returncode == 0
    live.stop_kdc()
    scrub = live.admin('import-realm', *source, '--scrub', '--yes', check=False)
    assert not two and scrub.returncode == 0 and not dump.exists(), \
        ('a second alice', two, said.stderr, scrub.stdout, scrub.stderr)


@LONG
def test_who_is_named_comes_back(make_realm):
    """And who went by --rollback comes with the next run, by no name."""
    live, _, _, source = copied(make_realm)
    live.admin('import-realm', *source)
    live.kadmin_local('delprinc -force bob')
    live.admin('import-realm', *source, '--rollback', 'alice')
    live.admin('import-realm', *source)
    live.kinit('alice', USERS[0].password)
    assert live.kinit('bob', USERS[1].password, check=False).returncode
    live.admin('import-realm', *source, 'bob')
    live.kinit('bob', USERS[1].password)
