# SPDX-License-Identifier: Apache-2.0
"""Who is deleted, or locked, while his new password is on its way to the servers stays so: whoever is about to
lose his account could otherwise change his password again and again until he is back."""

import contextlib
import os
import signal
import subprocess

import pytest

import config_files
import daemon


@pytest.fixture(scope='module')
def live(own_realm):
    return own_realm


@contextlib.contextmanager
def stopped(server):
    server.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        server.send_signal(signal.SIGCONT)


def asks_servers(process):
    """It has read the entry then."""
    folder = f'/proc/{process.pid}/fd'
    links = [os.readlink(f'{folder}/{name}') for name in os.listdir(folder)]
    return any(link.startswith('socket:') for link in links)


def started(live, *query):
    return subprocess.Popen([config_files.krb5_program('kadmin.local'), *query], env=live.env,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8')


def test_a_change_of_password_brings_nobody_back(live):
    name = 'leaver'
    live.enroll(name, 'a first password')
    with stopped(live.servers[2]):
        change = started(live, 'cpw', '-pw', 'a second password', name)
        assert daemon.wait_until(lambda: asks_servers(change), 3, 0.01)
        deletion = started(live, 'delprinc', '-force', name)
        assert daemon.wait_until(lambda: asks_servers(deletion), 3, 0.01)  # about the old keys: he is gone
    said, done = change.communicate(timeout=60)[0], deletion.communicate(timeout=60)[0]
    assert deletion.returncode == 0, done
    listed = live.kadmin_local('listprincs').stdout.split()
    assert f'{name}@{live.name}' not in listed, said
    assert live.kinit(name, 'a second password', check=False).returncode
    assert change.returncode, 'nothing is called changed'
    assert f'{name}@{live.name} was deleted by somebody else meanwhile' in said, said
    # Nothing of the change is left on the servers in use.
    assert name not in live.admin('doctor', check=False).stdout


@pytest.mark.parametrize('modification', ['-allow_tix', '-expire 2020-01-01'])
def test_a_change_of_password_unlocks_nobody(live, modification):
    name = f'locked{len(modification)}'
    live.enroll(name, 'a first password')
    live.kadmin_local(f'modprinc +needchange {name}')
    with stopped(live.servers[2]):
        change = started(live, 'cpw', '-pw', 'a second password', name)
        assert daemon.wait_until(lambda: asks_servers(change), 3, 0.01)
        live.kadmin_local(f'modprinc {modification} {name}')
    said = change.communicate(timeout=60)[0]
    assert change.returncode == 0, said
    said = live.kinit(name, 'a second password', check=False).stdout
    assert "credentials have been revoked" in said or 'entry in database has expired' in said, said
    assert 'REQUIRES_PWCHANGE' not in live.kadmin_local(f'getprinc {name}').stdout, 'the change is a change'
