# SPDX-License-Identifier: Apache-2.0
"""What administrators do with kadmin, kadmin.local and mpc-admin; what must not leave."""

import json
import re
import signal

import pytest

import config_files
import kdbfile
import keys

SERVICE = 'host/files.example.com'
WRONG = 'Password incorrect'
ADMIN = ('root/admin', 'the administrator')


@pytest.fixture(scope='module')
def live(shared_realm):
    shared_realm.add_service(SERVICE)
    shared_realm.enroll(*ADMIN)
    return shared_realm


def test_kadmin_over_the_network(live):
    assert 'Principal: root/admin' in live.kadmin('getprinc root/admin', *ADMIN).stdout


def test_principal_added_through_kadmin_is_protected(live):
    live.kadmin('addprinc -pw through-kadmin bob', *ADMIN)
    live.kinit('bob', 'through-kadmin')
    dump = live.dump(live.dir / 'dump-bob')
    plains = [plain for sealed, plain in kdbfile.recover_keys(dump, live.stash)
              if sealed.principal.startswith('bob@')]
    assert plains and all(kdbfile.is_remote_key(plain) for plain in plains)


def test_password_changed_through_kadmin(live, user):
    live.kadmin(f'cpw -pw changed {user[0]}', *ADMIN)
    assert WRONG in live.kinit(*user, check=False).stdout
    live.kinit(user[0], 'changed')


def test_protected_key_does_not_leave(live, user, tmp_path):
    keytab = tmp_path / 'keytab'
    local = live.kadmin_local(f'ktadd -norandkey -k {keytab} {user[0]}', check=False)
    assert 'mpc-admin randkey' in local.stdout
    # kadmin's protocol carries a number, not a text: the client prints its own, kadmind logs ours.
    for query in (f'ktadd -k {keytab} {user[0]}', f'cpw -randkey {user[0]}'):
        log = live.log_dir / 'kadmind-requests.log'
        seen = log.stat().st_size
        assert 'cannot be taken out' in live.kadmin(query, *ADMIN).stdout
        assert 'mpc-admin randkey' in log.read_text()[seen:]
    entries = kdbfile.read_keytab(keytab) if keytab.exists() else []
    assert entries == []
    live.kinit(*user)  # the refusals changed nothing


def test_local_randkey(live, user):
    live.kadmin_local(f'cpw -randkey {user[0]}')
    assert WRONG in live.kinit(*user, check=False).stdout


def test_service_key_leaves_as_a_keytab(live, tmp_path):
    keytab = tmp_path / 'keytab'
    live.kadmin(f'ktadd -k {keytab} {SERVICE}', *ADMIN)
    live.kinit(*ADMIN)
    assert 'keytab entry valid' in live.kvno(SERVICE, '-k', keytab).stdout


def test_keys_of_kadmin_from_before_are_replaced_at_once(live, user):
    """All of kadmin/*, by one command, while kadmind runs. The entries say 18 here and have handles
    of gcm keys: the servers take no key of 18 for kadmin any more."""
    names = ('kadmin/admin', 'kadmin/changepw')
    make_old(live, names)
    doctor = live.admin('doctor', check=False)
    assert doctor.returncode == 1 and 'mpc-admin randkey --kadmin' in doctor.stdout
    assert all(name in doctor.stdout for name in names)
    live.admin('randkey', '--kadmin')
    for name in names:
        live.admin('verify', name)
        assert enctypes_of(live, name) == ['aes128-gcm', 'aes256-gcm']
    assert '--kadmin' not in live.admin('doctor', check=False).stdout
    assert 'Principal: root/admin' in live.kadmin('getprinc root/admin', *ADMIN).stdout
    live.kinit(*user, '-S', 'kadmin/changepw')


def make_old(live, names):
    kdb = config_files.mpc_program('mpc-kdb')
    handles = {}
    for line in live.run(kdb, 'list').stdout.splitlines():
        key = json.loads(line)
        handles.setdefault(key['principal'].split('@')[0], key)
    for name in names:
        assert enctypes_of(live, name) == ['aes128-gcm', 'aes256-gcm']
        live.run(kdb, 'set-handles', name, stdin=json.dumps({
            'kvno': handles[name]['kvno'] + 1, 'keep_old': False, 'keys': [
                {'enctype': 18, 'salt_type': 0, 'salt': '', 'handle': handles[name]['handle']}]}))


def test_randkey_kadmin_killed_before_it_deletes(live, tmp_path):
    """Each time mpc-kdb has written new handles it kills mpc-admin, which still had the old keys to
    delete. doctor names them; `doctor --fix` deletes them, and so does the same command again."""
    kdb = config_files.mpc_program('mpc-kdb')
    killer = tmp_path / 'kdb'
    killer.write_text(f'#!/bin/sh\n{kdb} "$@" || exit\n[ "$1" != set-handles ] || kill -9 $PPID\n')
    killer.chmod(0o755)
    config = config_files.replace(live.dir / 'admin/admin.toml', f'kdb_command = "{kdb}"',
                                  f'kdb_command = "{killer}"', into=tmp_path / 'admin.toml')
    names = ['kadmin/admin', 'kadmin/changepw']

    def unused():
        findings = json.loads(live.admin('doctor', '--json', check=False).stdout)['findings']
        return [f for f in findings if 'does not refer' in f['what'] and 'kadmin/' in f['what']]

    live.admin('doctor', '--fix', check=False)
    make_old(live, names)
    for name, mend in zip(names, (('doctor', '--fix'), ('randkey', '--kadmin'))):
        killed = live.run(config_files.mpc_program('mpc-admin'), '--config', config, 'randkey',
                          '--kadmin', check=False)
        assert killed.returncode == -signal.SIGKILL, killed.stdout
        found = unused()
        assert len(found) == 1 and name in found[0]['what'], found
        assert '--fix' in found[0]['next']
        live.admin(*mend, check=False)
        assert not unused()
    assert '--kadmin' not in live.admin('doctor', check=False).stdout
    assert 'Principal: root/admin' in live.kadmin('getprinc root/admin', *ADMIN).stdout


def handles_of_realm(live):
    """{principal: handles} of krbtgt and kadmin/*, as the KDC's database has them."""
    found = {}
    for line in live.run(config_files.mpc_program('mpc-kdb'), 'list').stdout.splitlines():
        key = json.loads(line)
        if key['principal'].startswith(('krbtgt/', 'kadmin/')):
            found.setdefault(key['principal'], set()).add(key['handle'])
    return found


def test_the_runbooks_commands_replace_the_realms_keys_and_end_all_tickets(live, user):
    """Word for word: after a break-in a ticket that somebody made under the old krbtgt key must
    not be good any more."""
    runbook = config_files.REPOSITORY / 'deploy/runbooks/server-compromised.md'
    commands = re.findall(r'^admin# mpc-admin (rotate-krbtgt.*)$', runbook.read_text(), re.MULTILINE)
    assert len(commands) == 4, commands
    before = handles_of_realm(live)
    live.kinit(*user, ccache='before')
    for command in commands:
        live.admin(*command.split())
    assert 'mpc-admin gc --now' in runbook.read_text()
    live.admin('gc', '--now', '--yes')
    after, listed = handles_of_realm(live), live.admin('list').stdout
    assert before.keys() == after.keys() and len(after) == 3
    for principal, handles in before.items():
        assert not handles & after[principal], principal
        assert not [handle for handle in handles if handle in listed], principal
    assert live.kvno(SERVICE, ccache='before', check=False).returncode
    live.kinit(*user)
    live.kvno(SERVICE)
    assert 'Principal: root/admin' in live.kadmin('getprinc root/admin', *ADMIN).stdout


def test_mpc_admin_randkey(live, user):
    live.admin('randkey', user[0])
    live.admin('verify', user[0])
    assert enctypes_of(live, user[0]) == sorted(['aes128-gcm', 'aes256-gcm', *STOCK])
    assert WRONG in live.kinit(*user, check=False).stdout


def test_other_enctypes_are_refused_for_a_user(live):
    refused = live.kadmin_local('addprinc -pw x -e camellia256-cts:normal carol', check=False)
    assert refused.returncode and 'gcm' in refused.stdout
    assert live.kadmin_local('getprinc carol', check=False).returncode


def test_enrolled_twice(live, user):
    """Not by accident: the second time needs --replace; without it nothing changes."""
    name, password = user
    refused = live.enroll(name, 'enrolled again', check=False)
    assert refused.returncode and '--replace' in refused.stdout + refused.stderr
    live.kinit(name, password)
    live.enroll(name, 'enrolled again', '--replace')
    assert WRONG in live.kinit(name, password, check=False).stdout
    live.kinit(name, 'enrolled again')
    live.admin('verify', name)


def enctypes_of(live, user):
    listed = json.loads(live.admin('list', user, '--json').stdout)['keys']
    newest = max(key['kvno'] for key in listed)
    return sorted(key['enctype'] for key in listed if key['kvno'] == newest)


STOCK = ('aes128-cts-hmac-sha1-96', 'aes128-cts-hmac-sha256-128', 'aes256-cts-hmac-sha1-96',
         'aes256-cts-hmac-sha384-192')


def test_keys_for_stock_clients(live):
    """kadmin shares them whatever the realm's list says, when they are asked for."""
    live.kadmin_local('addprinc -pw secret -e ' + ','.join(f'{name}:normal' for name in STOCK)
                      + ' fritz')
    assert enctypes_of(live, 'fritz') == sorted(STOCK)
    check_what_servers_hold(live, 'fritz', 'secret', {17, 18, 19, 20})


def test_enrol_from_a_keytab(live, tmp_path):
    """A keytab made elsewhere with enctypes 17 and 18 holds the same base keys."""
    keytab = tmp_path / 'dave.keytab'
    live.run('ktutil', stdin='addent -password -p dave -k 1 -e aes256-cts\nfrom a keytab\n'
                             'addent -password -p dave -k 1 -e aes128-cts\nfrom a keytab\n'
                             f'wkt {keytab}\nquit\n')
    live.admin('enroll', 'dave', '--keytab', keytab)
    assert enctypes_of(live, 'dave') == ['aes128-cts-hmac-sha1-96', 'aes128-gcm',
                                         'aes256-cts-hmac-sha1-96', 'aes256-gcm']
    live.kinit('dave', 'from a keytab')


def test_deleted_principal(live, user):
    name, password = user
    live.admin('delete', name)
    assert live.kinit(name, password, check=False).returncode
    assert_deleted(live, name)
    live.admin('delete', '--now', name)
    assert f'{name}@' not in live.admin('list').stdout


def assert_deleted(live, name):
    """All keys: none is in use, though a database of before may use them for a day."""
    keys = json.loads(live.admin('list', name, '--json').stdout)['keys']
    assert keys and all(key['retired'] and all(key['retired_us']) for key in keys)


def test_principal_deleted_in_kadmin(live, user):
    live.kadmin_local(f'delprinc -force {user[0]}')
    assert_deleted(live, user[0])


def test_list_and_verify(live, user):
    assert f'{user[0]}@{live.name}' in live.admin('list').stdout
    assert f'krbtgt/{live.name}@{live.name}' in live.admin('list').stdout
    live.admin('verify')
    live.admin('verify', user[0])


def test_status_and_doctor(live):
    status = live.server_status()
    assert [server['party'] for server in status] == [0, 1, 2]
    assert all(server['realm'] == live.name for server in status)
    live.admin('doctor')


def test_test_login(live, user):
    name, password = user
    live.admin('test-login', name, '--password-stdin', stdin=password + '\n')
    refused = live.admin('test-login', name, '--password-stdin', stdin='no\n', check=False)
    assert refused.returncode == 6, 'the exit status of a wrong password'


def test_servers_hold_what_the_password_gives(live, user):
    """Joined, and only joined, two servers' shares are alice's keys: nothing else was stored."""
    check_what_servers_hold(live, *user, set(keys.ALL))


def check_what_servers_hold(live, name, password, enctypes):
    import storefile
    stores = storefile.open_stores(live)
    expected = {enctype: keys.string_to_key(enctype, password, live.name + name)
                for enctype in enctypes}
    seen = set()
    for handle, record in stores[0].items():
        if record.principal != f'{name}@{live.name}':
            continue
        for first, second in ((0, 1), (1, 2), (2, 0)):
            base = storefile.join(stores[first][handle].base, stores[second][handle].base)
            assert base == expected[record.enctype]
            for usage, shares in record.usages.items():
                joined = storefile.join(stores[first][handle].usages[usage],
                                        stores[second][handle].usages[usage])
                assert joined == keys.held_of_usage(record.enctype, base, usage)
        assert sorted(record.usages) == [1, 3, 56]
        seen.add(record.enctype)
    assert seen == set(expected)
