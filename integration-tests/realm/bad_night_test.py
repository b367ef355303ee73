# SPDX-License-Identifier: Apache-2.0
"""An administrator on a bad night: disks that are lost or full, backups that are put back, commands
given twice or in the wrong order. What is said must lead out of it, and following it must work."""

import json
import shutil
import signal
import subprocess

import pytest

import config_files
import daemon
from long_tests import LONG

pytestmark = LONG  # make test has the texts: mpc-server/admin/lost_disk_test.cc, doctor_test.cc

ALICE = ('alice', 'a first password')


@pytest.fixture
def live(new_realm):
    made = new_realm()
    made.enroll(*ALICE)
    return made


def settled(live):
    assert daemon.wait_until(lambda: not any(s.get('refreshing') or s.get('receiving')
                                             for s in live.server_status()), 60, 0.5)


def refresh(live):
    live.admin('refresh')
    settled(live)


def back_up(live, party, folder):
    return subprocess.run([config_files.mpc_program('mpc-server'), '--config',
                           live.dir / f'p{party}/mpc-server.toml', f'--backup={folder}'],
                          capture_output=True, encoding='utf-8', env=live.env, check=False)


def put_back(live, party, folder):
    live.servers[party].stop()
    shutil.copy(folder / 'shares.mdb', live.dir / f'p{party}/data/shares.mdb')
    live.servers[party].start()


def copy_of(live, party):
    folder = live.dir / 'copy'
    folder.mkdir()
    assert back_up(live, party, folder).returncode == 0
    return folder


def doctor(live):
    return live.admin('doctor', check=False).stdout


# ---- The key file cannot be written: a full disk, a folder of another user ----

def amid_a_refresh_without_room(live, party):
    live.admin('refresh', '--no-wait')
    blocked = live.dir / f'p{party}/store.key.new'
    blocked.mkdir()
    (blocked / 'x').touch()
    assert daemon.wait_until(
        lambda: 'cannot be written' in live.server_status()[party].get('refresh_trouble', ''), 30, 0.5)


def test_the_key_of_the_last_epoch_cannot_be_erased(live):
    """It is said, and no outage, not after a restart either: all records can be read."""
    amid_a_refresh_without_room(live, 1)
    assert 'store.key' in doctor(live)
    assert live.admin('status', check=False).returncode != 0
    live.kinit(*ALICE)
    live.restart_server(1)
    live.wait_for_servers()
    live.kinit(*ALICE)


# ---- A lost disk ----

def test_whichever_command_comes_first_names_replace_party(live):
    refresh(live)
    live.lose_disk(1)
    for command in ('init-realm', 'refresh', 'list'):
        done = live.admin(command, check=False)
        assert done.returncode == 4, done.stderr
        assert 'the store of party 1 is empty' in done.stderr, done.stderr
        assert 'mpc-admin replace-party 1' in done.stderr, done.stderr
    said = doctor(live)
    assert 'mpc-admin replace-party 1' in said and 'new keys' not in said, said
    live.admin('replace-party', '1')
    live.kinit(*ALICE)
    assert '0 bad' in doctor(live)


def test_replace_party_again_after_it_was_killed(live):
    """epochs.md: once more it watches and refreshes."""
    refresh(live)
    live.lose_disk(1)
    before = live.server_status()[0]['epoch']
    run = subprocess.Popen([config_files.mpc_program('mpc-admin'), '--config',
                            live.dir / 'admin/admin.toml', 'replace-party', '1'], env=live.env,
                           stdout=subprocess.PIPE, encoding='utf-8')
    assert daemon.wait_until(lambda: live.server_status()[1].get('initialised'), 20, 0.05)
    run.send_signal(signal.SIGKILL)
    run.wait()
    settled(live)
    live.admin('replace-party', '1')
    assert live.server_status()[0]['epoch'] > before + 1
    live.kinit(*ALICE)


def test_two_lost_disks(live):
    """One comes from its backup of the epoch, key file and all; the other is rebuilt from it."""
    refresh(live)
    copy, key = copy_of(live, 1), (live.dir / 'p1/store.key').read_text()
    live.lose_disk(1)
    live.lose_disk(2)
    for command in (('replace-party', '1'), ('init-realm',)):
        done = live.admin(*command, check=False)
        assert done.returncode == 4, done.stderr
        assert 'from its backup of share epoch 2' in done.stderr, done.stderr
    assert 'the keys are gone, by design' in doctor(live)
    live.servers[1].stop()
    (live.dir / 'p1/store.key').write_text(key)
    put_back(live, 1, copy)
    assert daemon.wait_until(lambda: live.server_status()[1].get('keys'), 30, 0.5)
    live.admin('replace-party', '2')
    live.kinit(*ALICE)
    assert '0 bad' in doctor(live)


# ---- A store from a backup ----

def test_a_backup_makes_its_folder_or_names_it(live):
    assert back_up(live, 1, live.dir / 'new').returncode == 0
    nowhere = live.dir / 'backups/new'
    done = back_up(live, 1, nowhere)
    assert done.returncode and str(nowhere) in done.stderr, done.stderr


def test_a_backup_of_this_epoch_catches_up(live):
    copy = copy_of(live, 1)
    live.enroll('bob', 'another password')
    put_back(live, 1, copy)
    live.wait_for_servers()
    said = doctor(live)
    assert 'catch-up' in said, said
    assert 'give those principals new keys' not in said, said
    received = []
    for _ in range(2):
        received.append(json.loads(live.admin('catch-up', '1', '--json').stdout)['received'])
        settled(live)
    assert received[0] > 0 and received[1] == 0, received
    live.kinit('bob', 'another password')


def test_an_old_store_beside_the_key_file_of_now(live):
    copy = copy_of(live, 1)
    refresh(live)
    put_back(live, 1, copy)
    assert daemon.wait_until(lambda: not live.servers[1].is_running(), 20)
    assert 'replace-party' in live.servers[1].log_tail(2), live.servers[1].log_tail(2)
