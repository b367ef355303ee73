# SPDX-License-Identifier: Apache-2.0
"""Bad input: each gets a clear error and loses nothing."""

import shutil
import subprocess

import pytest

import config_files
import daemon
import realm as realm_module


@pytest.fixture(scope='module')
def stopped(tmp_path_factory):
    """A realm's files without any process: for configurations that must not start."""
    live = realm_module.Realm(tmp_path_factory.mktemp('stopped') / 'realm')
    live.write_files()
    yield live
    live.stop()


def start_server(live, config, *flags, seconds=5):
    """Output and exit status of an mpc-server that is expected to give up."""
    try:
        result = subprocess.run(
            [config_files.mpc_program('mpc-server'), '--config', config, *flags], env=live.env,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            encoding='utf-8', timeout=seconds)
    except subprocess.TimeoutExpired:
        raise AssertionError('the server runs on although its configuration is bad') from None
    return result


def changed_config(live, old, new, party=0):
    return config_files.replace(live.dir / f'p{party}/mpc-server.toml', old, new,
                                into=live.dir / 'changed.toml')


def line_of(path, text):
    lines = path.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


# Configuration ----------------------------------------------------------------------------------

def test_good_config_is_called_good(stopped):
    result = start_server(stopped, stopped.dir / 'p0/mpc-server.toml', '--check-config')
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize('old, new, named', [
    ('cluster = ', 'clutser = ', 'clutser'),
    ('party = 0', 'party = 3', 'party'),
    ('window_ms = 100', 'window_ms = "soon"', 'window_ms'),
    ('[batch]', '[batch', 'table header'),
])
def test_config_error_names_file_and_line(stopped, old, new, named):
    path = changed_config(stopped, old, new)
    for flags in ((), ('--check-config',)):
        result = start_server(stopped, path, *flags)
        assert result.returncode
        assert f'{path}:{line_of(path, new)}' in result.stdout
        assert named in result.stdout


def test_missing_config(stopped):
    result = start_server(stopped, stopped.dir / 'none.toml')
    assert result.returncode and 'none.toml' in result.stdout


def test_store_key_that_others_can_read(stopped):
    key = stopped.dir / 'open.key'
    key.write_text('1 ' + 'ab' * 32 + '\n')
    key.chmod(0o644)
    result = start_server(stopped, changed_config(stopped, str(stopped.dir / 'p0/store.key'),
                                                  str(key)))
    assert result.returncode and 'open.key' in result.stdout


# Certificates -----------------------------------------------------------------------------------

def certificate(live, *arguments):
    config_files.mpc_ca('issue', live.dir / 'ca', '--realm', live.name, *arguments)


@pytest.mark.parametrize('role, flags, said', [('kdc', (), 'peer'),
                                               ('peer', ('--expired',), 'expired')])
def test_server_with_a_wrong_certificate(stopped, role, flags, said):
    certificate(stopped, '--role', role, '--name', 'nosy', '--ip', '127.0.0.1', *flags)
    result = start_server(stopped, changed_config(stopped, 'peer-p0.', f'{role}-nosy.'))
    assert result.returncode and said in result.stdout


@pytest.fixture(scope='module')
def live(shared_realm):
    return shared_realm


@pytest.fixture
def own(own_realm):
    """The module's own realm, and as it was afterwards: configurations and processes."""
    live = own_realm
    files = [*live.dir.glob('p?/mpc-server.toml'), live.kdc_dir / 'kdc.conf']
    before = {path: path.read_text() for path in files}
    yield live
    for party, server in enumerate(live.servers):
        if put_back(before, live.dir / f'p{party}/mpc-server.toml') or not server.is_running():
            live.restart_server(party)
    if put_back(before, live.kdc_dir / 'kdc.conf') or not live.kdc.is_running():
        live.stop_kdc()
        live.start_kdc()
    live.wait_for_servers()


def put_back(before, path):
    """Whether it was changed."""
    changed = path.read_text() != before[path]
    path.write_text(before[path])
    return changed


def admin_as(live, role, name, *command):
    """mpc-admin with another certificate."""
    path = config_files.replace(live.dir / 'admin/admin.toml', 'admin-administrator.',
                                f'{role}-{name}.', into=live.dir / f'admin/{role}-{name}.toml')
    return subprocess.run(
        [config_files.mpc_program('mpc-admin'), '--config', path, *command], env=live.env,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        encoding='utf-8', timeout=60)


def test_kdc_certificate_may_not_administer(live):
    refused = admin_as(live, 'kdc', 'kdc', 'delete', '--force', f'krbtgt/{live.name}')
    assert refused.returncode and 'role' in refused.stdout.lower(), refused.stdout
    assert f'krbtgt/{live.name}' in live.admin('list').stdout


def test_administrator_certificate_may_not_log_users_in(own):
    live = own
    live.enroll('grace', 'a password')
    live.stop_kdc()
    config_files.replace(live.kdc_dir / 'kdc.conf', '/kdc-kdc.', '/admin-kadmin.')
    live.kdc.start()
    daemon.wait_until(lambda: live.kdc.listens_on(live.ports.kdc)
                      or not live.kdc.is_running(), 10)
    assert live.kinit('grace', 'a password', check=False).returncode
    text = live.kdc.log.read_text() + (live.log_dir / 'kdc.log').read_text()
    assert 'role' in text and 'kdc' in text, text


def test_expired_administrator(live):
    certificate(live, '--role', 'admin', '--name', 'former', '--expired')
    refused = admin_as(live, 'admin', 'former', 'list')
    assert refused.returncode and 'expired' in refused.stdout, refused.stdout


def test_administrator_of_another_authority(live, tmp_path):
    config_files.mpc_ca('init', tmp_path / 'ca')
    config_files.mpc_ca('issue', tmp_path / 'ca', '--realm', live.name, '--role', 'admin',
                        '--name', 'stranger')
    for suffix in ('pem', 'key'):
        shutil.copy(tmp_path / f'ca/admin-stranger.{suffix}', live.dir / 'ca')
    assert admin_as(live, 'admin', 'stranger', 'list').returncode


# Stores and transactions --------------------------------------------------------------------------

def test_server_with_another_realms_store(make_realm):
    ours, theirs = make_realm(), make_realm(realm='OTHER.ORG')
    for live in (ours, theirs):
        live.create_servers()
        live.stop()
    for part in ('data', 'store.key'):
        target = ours.dir / 'p1' / part
        shutil.rmtree(target) if target.is_dir() else target.unlink()
        source = theirs.dir / 'p1' / part
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    result = start_server(ours, ours.dir / 'p1/mpc-server.toml')
    assert result.returncode
    assert 'OTHER.ORG' in result.stdout and 'EXAMPLE.COM' in result.stdout


def test_server_with_another_partys_store(make_realm):
    live = make_realm()
    live.create_servers()
    live.stop()
    path = changed_config(live, str(live.dir / 'p0'), str(live.dir / 'p1'))
    result = start_server(live, path)
    assert result.returncode and 'party' in result.stdout.lower(), result.stdout


def test_damaged_store_is_an_error_that_names_the_record(new_realm, new_user):
    live = new_realm()
    user = new_user(live)
    live.servers[1].stop()
    store = live.dir / 'p1/data/shares.mdb'
    handle = damage_record(live, store, user[0])
    live.servers[1].start()
    live.wait_for_servers()
    refused = live.kinit(*user, check=False)
    assert refused.returncode and 'Password incorrect' not in refused.stdout
    assert handle.hex() in (live.log_dir / 'p1-audit.jsonl').read_text() + live.servers[1].log_tail()
    verified = live.admin('verify', user[0], check=False)
    assert verified.returncode and handle.hex() in verified.stdout + verified.stderr
    live.enroll('unharmed', 'other keys still work')
    live.kinit('unharmed', 'other keys still work')


def damage_record(live, store, name):
    """Flips one bit in the middle of a sealed record; returns its handle."""
    import storefile
    handle = next(handle for handle, key in storefile.open_store(live, 1).items()
                  if key.principal.startswith(f'{name}@') and key.enctype == -24002)
    record = storefile.read_records(store)[handle]
    data = bytearray(store.read_bytes())
    at, hits = data.find(record[:64]), 0
    while at >= 0:
        data[at + 60] ^= 1
        hits += 1
        at = data.find(record[:64], at)
    assert hits
    store.write_bytes(data)
    return handle


def test_enrolment_interrupted_between_servers(own):
    """P2 is gone: nothing becomes usable, nothing stays behind, and a second try succeeds."""
    live = own
    live.servers[2].kill()
    failed = live.enroll('erin', 'first try', check=False)
    assert failed.returncode and f':{live.ports.clients[2]}' in failed.stderr, 'names the server'
    live.servers[2].start()
    live.wait_for_servers()
    assert live.kinit('erin', 'first try', check=False).returncode
    assert 'erin@' not in live.admin('list').stdout
    live.enroll('erin', 'second try')
    live.kinit('erin', 'second try')
    counts = {server['keys'] for server in live.server_status()}
    assert len(counts) == 1, 'the three servers hold the same keys'


@pytest.mark.parametrize('engine, said', [
    ('workers = 3', 'all three servers need the same'),
    ('randomness = "exchanged"', 'all three servers need the same [engine] randomness'),
])
def test_servers_that_do_not_agree_on_the_engine(own, new_user, engine, said):
    """One server is configured otherwise: no session; its log and the others' say what differs."""
    live = own
    greta = new_user(live)
    config = live.dir / 'p1/mpc-server.toml'
    agreed = config.read_text()
    config.write_text(f'{agreed}\n[engine]\n{engine}\n')
    live.restart_server(1)
    assert daemon.wait_until(lambda: all(said in s.log_tail() for s in live.servers[:2]), 30,
                             pause=0.1), [s.log_tail() for s in live.servers]
    refused = live.kinit(*greta, check=False)
    assert refused.returncode and 'Password incorrect' not in refused.stdout
    config.write_text(agreed)
    live.restart_server(1)
    live.wait_for_servers()
    live.kinit(*greta)


def test_servers_that_differ_in_security(own):
    """One is semi-honest: nobody works with it, and the administrator hears which and what to do.
    When all three are, they work, and it is said wherever he looks."""
    live = own
    live.enroll('hedda', 'a password')
    assert 'SEMI-HONEST' not in shown_to_the_administrator(live)
    configs = [live.dir / f'p{party}/mpc-server.toml' for party in range(3)]
    agreed = [config.read_text() for config in configs]
    make_semi_honest(live, configs, [1])
    said = 'has security semi-honest, this server has active: all three servers need the same'
    assert daemon.wait_until(lambda: said in live.servers[0].log_tail(), 30, pause=0.1), \
        live.servers[0].log_tail()
    assert 'SEMI-HONEST, for benchmarks alone' in live.servers[1].log.read_text()
    shown = shown_to_the_administrator(live)
    assert 'waits for peers' in shown
    assert 'party 0 has active, party 1 has semi-honest, party 2 has active' in shown
    assert 'take security = "semi-honest" out of the three mpc-server.toml' in shown
    refused = live.kinit('hedda', 'a password', check=False)
    assert 'A service is not available' in refused.stdout, refused.stdout

    make_semi_honest(live, configs, [0, 2])
    live.wait_for_servers()
    live.kinit('hedda', 'a password')
    assert 'security is SEMI-HONEST, for benchmarks alone' in shown_to_the_administrator(live)
    for config, text in zip(configs, agreed):
        config.write_text(text)
    for party in range(3):
        live.restart_server(party)
    live.wait_for_servers()
    live.kinit('hedda', 'a password')
    assert 'SEMI-HONEST' not in shown_to_the_administrator(live)


def make_semi_honest(live, configs, parties):
    for party in parties:
        configs[party].write_text(
            configs[party].read_text() + '\n[engine]\nsecurity = "semi-honest"\n')
        live.restart_server(party)


def test_servers_that_force_different_protocols(own):
    """Two servers force different protocols for stock clients' logins: they do not work together, and
    say so. What one of them forces, all do."""
    live = own
    live.enroll('ilse', 'a password')
    configs = [live.dir / f'p{party}/mpc-server.toml' for party in range(3)]
    agreed = configs[1].read_text()
    for party, protocol in ((0, 'garbled'), (1, 'replicated')):
        configs[party].write_text(
            configs[party].read_text() + f'\n[engine]\nprotocol = "{protocol}"\n')
        live.restart_server(party)
    for party, said in ((0, '[engine] protocol is garbled here and replicated at the next party'),
                        (1, '[engine] protocol is replicated here and garbled at the previous party')):
        assert daemon.wait_until(lambda: said in live.servers[party].log_tail(), 30, pause=0.1), \
            live.servers[party].log_tail()
    shown = shown_to_the_administrator(live)
    assert 'party 0 forces garbled, party 1 forces replicated' in shown
    assert 'take it out of their mpc-server.toml' in shown
    configs[1].write_text(agreed)
    live.restart_server(1)
    live.wait_for_servers()
    live.kinit('ilse', 'a password')
    shown = shown_to_the_administrator(live)
    assert 'garbled!' in shown and 'forces' not in shown


def shown_to_the_administrator(live):
    shown = [live.admin(command, check=False) for command in ('status', 'doctor')]
    return '\n'.join(result.stdout + result.stderr for result in shown)


def test_kdc_with_an_unreachable_servers_list(own):
    """A KDC that is told wrong servers starts, logs them by name, and refuses logins as an outage."""
    live = own
    live.enroll('frank', 'a password')
    live.stop_kdc()
    free = daemon.free_ports(1)[0]
    config_files.replace(live.kdc_dir / 'kdc.conf', f':{live.ports.clients[1]} ', f':{free} ')
    live.start_kdc()
    refused = live.kinit('frank', 'a password', check=False)
    assert 'A service is not available' in refused.stdout, refused.stdout
    logs = live.kdc.log.read_text() + (live.log_dir / 'kdc.log').read_text()
    assert f':{free}' in logs


def test_kdc_conf_without_servers(make_realm):
    live = make_realm()
    live.write_files()
    config_files.replace(live.kdc_dir / 'kdc.conf', 'mpc_servers', 'mpc_severs')
    refused = live.run('kdb5_util', 'create', '-s', '-P', 'x', check=False)
    assert refused.returncode and 'mpc_servers' in refused.stdout, refused.stdout
