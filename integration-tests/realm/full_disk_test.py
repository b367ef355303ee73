# SPDX-License-Identifier: Apache-2.0
"""One server's disk is full: nothing is acknowledged that is not durable, nothing is lost, and the
realm goes on by itself once there is room."""

import errno
import os
import subprocess

import pytest

DISK_MB = 4  # an LMDB store of a few keys takes some hundred KB


@pytest.fixture
def small_disk():
    """Mounts file systems of DISK_MB; unmounts them at the end."""
    mounted = []

    def mount(folder):
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={DISK_MB}m,mode=700', 'tmpfs',
                               folder], capture_output=True, encoding='utf-8')
        if done.returncode:
            pytest.skip(f'this machine mounts no tmpfs: {done.stderr.strip()}')
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(['umount', '-l', folder], check=True)


def fill(folder):
    """Leaves no block free; returns the file that took them."""
    path = folder / 'filler'
    with open(path, 'wb', buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while True:
                    file.write(b'x' * size)
            except OSError as e:
                assert e.errno == errno.ENOSPC
    assert os.statvfs(folder).f_bavail == 0
    return path


def test_full_disk(make_realm, small_disk, new_user):
    live = make_realm()
    data = small_disk(live.dir / 'p1/data')
    live.create()
    user = new_user(live)
    live.kinit(*user)
    filler = fill(data)

    refused = live.enroll('late', 'a password', check=False)
    assert refused.returncode, 'what cannot be stored is not acknowledged'
    assert f':{live.ports.clients[1]}' in refused.stderr, refused.stderr
    assert 'disk full' in refused.stderr, refused.stderr
    for _ in range(3):
        reply = live.kinit(*user, check=False)
        if reply.returncode:
            assert 'A service is not available' in reply.stdout, reply.stdout

    filler.unlink()
    live.wait_for_servers()
    live.kinit(*user)
    assert 'late@' not in live.admin('list').stdout, 'all three servers or none'
    live.enroll('late', 'a password')
    live.kinit('late', 'a password')
    live.admin('verify')
    assert len({server['keys'] for server in live.server_status()}) == 1
