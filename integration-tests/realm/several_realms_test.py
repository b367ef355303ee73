# SPDX-License-Identifier: Apache-2.0
"""One krb5kdc for three realms: two with servers of their own, one of MIT's own. Each realm's users log
in by its own servers alone, and whatever happens to one realm's, the others go on."""

import concurrent.futures
import contextlib
import json
import re

import pytest

import config_files
import joint_kdc
import realm as realm_module
from long_tests import some

HOME, AWAY, STOCK = 'EXAMPLE.COM', 'OTHER.ORG', 'STOCK.NET'
PASSWORD = 'a password'


class World:
    def __init__(self, kdc, home, away, stock):
        self.kdc, self.home, self.away, self.stock = kdc, home, away, stock
        self.all = (home, away, stock)


@pytest.fixture(scope='module', params=some(['one process', 'two workers'], short=['one process']))
def world(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp('joint')
    with contextlib.ExitStack() as stack:
        realms = [
            stack.enter_context(kind(folder / name, realm_module.Options(realm=name)))
            for name, kind in ((HOME, realm_module.Realm), (AWAY, realm_module.Realm),
                               (STOCK, realm_module.StockRealm))]
        kdc = stack.enter_context(joint_kdc.JointKdc(
            folder, realms, workers=2 if request.param == 'two workers' else 0))
        made = World(kdc.prepare(), *realms)
        for realm in realms:
            add_user(realm, 'alice', PASSWORD)
            realm.add_service('host/www.example.com')
        kdc.start()
        yield made


def add_user(realm, name, password):
    """The same way in each realm."""
    realm.kadmin_local(f"addprinc -pw '{password}' {name}")


def handles(realm):
    """By principal."""
    found = {}
    for line in realm.run(config_files.mpc_program('mpc-kdb'), 'list').stdout.splitlines():
        entry = json.loads(line)
        found.setdefault(entry['principal'], []).append(entry['handle'])
    return found


def logins_seen(realm, party=0):
    text = (realm.log_dir / f'p{party}-audit.jsonl').read_text()
    return text.count('"LOGIN"')


def test_each_realm_logs_its_own_users_in(world):
    for realm in world.all:
        before = [logins_seen(other) for other in (world.home, world.away)]
        realm.run('kdestroy')
        realm.kinit('alice', PASSWORD)
        realm.kvno('host/www.example.com')
        after = [logins_seen(other) for other in (world.home, world.away)]
        grown = [name for name, b, a in zip((HOME, AWAY), before, after) if a > b]
        assert grown == ([] if realm is world.stock else [realm.name])
        assert f'alice@{realm.name}' in realm.klist().stdout
        wrong = realm.kinit('alice', 'wrong', check=False, ccache='wrong')
        assert 'Password incorrect' in wrong.stdout
        assert realm.failed_attempts('alice') == 1
        realm.kinit('alice', PASSWORD)
        assert realm.failed_attempts('alice') == 0


def test_any_port_serves_any_realm(world):
    """As in MIT's krb5kdc: a realm is what a request names, not where it arrives."""
    through = world.home.krb5_conf_through(world.away.ports.kdc)
    world.home.kinit('alice', PASSWORD, env=through, ccache='through')


def test_all_realms_at_once(world):
    with concurrent.futures.ThreadPoolExecutor(9) as pool:
        replies = list(pool.map(
            lambda number: world.all[number % 3].kinit(
                'alice', PASSWORD, ccache=f'many{number}', check=False), range(27)))
    assert [reply.stdout for reply in replies if reply.returncode] == []


def test_kadmin_serves_each_realm_by_itself(world):
    for realm in world.all:
        add_user(realm, 'boss/admin', PASSWORD)
        listed = realm.kadmin('listprincs', f'boss/admin@{realm.name}', PASSWORD).stdout
        assert f'alice@{realm.name}' in listed
        for other in world.all:
            assert other is realm or other.name not in listed
        realm.run('kpasswd', 'alice', stdin=f'{PASSWORD}\nchanged\nchanged\n',
                  env=realm.with_ccache('none'))
        assert 'Password incorrect' in realm.kinit('alice', PASSWORD, check=False).stdout
        realm.kinit('alice', 'changed')
        realm.kadmin_local(f"cpw -pw '{PASSWORD}' alice")


def test_the_stock_realm_is_as_stock(world):
    """Behind armor MIT's KDC offers encrypted challenge, which needs a PRF of the user's key. That of a
    realm with servers offers the encrypted timestamp in its place."""
    for realm, used in ((world.stock, 'encrypted_challenge (138) (real) returned: 0/Success'),
                        (world.home, 'encrypted_timestamp (2) (real) returned: 0/Success')):
        realm.kinit('alice', PASSWORD, ccache='armor')
        trace = realm.dir / 'trace'
        realm.run('kinit', '-T', f'FILE:{realm.dir / "armor"}', 'alice', stdin=PASSWORD + '\n',
                  env={'KRB5_TRACE': str(trace)})
        assert used in trace.read_text()
    entry = world.stock.kadmin_local('getprinc krbtgt/STOCK.NET').stdout
    assert 'aes256-cts' in entry


def test_an_outage_of_one_realm_is_none_of_the_others(world):
    world.away.servers[1].stop()
    try:
        out = world.away.kinit('alice', PASSWORD, check=False, ccache='out')
        assert 'not available' in out.stdout, out.stdout
        world.home.kinit('alice', PASSWORD)
        world.stock.kinit('alice', PASSWORD)
    finally:
        world.away.servers[1].start()
        world.away.wait_for_servers()
    text = world.kdc.log_text()
    assert re.search(rf'{re.escape(AWAY)}: .*(MPC servers|remote keys)', text)
    assert not re.search(rf'{re.escape(HOME)}: (MPC servers: no triple|remote keys)', text)
    world.away.kinit('alice', PASSWORD)


def swap_handles(realm, name, theirs):
    """In the realm's database: the keys of `name` become key references with these handles."""
    dump = realm.dir / 'swap.dump'
    realm.run('kdb5_util', 'dump', dump, f'{name}@{realm.name}')
    text = dump.read_text()
    ours = handles(realm)[f'{name}@{realm.name}'] if realm.servers else []
    assert len(ours) <= len(theirs)
    for old, new in zip(ours, theirs):
        assert old in text
        text = text.replace(old, new)
    dump.write_text(text)
    realm.run('kdb5_util', 'load', '-update', dump)


def test_a_handle_of_another_realm_is_worth_nothing(world):
    """Somebody loads a piece of one realm's dump into the other: its keys are not asked for."""
    add_user(world.away, 'eve', 'her password')
    # What is at the realm's own servers, for comparison.
    world.away.kinit('eve', 'her password')
    swap_handles(world.away, 'eve', handles(world.home)[f'alice@{HOME}'])
    before = [logins_seen(world.home, party) for party in range(3)]
    for password in ('her password', PASSWORD):
        out = world.away.kinit('eve', password, check=False, ccache='eve')
        assert 'not available' in out.stdout, out.stdout
    assert [logins_seen(world.home, party) for party in range(3)] == before
    assert f'{AWAY}: remote keys: ' in world.kdc.log_text()
    assert 'UNKNOWN_HANDLE' in (world.away.log_dir / 'p0-audit.jsonl').read_text()
    world.home.kinit('alice', PASSWORD)
    world.away.kadmin_local('delprinc -force eve')
    assert handles(world.home)[f'alice@{HOME}'], 'the other realm deletes none of these'
    world.home.kinit('alice', PASSWORD)


def test_a_stock_realm_has_no_use_for_handles(world):
    """The same in the realm that has no servers: what looks like a reference is no key there."""
    add_user(world.stock, 'eve', 'her password')
    dump = world.stock.dir / 'swap.dump'
    world.stock.run('kdb5_util', 'dump', dump, f'eve@{STOCK}')
    reference = (b'remote-key:'
                 + bytes.fromhex(handles(world.home)[f'alice@{HOME}'][0])).hex()
    text, count = re.subn(r'\t(\d+)\t(\d+)\t([0-9a-f]{60,})\t',
                          lambda m: f'\t{m[1]}\t{len(reference) // 2}\t{reference}\t',
                          dump.read_text())
    assert count, 'the dump has keys'
    dump.write_text(text)
    world.stock.run('kdb5_util', 'load', '-update', dump)
    before = logins_seen(world.home)
    assert world.stock.kinit('eve', PASSWORD, check=False, ccache='eve').returncode
    assert logins_seen(world.home) == before
    world.stock.kinit('alice', PASSWORD)


def test_two_realms_cannot_share_servers(world, tmp_path):
    """A section that names another realm's servers is found out by their certificates."""
    wrong = tmp_path / 'kdc.conf'
    text = (world.kdc.dir / 'kdc.conf').read_text()
    ends = [' '.join(config_files.client_endpoints(realm)) for realm in (world.home, world.away)]
    assert ends[1] in text
    wrong.write_text(text.replace(ends[1], ends[0]))
    right = (world.kdc.dir / 'kdc.conf').read_text()
    try:
        (world.kdc.dir / 'kdc.conf').write_text(wrong.read_text())
        world.kdc.restart()
        assert 'not available' in world.away.kinit('alice', PASSWORD, check=False).stdout
        world.home.kinit('alice', PASSWORD)
    finally:
        (world.kdc.dir / 'kdc.conf').write_text(right)
        world.kdc.restart()
    world.away.kinit('alice', PASSWORD)
