# SPDX-License-Identifier: Apache-2.0
"""No process that holds secrets leaves a core, however much the administrator's limits allow.

Each process is killed by SIGABRT or SIGSEGV with `ulimit -c unlimited` in a folder of its own. The
controls: `sleep` leaves a core under the same conditions, and so does krb5kdc when its
configuration says mpc_allow_core_dumps. Where cores go is the kernel's core_pattern: it must be a
relative name (a test cannot see what a pipe does), and is set for the test if it is not and may be.
"""

import pathlib
import resource
import signal
import subprocess

import pytest

import config_files
import daemon
import loudrealm
import realm as realm_module

PATTERN = pathlib.Path('/proc/sys/kernel/core_pattern')


@pytest.fixture(scope='module')
def cores_are_written():
    """Unlimited cores in the working directory, for this process and its children; else a skip."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    pattern = PATTERN.read_text()
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)
        if pattern[:1] in '|/\n' or '/' in pattern:
            PATTERN.write_text('core')
    except (OSError, ValueError) as error:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
        pytest.skip(f'this machine lets nobody write cores here ({error}); the limits are tested '
                    'in test_limits_say_no_cores')
    yield
    if PATTERN.read_text() != pattern:
        PATTERN.write_text(pattern)
    resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


@pytest.fixture(scope='module')
def live(tmp_path_factory):
    made = realm_module.Realm(tmp_path_factory.mktemp('cores') / 'realm')
    try:
        made.create()
        made.enroll('alice', 'an unlikely password')
        made.kinit('alice', 'an unlikely password')
        yield made
    finally:
        for child in _children:  # of tests that failed
            if child.poll() is None:
                child.kill()
        made.stop()


_children = []


def _cores(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.startswith('core'))


def _restart_in(process, folder, env=None):
    """Starts a daemon of the realm with another working directory."""
    process.stop()
    with open(process.log, 'ab') as log:
        _children.append(subprocess.Popen(process.argv, env={**process.env, **(env or {})},
                                          cwd=folder, stdout=log, stderr=log,
                                          stdin=subprocess.DEVNULL))
    return _children[-1]


def _kill(child, number):
    child.send_signal(number)
    assert child.wait(20) == -number, 'the process did not die of the signal'


def _listens(port):
    return lambda: loudrealm.accepts_connections(port)


def test_control_an_ordinary_process_leaves_a_core(cores_are_written, tmp_path):
    child = subprocess.Popen(['sleep', '60'], cwd=tmp_path)
    name = pathlib.Path(f'/proc/{child.pid}/comm')
    assert daemon.wait_until(lambda: name.read_text() == 'sleep\n', 5)
    _kill(child, signal.SIGSEGV)
    assert _cores(tmp_path)


@pytest.mark.parametrize('number', [signal.SIGABRT, signal.SIGSEGV])
def test_mpc_server(cores_are_written, live, tmp_path, number):
    server = live.servers[0]
    child = _restart_in(server, tmp_path)
    assert daemon.wait_until(_listens(live.ports.clients[0]), 30)
    assert daemon.wait_until(live.servers_connected, 30)  # it has drawn its seeds
    _kill(child, number)
    server.start()
    live.wait_for_servers()
    assert _cores(tmp_path) == []


def _log_in_with_kdc(live, folder, env=None):
    child = _restart_in(live.kdc, folder, env)
    assert daemon.wait_until(_listens(live.ports.kdc), 30)
    live.kinit('alice', 'an unlikely password')
    return child


def test_krb5kdc(cores_are_written, live, tmp_path):
    _kill(_log_in_with_kdc(live, tmp_path), signal.SIGABRT)
    assert _cores(tmp_path) == []
    live.kdc.start()


def test_control_krb5kdc_leaves_one_if_its_configuration_says_so(cores_are_written, live, tmp_path):
    conf = config_files.replace(
        live.kdc_dir / 'kdc.conf', 'db_library = mpc\n',
        'db_library = mpc\n        mpc_allow_core_dumps = true\n', into=tmp_path / 'kdc.conf')
    child = _log_in_with_kdc(live, tmp_path, {'KRB5_KDC_PROFILE': str(conf)})
    _kill(child, signal.SIGABRT)
    assert _cores(tmp_path)
    assert 'mpc_allow_core_dumps is set' in (live.log_dir / 'kdc.log').read_text()
    live.kdc.start()


def test_kadmind(cores_are_written, live, tmp_path):
    child = _restart_in(live.kadmind, tmp_path)
    assert daemon.wait_until(_listens(live.ports.kadmind), 30)
    _kill(child, signal.SIGSEGV)
    assert _cores(tmp_path) == []
    live.kadmind.start()


@pytest.mark.parametrize('number', [signal.SIGABRT, signal.SIGSEGV])
@pytest.mark.parametrize('name', ['mpc-admin', 'kadmin.local'])
def test_tools_at_work(cores_are_written, live, tmp_path, name, number):
    """Both wait for the rest of a password that they have half read."""
    argv = {'mpc-admin': [config_files.mpc_program('mpc-admin'), '--config',
                          live.dir / 'admin/admin.toml', 'enroll', 'bob', '--password-stdin'],
            'kadmin.local': [config_files.krb5_program('kadmin.local')]}[name]
    child = subprocess.Popen([str(part) for part in argv], env=live.env, cwd=tmp_path,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
    child.stdin.write(b'half a pass')
    child.stdin.flush()
    assert daemon.wait_until(lambda: _waits_for_input(child.pid), 10)
    _kill(child, number)
    child.communicate()
    assert _cores(tmp_path) == []


def _waits_for_input(pid):
    """In read(2) of its standard input."""
    call = pathlib.Path(f'/proc/{pid}/syscall').read_text().split()
    return call[:2] == ['0', '0x0']


def test_limits_say_no_cores(live):
    """What can be seen of it where the kernel does not let a test write cores."""
    for process in [live.kdc, live.kadmind] + live.servers:
        limits = pathlib.Path(f'/proc/{process.pid()}/limits').read_text()
        line = next(line for line in limits.splitlines() if line.startswith('Max core file size'))
        assert line.split()[4:6] == ['0', '0'], f'{process.name}: {line}'
