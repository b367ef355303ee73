# SPDX-License-Identifier: Apache-2.0
"""krbtgt gets its next key while people work, and the run that does it is killed at every step."""

import json
import signal
import subprocess
import threading
import time

import pytest

import config_files
from long_tests import ENABLED, LONG, some

SERVICES = tuple(f'host/s{number}.example.com' for number in range(4))
ADMIN = ('root/admin', 'the administrator')
RENEWABLE = ('-l', '1h', '-r', '5h')


@pytest.fixture(scope='module')
def live(tmp_path_factory):
    import realm
    with realm.Realm(tmp_path_factory.mktemp('rotate') / 'realm',
                     realm.Options(disable_pac=False)) as made:
        made.create()
        for service in SERVICES:
            made.add_service(service)
        made.enroll(*ADMIN, '--enctype', 'aes256-gcm')
        yield made


def versions(live, principal=None):
    principal = principal or f'krbtgt/{live.name}@{live.name}'
    lines = live.run(config_files.mpc_program('mpc-kdb'), 'list').stdout.splitlines()
    return sorted({key['kvno'] for key in map(json.loads, lines) if key['principal'] == principal})


def go_on(live):
    """After a run that was killed, as its administrator, who knows that this is the primary."""
    done = live.admin('rotate-krbtgt', check=False)
    if done.returncode:
        assert 'after a rotation that was killed: mpc-admin rotate-krbtgt --force' in done.stderr
        live.admin('rotate-krbtgt', '--force')


def finish(live, *what):
    return live.admin('rotate-krbtgt', *what, '--finish', '--force')


class Work(threading.Thread):
    """A user who logs in, asks for tickets and renews, again and again; what failed."""

    def __init__(self, live, user, number):
        super().__init__()
        self.live, self.user, self.ccache = live, user, f'work-{number}'
        self.rounds, self.failures, self.done = 0, [], threading.Event()

    def step(self, reply):
        if reply.returncode:
            self.failures.append(reply.stdout)

    def run(self):
        while not self.done.is_set():
            self.step(self.live.kinit(*self.user, *RENEWABLE, ccache=self.ccache, check=False))
            self.step(self.live.kvno(SERVICES[0], ccache=self.ccache, check=False))
            self.step(self.live.run('kinit', '-R', check=False,
                                    env=self.live.with_ccache(self.ccache)))
            self.step(self.live.kvno(SERVICES[1], ccache=self.ccache, check=False))
            self.rounds += 1


@pytest.fixture
def work(live, new_user):
    workers = [Work(live, new_user(live), number) for number in range(2)]
    for worker in workers:
        worker.start()

    def wait_for_rounds(count):
        """Until each has begun a round since, and ended it."""
        goals = [worker.rounds + count + 1 for worker in workers]
        deadline = time.monotonic() + 120
        while any(worker.rounds < goal for worker, goal in zip(workers, goals)):
            assert time.monotonic() < deadline
            time.sleep(0.1)
    yield wait_for_rounds
    for worker in workers:
        worker.done.set()
    for worker in workers:
        worker.join()
        assert not worker.failures, worker.failures[:2]
        assert worker.rounds > 0


def test_work_goes_on_and_old_tickets_live_until_the_end(live, user, work):
    work(1)
    for ccache in ('before', 'renewed'):
        live.kinit(*user, *RENEWABLE, ccache=ccache)
    first = versions(live)
    live.admin('rotate-krbtgt')
    assert versions(live) == first + [first[-1] + 1]
    work(2)
    live.kvno(SERVICES[2], ccache='before')
    live.run('kinit', '-R', env=live.with_ccache('renewed'))
    live.kvno(SERVICES[2], ccache='renewed')
    refused = live.admin('rotate-krbtgt', '--finish', check=False)
    assert refused.returncode == 4 and 'can be good until' in refused.stderr
    state = json.loads(live.admin('rotate-krbtgt', '--status', '--json').stdout)['principals'][0]
    assert state['due'] - state['changed'] == 7 * 24 * 3600 + 300
    live.kvno(SERVICES[3], ccache='before')

    finish(live)
    assert versions(live) == [first[-1] + 1]
    work(1)
    live.kvno(SERVICES[3], ccache='renewed')
    live.run('kinit', '-R', env=live.with_ccache('renewed'))
    live.kinit(*user, ccache='again')
    died = live.kvno(SERVICES[1], ccache='before', check=False)
    assert died.returncode, 'a ticket under the key that was removed'
    assert live.run('kinit', '-R', env=live.with_ccache('before'), check=False).returncode
    live.admin('verify')
    assert '0 bad' in live.admin('doctor').stdout


def test_a_timer_has_nothing_to_do_and_then_something(live):
    timer = ('rotate-krbtgt', '--if-older')
    before = versions(live)
    live.admin(*timer, '30d')
    assert versions(live) == before
    time.sleep(2)
    live.admin(*timer, '1s')
    assert versions(live) == before + [before[-1] + 1]
    live.admin(*timer, '1s')
    assert versions(live) == before + [before[-1] + 1], 'it is not due yet'
    finish(live)


def test_a_replica_is_refused(live):
    """It has the database of before the primary's rotation."""
    replica = live.dump(live.dir / 'replica')
    live.admin('rotate-krbtgt')
    primary = live.dump(live.dir / 'primary')
    live.run('kdb5_util', 'load', replica)
    before = versions(live)
    for timer in ((), ('--if-older', '1s')):
        done = live.admin('rotate-krbtgt', *timer, check=False)
        assert done.returncode == 4 and 'rotate at the primary alone' in done.stderr, done.stderr
    assert versions(live) == before
    live.run('kdb5_util', 'load', primary)
    live.admin('verify')
    assert '0 bad' in live.admin('doctor').stdout
    finish(live)


def test_kadmins_keys_likewise(live, user):
    live.kinit(*ADMIN, '-S', 'kadmin/admin', ccache='kadmin-before')

    def administer(ccache, check=True):
        return live.run('kadmin', '-c', f'FILE:{live.dir / ccache}', '-q', 'getprinc root/admin',
                        check=check).stdout
    assert 'Principal: root/admin' in administer('kadmin-before')
    live.admin('rotate-krbtgt', '--kadmin')
    name = f'kadmin/admin@{live.name}'
    assert len(versions(live, name)) == 2
    assert 'Principal: root/admin' in administer('kadmin-before')
    live.kinit(*ADMIN, '-S', 'kadmin/admin', ccache='kadmin-after')
    assert 'Principal: root/admin' in administer('kadmin-after')
    finish(live, '--kadmin')
    assert len(versions(live, name)) == 1
    assert 'Principal: root/admin' in administer('kadmin-after')
    assert 'Principal: root/admin' not in administer('kadmin-before', check=False)
    live.admin('verify')


class Killer:
    """mpc-kdb, which kills mpc-admin before or after it does its Nth piece of work."""

    def __init__(self, live, folder):
        self.live, self.count, self.kill_at = live, folder / 'count', folder / 'kill-at'
        kdb = config_files.mpc_program('mpc-kdb')
        program = folder / 'kdb'
        program.write_text(
            '#!/bin/sh\n'
            f'echo >> {self.count}; now=$(wc -l < {self.count}); at=$(cat {self.kill_at})\n'
            f'if [ "$at" = "$now before" ]; then kill -9 $PPID; exit 1; fi\n'
            f'{kdb} "$@"; status=$?\n'
            f'[ "$at" != "$now after" ] || kill -9 $PPID\n'
            'exit $status\n')
        program.chmod(0o755)
        self.config = config_files.replace(live.dir / 'admin/admin.toml', f'kdb_command = "{kdb}"',
                                           f'kdb_command = "{program}"', into=folder / 'admin.toml')

    def run(self, step, when, *command):
        """Whether it was killed there; false: it has fewer steps."""
        self.count.write_text('')
        self.kill_at.write_text(f'{step} {when}')
        done = self.live.run(config_files.mpc_program('mpc-admin'), '--config', self.config,
                             'rotate-krbtgt', *command, check=False)
        assert done.returncode in (0, -signal.SIGKILL), done.stdout
        return done.returncode != 0


def check_all_is_well(live, user, ccache):
    """New logins work, an old ticket does; every key that the database names is whole."""
    live.kinit(*user, ccache='new')
    live.kvno(SERVICES[0], ccache='new')
    live.kvno(SERVICES[1], ccache='new')
    if ccache:
        live.run('kinit', '-R', env=live.with_ccache(ccache))
    live.admin('verify', f'krbtgt/{live.name}')
    assert ' 0 bad' in live.admin('doctor', check=False).stdout


@pytest.mark.parametrize('when', some(['before', 'after'], short=['after']))
def test_killed_at_every_step_of_the_database(live, user, tmp_path, when):
    killer = Killer(live, tmp_path)
    killed = {'rotate': 0, 'finish': 0}
    for step in range(1, 20):
        first = versions(live)
        assert len(first) == 1
        live.kinit(*user, *RENEWABLE, ccache='old')
        if killer.run(step, when):
            killed['rotate'] += 1
            check_all_is_well(live, user, 'old')
            go_on(live)
        assert versions(live) == first + [first[0] + 1]
        check_all_is_well(live, user, 'old')
        if killer.run(step, when, '--finish', '--force'):
            killed['finish'] += 1
            check_all_is_well(live, user, None)
            finish(live)
        assert versions(live) == [first[0] + 1]
        check_all_is_well(live, user, None)
        in_use = [key for key in json.loads(live.admin(
            'list', f'krbtgt/{live.name}', '--json').stdout)['keys'] if not key['retired']]
        assert {key['kvno'] for key in in_use} == {first[0] + 1}
        if step > max(killed.values()):
            break
    assert killed['rotate'] >= 4 and killed['finish'] >= 4, killed


@LONG
def test_killed_at_any_moment(live, user):
    """Between the calls of the servers, where no program of ours runs: by the clock."""
    survived = 0
    for pause in range(10, 2000, 45):
        first = versions(live)
        process = subprocess.Popen(
            [config_files.mpc_program('mpc-admin'), '--config', live.dir / 'admin/admin.toml',
             'rotate-krbtgt'], env=live.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(pause / 1000)
            survived += 1
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            time.sleep(0.3)  # its mpc-kdb ends what it was told
        live.kinit(*user, ccache='new')
        live.kvno(SERVICES[0], ccache='new')
        live.admin('verify', f'krbtgt/{live.name}')
        go_on(live)
        assert versions(live) == first + [first[0] + 1]
        finish(live)
        if survived == 2:
            break
    assert survived == 2
    check_all_is_well(live, user, None)


def test_two_at_once(live, user):
    """Both draw the next version: the database takes one, and the other's keys are nobody's. On a busy
    machine one may begin when the other has ended: then there are two versions."""
    for _ in range(5 if ENABLED else 2):
        first = versions(live)
        runs = [subprocess.Popen(
            [config_files.mpc_program('mpc-admin'), '--config', live.dir / 'admin/admin.toml',
             'rotate-krbtgt'], env=live.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True) for _ in range(2)]
        texts = [run.communicate(timeout=60)[0] for run in runs]
        won = [run.returncode for run in runs].count(0)
        assert won >= 1, texts
        assert versions(live) == first + [first[0] + 1 + i for i in range(won)], texts
        check_all_is_well(live, user, None)
        finish(live)
        assert 'does not refer' not in live.admin('doctor').stdout
