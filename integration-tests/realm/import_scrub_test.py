# SPDX-License-Identifier: Apache-2.0
"""`mpc-admin import-realm --scrub`: too early it is refused, and what it leaves it says."""

import json

import daemon
from long_tests import LONG
from old_realm import USERS, OldRealm


def copied(make_realm):
    live = make_realm()
    live.write_files()
    old = OldRealm(live, name='other').create()
    dump = old.folder / 'old.dump'
    old.run('kdb5_util', 'dump', dump)
    live.create()
    return live, old, dump, ('--dump', dump, '--stash', old.stash, '--scratch', live.dir / 'scratch')


def test_before_anything_is_imported(make_realm):
    """--scrub where --commit or nothing was meant: the dump is all that there is of the users."""
    live, old, dump, source = copied(make_realm)
    live.stop_kdc()
    said = live.admin('import-realm', *source, '--scrub', '--yes', check=False)
    assert dump.exists() and old.stash.exists(), 'nobody was imported, and their keys are gone:\n' \
        + said.stdout


@LONG
def test_after_a_rollback(make_realm):
    """The same when the import was taken back, to be done another day."""
    live, old, dump, source = copied(make_realm)
    live.admin('import-realm', *source)
    live.admin('import-realm', *source, '--rollback', '--yes')
    assert 'does not exist' in live.kadmin_local('getprinc alice', check=False).stdout
    live.stop_kdc()
    said = live.admin('import-realm', *source, '--scrub', '--yes', check=False)
    assert dump.exists() and old.stash.exists(), 'all went back, and their keys are gone:\n' \
        + said.stdout


@LONG
def test_the_stash_file_of_another_kdc_conf(make_realm):
    """--source without --stash: the old kdc.conf names the file that opens every backup of that database."""
    live, old, dump, _ = copied(make_realm)
    dump.unlink()
    source = ('import-realm', '--source', old.profile)
    live.admin(*source)
    live.admin(*source, '--commit', '--yes')
    live.stop_kdc()
    assert old.stash.exists() and old.database.exists(), 'the control'
    answer = live.admin(*source, '--scrub', '--yes', '--json').stdout
    told = json.loads(answer[answer.index('{'):])
    assert not old.database.exists() and not old.stash.exists(), told
    assert str(old.stash) in told['overwritten'] and live.stash.exists()
    live.start_kdc()
    live.kinit('alice', USERS[0].password)


@LONG
def test_the_update_log_of_iprop(make_realm):
    """A realm with replicas: the log beside the database has each entry as it was stored, the old keys
    and the import's records of them too. They go, or the answer names the file."""
    port, = daemon.free_ports(1)
    live = make_realm(extra_realm={'iprop_enable': True, 'iprop_port': port})
    live.write_files()
    live.old = old = OldRealm(live).create()
    ciphertexts = [key for user in USERS for key in old.ciphertexts(user.name)]
    live.start_servers()
    live.admin('init-realm')
    source = ('import-realm', '--source', old.profile)
    live.admin(*source)
    live.admin(*source, '--commit', '--yes')
    log = live.kdc_dir / 'principal.ulog'
    assert any(key in log.read_bytes() for key in ciphertexts), 'the control'
    answer = live.admin(*source, '--scrub', '--yes', '--json').stdout
    told = json.loads(answer[answer.index('{'):])
    found = sum(key in log.read_bytes() for key in ciphertexts) if log.exists() else 0
    assert not found or 'ulog' in json.dumps(told) or 'update log' in json.dumps(told), \
        (found, len(ciphertexts), told)
