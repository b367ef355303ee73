# SPDX-License-Identifier: Apache-2.0
"""One server's disk is full: nothing is acknowledged that is not durable, nothing is lost, and the
realm goes on by itself once there is room."""

DISK_MB = 4  # an LMDB store of a few keys takes some hundred KB


def test_full_disk(make_realm, mount_disk, fill_disk, new_user):
    live = make_realm()
    data = mount_disk(live.dir / 'p1/data', DISK_MB)
    live.create()
    user = new_user(live)
    live.kinit(*user)
    filler = fill_disk(data)

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
