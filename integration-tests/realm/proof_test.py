# SPDX-License-Identifier: Apache-2.0
"""The demo's proof after a busy life: logins, a wrong password, renewals, service tickets."""

import proof


def test_no_machine_holds_a_key(make_realm, tmp_path):
    live = make_realm(disable_pac=False)
    live.create()
    live.add_service('host/www.example.com')
    live.enroll('alice', 'an unlikely password')
    for _ in range(3):
        live.kinit('alice', 'an unlikely password', '-r', '1d')
        live.kvno('host/www.example.com')
        live.run('kinit', '-R')
    live.kinit('alice', 'a wrong password', check=False)
    lines = []
    assert proof.search(live, 'alice', 'an unlikely password', tmp_path / 'stock', lines.append), \
        '\n'.join(lines)
