# SPDX-License-Identifier: Apache-2.0
"""A server's machine is replaced, as deploy/runbooks/a-server-deviated.md says: its old certificate
is denied, it gets a new one, and its store comes from a backup, or from nowhere."""

import hashlib
import shutil
import signal
import ssl

import pytest

import config_files
import daemon

ALICE = ('alice', 'a first password')
PARTY = 1


@pytest.fixture(scope='module')
def live(own_realm):
    own_realm.enroll(*ALICE)
    return own_realm


@pytest.fixture(scope='module')
def backup(live):
    """Of the server's store, and of the key that belongs to it."""
    live.servers[PARTY].stop()
    folder = live.dir / 'backup'
    shutil.copytree(live.dir / f'p{PARTY}', folder)
    live.servers[PARTY].start()
    live.wait_for_servers()
    return folder


def fingerprint(certificate):
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate.read_text())).hexdigest()


def empty_the_store(live):
    live.servers[PARTY].stop()
    shutil.rmtree(live.dir / f'p{PARTY}/data')
    (live.dir / f'p{PARTY}/data').mkdir(mode=0o700)


def answers(live):
    return daemon.wait_until(
        lambda: live.servers[PARTY].listens_on(live.ports.clients[PARTY]), 30)


def test_a_denied_certificate_gives_way_to_a_new_one(live, backup):
    certificate = live.dir / f'ca/peer-p{PARTY}.pem'
    for party in {0, 1, 2} - {PARTY}:
        (live.dir / f'p{party}/denied').write_text(fingerprint(certificate) + '\n')
        live.servers[party].send_signal(signal.SIGHUP)
    assert daemon.wait_until(lambda: not any(
        status['peers_connected'] for status in live.server_status()), 30, 0.2)
    live.servers[PARTY].stop()
    certificate.unlink()
    certificate.with_suffix('.key').unlink()
    config_files.mpc_ca('issue', live.dir / 'ca', '--realm', live.name, '--role', 'peer', '--name',
                        f'p{PARTY}', '--dns', 'localhost', '--ip', '127.0.0.1')
    live.servers[PARTY].start()
    live.wait_for_servers()
    live.kinit(*ALICE)


def test_a_backup_needs_its_own_store_key(live, backup):
    store, key = live.dir / f'p{PARTY}/data', live.dir / f'p{PARTY}/store.key'
    empty_the_store(live)
    key.unlink()
    live.servers[PARTY].start()  # makes a key
    assert answers(live)
    live.servers[PARTY].stop()
    shutil.rmtree(store)
    shutil.copytree(backup / 'data', store)
    live.servers[PARTY].start()
    assert daemon.wait_until(lambda: not live.servers[PARTY].is_running(), 30)
    why = live.servers[PARTY].log_tail(3)
    assert 'restore the key file that belongs to this data directory' in why, why
    shutil.copy(backup / 'store.key', key)
    live.servers[PARTY].start()
    live.wait_for_servers()
    live.kinit(*ALICE)
    live.admin('verify')


def test_without_a_backup_the_others_give_it_its_keys(live, backup):
    empty_the_store(live)
    live.servers[PARTY].start()
    assert answers(live)
    doctor = live.admin('doctor', check=False)
    assert doctor.returncode == 1 and f'mpc-admin replace-party {PARTY}' in doctor.stdout
    refused = live.kinit(*ALICE, check=False)
    assert refused.returncode and 'A service is not available' in refused.stdout
    live.admin('replace-party', PARTY)
    live.wait_for_servers()
    live.kinit(*ALICE)
    live.kinit(*ALICE, '-S', 'kadmin/changepw')
    assert live.failed_attempts(ALICE[0]) == 0
    assert live.admin('doctor', check=False).returncode == 0
    assert not any(status['quarantine'] for status in live.server_status())
