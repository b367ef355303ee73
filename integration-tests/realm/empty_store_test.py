# SPDX-License-Identifier: Apache-2.0
"""A server has an empty store, and the two others have not, before any refresh of the shares."""

import daemon

ALICE = ('alice', 'a first password')
SAID = 'the store of server 1 is empty'


def nobody_is_ready(live):
    return not any(server.get('peers_connected') for server in live.server_status())


def says_so(live):
    return SAID in (live.log_dir / 'p0.log').read_text()


def test_a_lost_disk(make_realm):
    live = make_realm()
    live.create()
    live.enroll(*ALICE)
    live.lose_disk(1)
    assert daemon.wait_until(lambda: says_so(live) and nobody_is_ready(live), 20, 0.2)
    live.kinit(*ALICE, check=False)
    assert live.failed_attempts('alice') == 0
    live.admin('replace-party', '1')
    live.kinit(*ALICE)


def test_a_realm_that_is_half_made(make_realm):
    live = make_realm()
    live.create_servers()
    live.lose_disk(1)
    assert daemon.wait_until(lambda: says_so(live) and nobody_is_ready(live), 20, 0.2)
    live.admin('init-realm')
    live.create_database()
    live.start_kdc()
    live.enroll(*ALICE)
    live.kinit(*ALICE)
