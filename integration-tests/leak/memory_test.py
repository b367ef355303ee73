# SPDX-License-Identifier: Apache-2.0
"""Where secrets lie in the memory of running processes, and what is left there after a login.

Of the realm's processes each mapping is read as root can. A server's shares and store key must lie
in the arena of mpc-server/secret alone; of logins that are over nothing may be left anywhere: no
password, key, keystream, time stamp or session key. The controls: TLS private keys, which gRPC and
OpenSSL keep on the ordinary heap (deploy/THREAT-MODEL.md says so), are found; so is a password in a
program that is just reading it.
"""

import subprocess
import time

import pytest

import config_files
import daemon
import procmemory
import realm as realm_module
import secrets_of_realm
import storefile
import udp_relay

USER = 'numbat'
# Long: the allocator's own pointers overwrite the first 16 bytes of a freed block.
PASSWORDS = ['the first password of the numbat is long enough to be seen when freed',
             'its second one is as long and has nothing in common with the other']
THROUGH_KADMIND = 'a password that an administrator sets through kadmind for somebody else'
ADMIN = ('root/admin', 'what the administrator himself types when kadmin asks for his password')
IDLE_SECONDS = 2  # all of a job is answered and freed by then


@pytest.fixture(scope='module')
def life(tmp_path_factory):
    """(realm, stores, secrets of logins) some time after the last login."""
    with realm_module.Realm(tmp_path_factory.mktemp('memory') / 'realm') as live:
        live.create()
        with udp_relay.UdpRelay(live.ports.kdc) as recorder:
            _live(live, recorder.port)
            datagrams = list(recorder.datagrams)
        time.sleep(IDLE_SECONDS)
        stores = storefile.open_stores(live)
        found = secrets_of_realm.secrets_of_logins(live, stores, USER, PASSWORDS, datagrams)
        found += [('password through kadmind', THROUGH_KADMIND.encode()),
                  ('administrator\'s password', ADMIN[1].encode())]
        yield live, stores, [(name, secret) for name, secret in found if _is_distinct(name)]


@pytest.fixture
def stopped(tmp_path):
    """A realm's files without its processes."""
    live = realm_module.Realm(tmp_path / 'realm')
    live.write_files()
    return live


def _is_distinct(name):
    """Without round keys and the keys of other constants, which realm/proof_test.py looks for."""
    return not any(part in name for part in (' round key', ' Kc(', ' Ke(', ' Ki('))


def _live(live, relay_port):
    relay = live.krb5_conf_through(relay_port)
    live.add_service('host/www.example.com')
    live.enroll(USER, PASSWORDS[0])
    live.enroll(*ADMIN)
    live.kinit(USER, PASSWORDS[0], '-r', '1d', env=relay)
    live.kvno('host/www.example.com', env=relay)
    live.run('kinit', '-R', env=relay)
    live.run('kpasswd', USER, stdin='\n'.join([PASSWORDS[0]] + [PASSWORDS[1]] * 2) + '\n',
             env={'KRB5CCNAME': 'FILE:/nonexistent'})
    live.kinit(USER, PASSWORDS[0], env=relay, check=False)
    live.kinit(USER, PASSWORDS[1], env=relay)
    live.kadmin(f'addprinc -pw "{THROUGH_KADMIND}" bob', *ADMIN, check=True)


def _processes(live):
    return [live.kdc, live.kadmind] + live.servers


def test_arenas_are_locked_guarded_and_not_dumped(life):
    for process in _processes(life[0]):
        mappings = procmemory.mappings(process.pid())
        arenas = [number for number, mapping in enumerate(mappings) if mapping.is_arena()]
        assert arenas, f'{process.name} has no secret memory'
        for number in arenas:
            before, arena, after = mappings[number - 1:number + 2]
            flags = {procmemory.LOCKED, procmemory.NOT_DUMPED}
            assert flags <= arena.flags, f'{process.name}: {arena}'
            assert before.is_guard() and before.end == arena.begin, f'{process.name}: {before}'
            assert after.is_guard() and after.begin == arena.end, f'{process.name}: {after}'


@pytest.mark.parametrize('party', range(3))
def test_a_server_keeps_its_shares_in_the_arena_alone(life, party):
    live, stores, _ = life
    own = list(secrets_of_realm.sample_of_shares(stores[party], party))
    own += [(name, key) for name, key in secrets_of_realm.store_keys(live) if f'P{party},' in name]
    found = procmemory.search(live.servers[party].pid(), own)
    assert any('store key' in name for name in found), 'the search sees nothing'
    assert any('krbtgt' in name for name in found), 'the powers of H that are kept were not found'
    outside = {name: [m.name for m in where if not m.is_arena()] for name, where in found.items()}
    assert {name: where for name, where in outside.items() if where} == {}


@pytest.mark.parametrize('number, name', enumerate(['krb5kdc', 'kadmind', 'p0', 'p1', 'p2']))
def test_nothing_is_left_of_a_login(life, number, name):
    live, _, secrets = life
    for part in ('keystream of a ticket', 'keystream of the AS reply', 'plaintext of pre-auth',
                 'session key', 'base key', 'password'):
        assert any(part in known for known, _ in secrets), f'no {part} among the secrets'
    process = _processes(live)[number]
    assert process.name == name
    # gRPC keeps the text of the private key's file for as long as it may connect again.
    control = [(f'TLS key file {path.name}', path.read_bytes())
               for path in (live.dir / 'ca').glob('*.key')]
    found = procmemory.search(process.pid(), secrets + control)
    assert any('TLS key' in known for known in found), 'the search sees nothing'
    assert [known for known in found if 'TLS key' not in known] == []


def test_a_server_says_when_its_memory_is_not_locked(stopped):
    """Without the capability that root has, and with next to no limit: it works on, and warns."""
    live = stopped
    log = live.dir / 'unlocked.log'
    with open(log, 'wb') as out:
        child = subprocess.Popen(
            ['prlimit', '--memlock=65536', 'setpriv', '--bounding-set=-ipc_lock',
             config_files.mpc_program('mpc-server'), '--config', live.dir / 'p0/mpc-server.toml'],
            env=live.env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        assert daemon.wait_until(lambda: 'could not be locked' in log.read_text(), 20), \
            log.read_text()
        assert not [m for m in procmemory.mappings(child.pid)
                    if m.is_arena() and procmemory.NOT_DUMPED not in m.flags]
    finally:
        child.terminate()
        assert child.wait(20) == 0


def test_mpc_admin_holds_a_password_in_the_arena_alone(life):
    live = life[0]
    typed = b'half of a password that is being typed and has no end yet'
    child = subprocess.Popen(
        [config_files.mpc_program('mpc-admin'), '--config', live.dir / 'admin/admin.toml', 'enroll',
         'carol', '--password-stdin'], env=live.env, stdin=subprocess.PIPE)
    try:
        child.stdin.write(typed)
        child.stdin.flush()
        found = {}

        def is_read():
            found.update(procmemory.search(child.pid, [('the password', typed)]))
            return found
        assert daemon.wait_until(is_read, 10, pause=0.2), 'the search sees nothing'
        assert all(mapping.is_arena() for mapping in found['the password'])
    finally:
        child.kill()
        child.communicate()
