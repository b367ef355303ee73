# SPDX-License-Identifier: Apache-2.0
"""`mpc-admin import-realm`: an MIT realm comes to the servers, and nobody needs a new password."""

import json
import random
import re

import pytest

import config_files
from long_tests import LONG, some
from old_realm import HOST, LAST_HOST, LEFT, OTHER_HOST, USERS, OldRealm, facts

RUNBOOK = (config_files.REPOSITORY / 'deploy/runbooks/migrate.md').read_text()
STOCK_CLIENT = {'permitted_enctypes': 'aes256-cts aes128-cts aes256-sha2 aes128-sha2'}


def stock_client(live):
    """A krb5.conf of a client that does not know our types."""
    path = live.dir / 'krb5-stock.conf'
    text = (live.dir / 'krb5.conf').read_text()
    path.write_text(re.sub(r'permitted_enctypes = .*',
                           f'permitted_enctypes = {STOCK_CLIENT["permitted_enctypes"]}', text))
    return {'KRB5_CONFIG': str(path)}


def everybody_logs_in(live):
    for user in USERS:
        # sven's keys are of types that a client of ours is not asked about either.
        live.kinit(user.name, user.password, ccache='try')
        live.kinit(user.name, user.password, ccache='try', env=stock_client(live))
        live.kvno(HOST, ccache='try')
    wrong = live.kinit('alice', 'not hers', check=False)
    assert wrong.returncode and 'Password incorrect' in wrong.stdout, wrong.stdout


def keys_of(live, name):
    """On the servers, by class, those that are not deleted."""
    listed = json.loads(live.admin('list', '--json', name, check=False).stdout)
    return [key for key in listed.get('keys', []) if not key['retired']]


def handles(live):
    lines = live.run(config_files.mpc_program('mpc-kdb'), 'list').stdout.splitlines()
    return [entry for entry in map(json.loads, lines) if not entry.get('keyless')]


def describe(live):
    return {user.name: facts(live.kadmin_local(f'getprinc {user.name}').stdout) for user in USERS}


def session_enctypes(live):
    for service in (f'krbtgt/{live.name}', 'kadmin/admin', 'kadmin/changepw'):
        live.kadmin_local(f'setstr {service} session_enctypes '
                          + ','.join(config_files.STOCK_ENCTYPES))


def doctor_is_content(live):
    text = live.admin('doctor', check=False).stdout
    assert ' 0 bad' in text or '0 bad,' in text, text


def files_with_keys(live):
    """The database's files in which a stored key is found."""
    return [path.name for path in live.kdc_dir.iterdir() if path.name.startswith('principal')
            and any(key in path.read_bytes() for key in live.ciphertexts)]


# ---- the same database ----

@pytest.fixture(scope='module', params=some(['db2', 'klmdb'], short=['db2']))
def converted(request, tmp_path_factory):
    """A realm that served users with MIT's own database until a moment ago; alice is logged in."""
    import realm
    with realm.Realm(tmp_path_factory.mktemp('convert') / 'realm',
                     realm.Options(wrapped=request.param)) as live:
        live.write_files()
        live.old = OldRealm(live, wrapped=request.param).create().serve()
        live.kinit('alice', USERS[0].password, '-r', '5h', ccache='old')
        live.before = {user.name: facts(live.old.local(f'getprinc {user.name}')) for user in USERS}
        live.ciphertexts = [key for user in USERS for key in live.old.ciphertexts(user.name)]
        assert files_with_keys(live), 'the control: the search finds keys that are there'
        live.old.stop()
        live.start_servers()
        live.admin('init-realm')
        live.start_kdc()
        yield live


def import_in_place(live, *options, **more):
    """As the runbook says it."""
    command = ['mpc-admin', 'import-realm', '--source', '/etc/krb5kdc/old-kdc.conf',
               *(option for option in options[:1] if option != '--json')]
    assert f'\nadmin# {" ".join(command)}' in RUNBOOK, command
    arguments = [live.old.profile if word.startswith('/etc/') else word for word in command[1:]]
    return live.admin(*arguments, *(option for option in options if option not in command), **more)


def test_convert_dry_run(converted):
    live = converted
    before = handles(live)
    text = import_in_place(live, '--dry-run').stdout
    assert re.search(rf'to import +{len(USERS)}\b', text), text
    for name, reason in LEFT.items():
        assert re.search(rf'left: {name}@.*{reason}', text), text
    report = json.loads(import_in_place(live, '--dry-run', '--json').stdout)
    assert report['mode'] == 'convert' and report['dry_run']
    assert report['weak_keys'] == {'arcfour-hmac': 2}  # dora's and rick's
    assert report['old_version_keys'] == 2  # alice's
    assert report['old_passwords'] == 2  # erin's
    assert handles(live) == before == []


def test_convert_before_and_after_an_import_users_log_in(converted):
    live = converted
    everybody_logs_in(live)
    report = json.loads(import_in_place(live, '--json').stdout)
    assert report['imported'] == len(USERS) and not report['failed'], report
    everybody_logs_in(live)
    for user in USERS:
        assert keys_of(live, user.name), user.name
        for key in keys_of(live, user.name):
            assert key['parties'] == [0, 1, 2] and key['gate'] == 'timestamp'
    live.kvno(OTHER_HOST, ccache='old')
    again = json.loads(import_in_place(live, '--json').stdout)
    assert again['imported'] == 0 and again['before'] == len(USERS)


def test_convert_keeps_what_the_entries_say(converted):
    """Policies, lives, expirations, attributes, times; those that logins change are apart."""
    live, changing = converted, ('Last successful', 'Last failed', 'Failed password')
    for name, now in describe(live).items():
        assert ([line for line in now if not line.startswith(changing)] ==
                [line for line in live.before[name] if not line.startswith(changing)])
    assert 'blue and green' in live.kadmin_local('getstrs erin').stdout


def test_convert_rollback_of_one(converted):
    live = converted
    import_in_place(live, '--rollback', 'bob')
    assert keys_of(live, 'bob') == []
    assert not [entry for entry in handles(live) if entry['principal'].startswith('bob@')]
    live.kinit('bob', USERS[1].password)
    assert json.loads(import_in_place(live, '--json').stdout)['imported'] == 1
    live.kinit('bob', USERS[1].password)


def test_convert_a_new_password_outlives_a_rollback(converted):
    live = converted
    live.kadmin_local('cpw -pw "changed since" carol')
    refused = import_in_place(live, '--rollback', 'carol', check=False)
    assert refused.returncode == 1 and 'new keys since it was imported' in refused.stdout
    live.kinit('carol', 'changed since')
    live.kadmin_local(f'cpw -pw "{USERS[2].password}" carol')


def test_convert_commit(converted):
    """krbtgt is drawn, tickets from before go on, and nothing is made under the old key."""
    live = converted
    import_in_place(live, '--commit', '--yes')
    live.kadmind.stop()
    live.kadmind.start()
    session_enctypes(live)
    everybody_logs_in(live)
    classes = {key['class'] for key in keys_of(live, f'krbtgt/{live.name}')}
    assert classes == {'tgs', 'tgs-old'}
    live.kvno(HOST, ccache='old')
    renewed = live.run('kinit', '-R', env=live.with_ccache('old'), check=False)
    assert renewed.returncode, 'a ticket was made from one that has no header'
    refused = import_in_place(live, '--rollback', 'alice', check=False)
    assert refused.returncode and 'could not log in' in refused.stderr
    import_in_place(live, '--commit', '--yes')
    doctor_is_content(live)


def test_convert_password_history_came_along(converted):
    live = converted
    for former in (*USERS[4].former, USERS[4].password):
        refused = live.kadmin_local(f'cpw -pw "{former}" erin', check=False)
        assert refused.returncode and 'Cannot reuse password' in refused.stdout, refused.stdout
    live.kadmin_local('cpw -pw "erin fourth" erin')
    live.kinit('erin', 'erin fourth')


def test_convert_scrub(converted):
    live = converted
    assert not any(key.hex() in live.dump(live.dir / 'after.dump').read_text()
                   for key in live.ciphertexts)
    before = files_with_keys(live)
    live.stop_kdc()
    text = import_in_place(live, '--scrub', '--yes').stdout
    assert 'overwritten: ' in text and 'replica KDCs' in text
    assert not files_with_keys(live), before
    assert not [path for path in live.kdc_dir.iterdir() if 'scrub' in path.name]
    live.start_kdc()
    live.kinit('alice', USERS[0].password)


def test_convert_rotation_ends_the_old_key(converted):
    live = converted
    assert '\n`mpc-admin rotate-krbtgt --finish`' in RUNBOOK and '`--finish --force`' in RUNBOOK
    live.admin('rotate-krbtgt', '--finish', '--force')
    refused = live.kvno(LAST_HOST, ccache='old', check=False)
    assert refused.returncode, refused.stdout
    assert {key['class'] for key in keys_of(live, f'krbtgt/{live.name}')} == {'tgs'}
    live.kinit('alice', USERS[0].password)


# ---- a new database ----

def test_copy_from_dump_and_stash(make_realm):
    live = make_realm()
    live.write_files()
    old = OldRealm(live, name='other').create().serve()
    live.kinit('alice', USERS[0].password, ccache='old')
    before = {user.name: facts(old.local(f'getprinc {user.name}')) for user in USERS}
    old.stop()
    dump = old.folder / 'old.dump'
    old.run('kdb5_util', 'dump', dump)
    live.create()
    source = ('--dump', dump, '--stash', old.stash, '--scratch', live.dir / 'scratch')
    report = json.loads(live.admin('import-realm', *source, '--json').stdout)
    assert report['mode'] == 'copy' and report['imported'] == len(USERS), report
    assert not report['failed'] and len(report['left']) == len(LEFT)
    everybody_logs_in(live)
    for name, now in describe(live).items():
        changing = ('Last successful', 'Last failed', 'Failed password')
        assert ([line for line in now if not line.startswith(changing)] ==
                [line for line in before[name] if not line.startswith(changing)])
    # A service goes on with its keytab; a ticket of the old KDC is good.
    live.kvno(HOST, '-k', old.folder / 'services.keytab', ccache='try')
    live.kvno(OTHER_HOST, ccache='old')
    for former in USERS[4].former:
        refused = live.kadmin_local(f'cpw -pw "{former}" erin', check=False)
        assert refused.returncode and 'Cannot reuse password' in refused.stdout, refused.stdout
    live.kadmin_local('cpw -pw "rick is strong now" rick')
    live.kinit('rick', 'rick is strong now')
    live.admin('import-realm', *source, '--rollback', 'bob')
    assert 'does not exist' in live.kadmin_local('getprinc bob', check=False).stdout
    live.admin('import-realm', *source)
    live.admin('import-realm', *source, '--commit')
    everybody_logs_in(live)
    doctor_is_content(live)
    live.stop_kdc()
    text = live.admin('import-realm', *source, '--scrub', '--yes').stdout
    assert not dump.exists() and not (live.dir / 'scratch').exists() and not old.stash.exists()
    assert f'overwritten: {dump}' in text
    live.start_kdc()
    everybody_logs_in(live)


# ---- killed ----

KILLER = '''#!/bin/sh
# The call whose turn it is ends mpc-admin, or itself, or both.
echo >> {counter}
[ $(wc -l < {counter}) = "$(cat {turn})" ] || exec {program} "$@"
case $(cat {how}) in
  before) kill -9 $PPID; exit 1;;
  after) {program} "$@"; status=$?; kill -9 $PPID; exit $status;;
  itself) {program} "$@" & child=$!; sleep $(cat {delay}); kill -9 $child; wait $child; exit 1;;
  both) {program} "$@" & child=$!; sleep $(cat {delay}); kill -9 $child $PPID; exit 1;;
esac
'''
HOWS = ('before', 'after', 'itself', 'both')


class Killer:
    """An mpc-kdb that is killed, or kills who called it, at a call that a seed chooses."""

    def __init__(self, live):
        self.live = live
        self.files = {name: live.dir / f'kill-{name}'
                      for name in ('counter', 'turn', 'how', 'delay')}
        program = config_files.mpc_program('mpc-kdb')
        script = live.dir / 'killed-mpc-kdb'
        script.write_text(KILLER.format(program=program, **self.files))
        script.chmod(0o755)
        config = live.dir / 'admin/admin.toml'
        self.config = config_files.replace(config, program, str(script),
                                           into=live.dir / 'admin/killed.toml')

    def run(self, turn, how, delay, *command):
        """Whether the command ended well in spite of it."""
        for name, value in (('counter', ''), ('turn', turn), ('how', how), ('delay', delay)):
            self.files[name].write_text(str(value) + ('\n' if value else ''))
        argv = [config_files.mpc_program('mpc-admin'), '--config', self.config, *command]
        return self.live.run(*argv, check=False).returncode == 0


@pytest.mark.parametrize('seed', some(list(range(8)), short=[1]))
def test_killed_at_every_step_and_resumed(make_realm, seed):
    """After each kill everybody logs in; in the end all are imported and the servers hold no key
    that nobody names."""
    draw = random.Random(seed)
    live = make_realm()
    live.write_files()
    live.old = OldRealm(live).create()
    live.start_servers()
    live.admin('init-realm')
    live.start_kdc()
    killer = Killer(live)
    source = ('import-realm', '--source', live.old.profile)
    for turn in range(1, 5):  # scan, seal, write, and what comes after
        killer.run(turn, draw.choice(HOWS), draw.uniform(0, 0.2), *source)
        check_whole(live)
        if draw.random() < 0.5:
            live.admin(*source)
            killer.run(turn, draw.choice(HOWS), draw.uniform(0, 0.2), *source, '--rollback',
                       '--yes')
            check_whole(live)
    live.admin(*source)
    for turn in draw.sample(range(1, 9), 4):
        killer.run(turn, draw.choice(HOWS), draw.uniform(0, 0.2), *source, '--commit', '--yes')
        everybody_logs_in(live)
    live.admin(*source, '--commit', '--yes')
    session_enctypes(live)
    everybody_logs_in(live)
    live.admin('doctor', '--fix', check=False)
    doctor_is_content(live)


def check_whole(live):
    """Each principal has all of its keys on the three servers, or none."""
    everybody_logs_in(live)
    listed = json.loads(live.admin('list', '--json', check=False).stdout)['keys']
    on_servers = {key['handle'] for key in listed
                  if key['parties'] == [0, 1, 2] and not key['retired']}
    named = {}
    for entry in handles(live):
        if not entry.get('history'):
            named.setdefault(entry['principal'].split('@')[0], []).append(entry['handle'])
    for user in USERS:
        mine = named.get(user.name, [])
        assert len(mine) in (0, keys_expected(user)), (user.name, mine)
        assert set(mine) <= on_servers, user.name


def keys_expected(user):
    """Each base key of 17 and 18 is two keys."""
    if 'sha2' in user.options:
        return 2
    one_base_key = "aes256" not in user.options or "aes128" not in user.options
    return 2 if "-e " in user.options and one_base_key else 4


@LONG
def test_other_masters(make_realm):
    """A stash that is not the database's is refused before anything is changed."""
    live = make_realm()
    live.write_files()
    old = OldRealm(live, name='other').create()
    dump = old.folder / 'old.dump'
    old.run('kdb5_util', 'dump', dump)
    live.create()
    refused = live.admin('import-realm', '--dump', dump, '--stash', live.stash, '--scratch',
                         live.dir / 'scratch', check=False)
    assert refused.returncode and 'master key' in refused.stderr
    assert not [entry for entry in handles(live) if entry['principal'].startswith('alice@')]
