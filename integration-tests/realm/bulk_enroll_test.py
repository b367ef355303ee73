# SPDX-License-Identifier: Apache-2.0
"""`mpc-admin enroll --all`: four thousand users, interrupted and killed on the way."""

import collections
import json
import pathlib
import signal
import subprocess
import sys

import pytest

import config_files
import daemon
from long_tests import some

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'storm'))

import many_users  # noqa: E402

USERS = 4000
CHUNK = 512    # limits.h: kBulkPrincipals
PATIENCE = 60  # seconds


class Bulk:
    """A realm whose mpc-kdb takes its time over a chunk, so that there is a middle to stop in."""

    def __init__(self, live):
        self.live = live
        self.keytab = many_users.write_keytab(live.dir / 'users.keytab', live.name, USERS)
        self.begun, self.ended = live.dir / 'chunks-begun', live.dir / 'chunks-ended'
        program = config_files.mpc_program('mpc-kdb')
        slow = live.dir / 'slow-mpc-kdb'
        slow.write_text('#!/bin/sh\n'
                        f'[ "$1" = set-handles-many ] || exec {program} "$@"\n'
                        f'echo >> {self.begun}; sleep 1; {program} "$@"; status=$?\n'
                        f'echo >> {self.ended}; exit $status\n')
        slow.chmod(0o755)
        config = live.dir / 'admin/admin.toml'
        self.slow_config = live.dir / 'admin/slow.toml'
        self.slow_config.write_text(
            config.read_text().replace(config_files.mpc_program('mpc-kdb'), str(slow)))

    def start(self, keytab=None):
        """The enrolment, in the middle: its second chunk is about to go into the database."""
        self.begun.write_text('')
        self.ended.write_text('')
        process = subprocess.Popen(
            [config_files.mpc_program('mpc-admin'), '--config', self.slow_config, 'enroll', '--all',
             '--keytab', keytab or self.keytab, '--enctype', 'aes128-gcm'], env=self.live.env,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert daemon.wait_until(lambda: len(self.begun.read_text()) == 2, PATIENCE)
        return process

    def database(self):
        """Handles by principal, as the KDC's database has them; the users' alone."""
        lines = self.live.run(config_files.mpc_program('mpc-kdb'), 'list').stdout.splitlines()
        handles = collections.defaultdict(list)
        for entry in map(json.loads, lines):
            if entry['principal'].startswith('u0'):
                handles[entry['principal']].append(entry['handle'])
        return handles

    def servers(self):
        """The users' handles that all three servers have in use."""
        keys = json.loads(self.live.admin('list', '--json', check=False).stdout)['keys']
        return {key['handle'] for key in keys
                if key['principal'].startswith('u0') and key['parties'] == [0, 1, 2]
                and not key['retired']}

    def check_nobody_is_half_enrolled(self):
        database, servers = self.database(), self.servers()
        assert all(len(handles) == 1 and handles[0] in servers for handles in database.values())
        return len(database)


@pytest.fixture(scope='module', params=some(['db2', 'klmdb'], short=['db2']))
def bulk(request, tmp_path_factory):
    import realm
    with realm.Realm(tmp_path_factory.mktemp('bulk') / 'realm',
                     realm.Options(wrapped=request.param)) as live:
        live.create()
        yield Bulk(live)


def test_interrupted_killed_and_completed(bulk):
    live = bulk.live

    interrupted = bulk.start()
    interrupted.send_signal(signal.SIGINT)
    text, _ = interrupted.communicate(timeout=PATIENCE)
    assert interrupted.returncode == 3, text
    assert 'it goes on where it stopped' in text
    done = bulk.check_nobody_is_half_enrolled()
    assert 0 < done < USERS and f'stopped after {done} of {USERS}' in text
    assert len(bulk.servers()) == done, 'what it had begun it ended'

    killed = bulk.start()
    killed.kill()
    killed.communicate(timeout=PATIENCE)
    # Its mpc-kdb lives on, and writes the chunk if it was told all of it.
    assert daemon.wait_until(lambda: len(bulk.ended.read_text()) == 2, PATIENCE)
    after_kill = bulk.check_nobody_is_half_enrolled()
    assert after_kill in (done + CHUNK, done + 2 * CHUNK)

    last = live.admin('enroll', '--all', '--keytab', bulk.keytab, '--enctype', 'aes128-gcm')
    assert f'{USERS - after_kill} enrolled, {after_kill} had protected keys already' in last.stdout
    assert bulk.check_nobody_is_half_enrolled() == USERS

    live.admin('doctor', '--fix')  # keys that the killed run had committed and nobody names
    assert len(bulk.servers()) == USERS
    assert '0 bad, 0 warnings' in live.admin('doctor').stdout
    assert '1 key good' in live.admin('verify', many_users.user_name(USERS - 1)).stdout


def test_a_server_that_stops_in_the_middle(bulk):
    """Nobody is enrolled on two servers: the run ends, and goes on when the third is back."""
    live = bulk.live
    more = many_users.write_keytab(live.dir / 'more.keytab', live.name, 1500, first=USERS)
    before = bulk.check_nobody_is_half_enrolled()
    running = bulk.start(more)
    live.servers[2].kill()
    try:
        text, _ = running.communicate(timeout=PATIENCE)
        assert running.returncode == 3, text
        assert 'it goes on where it stopped' in text
    finally:
        live.servers[2].start()
        live.wait_for_servers()
    stopped = bulk.check_nobody_is_half_enrolled()
    assert before < stopped < before + 1500
    live.admin('enroll', '--all', '--keytab', more, '--enctype', 'aes128-gcm')
    assert bulk.check_nobody_is_half_enrolled() == before + 1500
    kept = live.run(config_files.mpc_program('mpc-kdb'), 'plan', many_users.user_name(USERS))
    assert json.loads(kept.stdout)['kvno_next'] == 2
    entry = live.kadmin_local(f'getprinc {many_users.user_name(USERS)}').stdout
    assert 'REQUIRES_PRE_AUTH' in entry and 'aes128-gcm' in entry, entry


def test_a_user_enrolled_in_bulk_logs_in(bulk):
    """kinit with the key of the keytab, which says 17 where krb5 wants the enctype's number."""
    live = bulk.live
    name = many_users.user_name(7)
    data = (live.dir / 'users.keytab').read_bytes()
    one = data[2:2 + len(many_users.entry(name, live.name, 17, bytes(16)))]  # all are as long
    size = len(one)
    entry = data[2 + 7 * size:2 + 8 * size]
    key = entry[-20:-4]
    (live.dir / 'one.keytab').write_bytes(
        b'\x05\x02' + many_users.entry(name, live.name, -24001, key))
    live.run('kinit', '-k', '-t', live.dir / 'one.keytab', name)
    assert name in live.klist().stdout


def test_every_enctype_that_a_keytabs_keys_are(bulk):
    """Keys of 18 become two each; of 19 one. With --enctype only what was asked for."""
    live = bulk.live
    for number, (enctype, options, expected) in enumerate([
            (18, (), ['aes256-cts-hmac-sha1-96', 'aes256-gcm']),
            (19, (), ['aes128-cts-hmac-sha256-128']),
            (18, ('--enctype', 'aes256-cts'), ['aes256-cts-hmac-sha1-96'])]):
        first = 100000 + 600 * number  # more than a chunk
        keytab = many_users.write_keytab(live.dir / 'types.keytab', live.name, 600, enctype, first)
        live.admin('enroll', '--all', '--keytab', keytab, *options)
        for user in (first, first + 599):
            name = many_users.user_name(user)
            listed = json.loads(live.admin('list', name, '--json').stdout)['keys']
            assert sorted(key['enctype'] for key in listed) == expected
            assert all(key['parties'] == [0, 1, 2] for key in listed)
            live.admin('verify', name)
