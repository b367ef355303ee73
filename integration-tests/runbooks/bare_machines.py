# SPDX-License-Identifier: Apache-2.0
"""Machines for runbooks: bare ones, with a name, an address and files of their own.

Each is a mount namespace whose /etc, /var/lib, /var/log, /var/backups and /srv are folders of the test,
and a UTS namespace with its name. All share one network namespace, in which each has an address of
its own on the loopback interface, so every port is free and nothing leaves. So a command of a runbook
runs as it is written: /etc/mpc-kdc/mpc-server.toml is that file, at that machine.

What a path stands for is in FOLDERS; what stands for programs that cannot run here, in stand_ins.py.
A machine has those of our programs whose package was installed on it.
"""

import dataclasses
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import time

import config_files

NAMES = {  # prompt: its name and address
    'p0': ('mpc0.example.com', '192.0.2.10'),
    'p1': ('mpc1.example.org', '192.0.2.11'),
    'p2': ('mpc2.example.net', '192.0.2.12'),
    'kdc': ('kdc1.example.com', '192.0.2.20'),
    'admin': ('admin.example.com', '192.0.2.30'),
    'ca': ('ca.example.com', '192.0.2.40'),
    'client': ('client.example.com', '192.0.2.50'),
    'new': ('mpc2.example.edu', '192.0.2.60'),
}
USER, USER_ID = 'ops', 2990
SERVICE_USER, SERVICE_ID = 'mpc-kdc', 2991
FOLDERS = {'etc': '/etc', 'var-lib': '/var/lib', 'var-log': '/var/log', 'var-backups': '/var/backups'}
HOME = {True: '/srv/root', False: f'/srv/{USER}'}  # by root
PROGRAMS = '/srv/bin'       # links to what is installed on the machine, and stand-ins
# What each package brings, and the folder that holds it. The module mpc.so is found by its path.
_SERVER, _TOOL = config_files.CMAKE / 'mpc-server/cmd', config_files.CMAKE / 'kdc-plugin/kdb-tool'
_BIN, _SBIN = config_files.KRB5_PROGRAM_DIRS
PACKAGES = {
    'mpc-server': {'mpc-server': _SERVER},
    'mpc-admin': {'mpc-admin': _SERVER},
    'mpc-kdc-plugin': {'mpc-kdb': _TOOL, 'mpc-kdb-seal': _TOOL},
    'krb5-kdc': {name: _SBIN for name in ('krb5kdc', 'kdb5_util', 'kadmin.local', 'kprop', 'kpropd')},
    'krb5-admin-server': {'kadmind': _SBIN},
    'krb5-user': {name: _BIN for name in ('kinit', 'klist', 'kvno', 'kdestroy', 'kpasswd', 'kadmin', 'ktutil')},
    'mpc-ca': {'mpc-ca': config_files.REPOSITORY / 'deploy/ca'},
    'openssl': {},
}
_TYPING_PATIENCE = 60


@dataclasses.dataclass
class Output:
    text: str
    status: int


def missing_rights():
    """Why this machine cannot make others, or None."""
    if os.geteuid() != 0:
        return 'mount and network namespaces need root'
    probe = subprocess.run(['unshare', '-n', '-m', '-u', 'sh', '-c', 'ip link set lo up && '
                            'mount -t tmpfs tmpfs /srv && hostname probe'], capture_output=True,
                           encoding='utf-8')
    return probe.stderr.strip() or 'no namespaces' if probe.returncode else None


class Network:
    """A namespace with a loopback interface that has all machines' addresses."""

    def __enter__(self):
        add = '; '.join(f'ip addr add {address}/32 dev lo' for _, address in NAMES.values())
        self._holder = _hold(['unshare', '-n'], f'set -e; ip link set lo up; {add}')
        self.pid = self._holder.pid
        return self

    def __exit__(self, *_):
        _end(self._holder)


def _hold(prefix, script):
    """A process that does this first and then keeps its namespaces for us, as long as we live."""
    holder = subprocess.Popen([*prefix, 'sh', '-c', f'{script}\necho ready; exec cat'],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              encoding='utf-8', start_new_session=True)
    first = holder.stdout.readline()
    if first != 'ready\n':
        raise RuntimeError(f'a namespace was not made: {first}{holder.stdout.read()}')
    return holder


def _end(holder):
    holder.kill()
    holder.wait()


class Machine:
    def __init__(self, name, folder, network):
        self.name = name
        self.fqdn, self.address = NAMES[name]
        self.folder = pathlib.Path(folder)
        self._network = network
        self._holder = None
        self.processes = {}  # unit: stand_ins.Service
        self.exported = {}   # environment

    # A machine's life ----------------------------------------------------------------------------

    def boot(self):
        """With the files that it has; a bare one makes them."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / 'etc').exists():
            self._make_files()
        binds = [f'mount --bind {self.folder / name} {path}' for name, path in FOLDERS.items()]
        binds += ['mount -t tmpfs -o mode=755 tmpfs /srv']
        for folder in sorted({folder for programs in PACKAGES.values() for folder in programs.values()}):
            place = self._place_of(folder)
            binds += [f'mkdir -p {place}', f'mount --bind {folder} {place}']
        for name in ('bin', 'root', USER):
            binds += [f'mkdir -p /srv/{name}', f'mount --bind {self.folder / name} /srv/{name}']
        self._holder = _hold(['nsenter', f'--net=/proc/{self._network.pid}/ns/net', 'unshare', '-m', '-u',
                              '--propagation', 'private'],
                             '\n'.join(['set -e', f'hostname {self.fqdn}', *binds]))
        return self

    def is_on(self):
        return self._holder is not None

    @property
    def pid(self):
        return self._holder.pid

    def off(self):
        """Without a word to what runs on it."""
        for service in self.processes.values():
            service.kill()
        if self._holder:
            _end(self._holder)
            self._holder = None

    def replace(self):
        """A new machine of the same name and address. Returns the folder of the old one's disk."""
        self.off()
        old = self.folder.with_name(f'{self.folder.name}-old-{time.monotonic_ns()}')
        self.folder.rename(old)
        self.processes, self.exported = {}, {}
        self.boot()
        return old

    @staticmethod
    def _place_of(folder):
        return f'/srv/programs/{folder.name}'

    def _make_files(self):
        for name in (*FOLDERS, 'bin', 'root', USER):
            (self.folder / name).mkdir(mode=0o755)
        os.chown(self.folder / USER, USER_ID, USER_ID)
        etc = self.folder / 'etc'
        shutil.rmtree(etc)
        shutil.copytree('/etc', etc, symlinks=True)
        for name in ('mpc-kdc', 'krb5kdc'):
            shutil.rmtree(etc / name, ignore_errors=True)
        for name in ('krb5.conf', 'krb5.keytab'):
            (etc / name).unlink(missing_ok=True)
        hosts = [f'{address} {fqdn}' for fqdn, address in NAMES.values()]
        (etc / 'hosts').write_text('127.0.0.1 localhost\n' + '\n'.join(hosts) + '\n')
        (etc / 'hostname').write_text(self.fqdn + '\n')
        with open(etc / 'passwd', 'a', encoding='utf-8') as users:
            users.write(f'{USER}:x:{USER_ID}:{USER_ID}::{HOME[False]}:/bin/sh\n')
        with open(etc / 'group', 'a', encoding='utf-8') as groups:
            groups.write(f'{USER}:x:{USER_ID}:\n')
        # Where a package would have put them; our build has them elsewhere.
        (etc / 'runbook-test-krb5.conf').write_text(config_files.profile({
            'libdefaults': {'plugin_base_dir': config_files.KRB5_PLUGINS},
            'dbmodules': {'db_module_dir': [*config_files.KDB_MODULE_DIRS]}}))

    def install(self, package):
        """A package's programs are there from now on. False: there is no such package."""
        if package not in PACKAGES:
            return False
        for program, folder in PACKAGES[package].items():
            link = self.folder / 'bin' / program
            link.unlink(missing_ok=True)
            link.symlink_to(f'{self._place_of(folder)}/{program}')
        if package == 'mpc-server':
            self._add_service_user()
        if package == 'krb5-kdc':
            for path in (self.folder / 'etc/krb5kdc', self.folder / 'var-lib/krb5kdc'):
                path.mkdir(mode=0o700, exist_ok=True)
        if package in ('mpc-server', 'mpc-admin', 'mpc-kdc-plugin'):
            (self.folder / 'etc/mpc-kdc').mkdir(mode=0o755, exist_ok=True)
        return True

    def _add_service_user(self):
        passwd = self.folder / 'etc/passwd'
        if f'\n{SERVICE_USER}:' not in passwd.read_text():
            for name, line in (('passwd', f'{SERVICE_USER}:x:{SERVICE_ID}:{SERVICE_ID}::/var/lib/mpc-kdc:/bin/false\n'),
                               ('group', f'{SERVICE_USER}:x:{SERVICE_ID}:\n')):
                with open(self.folder / 'etc' / name, 'a', encoding='utf-8') as file:
                    file.write(line)

    # Commands ------------------------------------------------------------------------------------

    def environment(self, root=True):
        kept = {name: os.environ[name] for name in ('TERM', 'ASAN_OPTIONS') if name in os.environ}
        return {**kept, **self.exported, 'LC_ALL': 'C.UTF-8', 'NO_COLOR': '1', 'HOME': HOME[root],
                'PATH': f'{PROGRAMS}:/usr/sbin:/usr/bin:/sbin:/bin',
                'LD_LIBRARY_PATH': config_files.krb5_library_path(),
                'KRB5_CONFIG': '/etc/krb5.conf:/etc/runbook-test-krb5.conf',
                'KRB5_KDC_PROFILE': '/etc/krb5kdc/kdc.conf',
                'KRB5CCNAME': f'FILE:{HOME[root]}/ccache'}

    def argv(self, command, user=None):
        """`user`: an id; root otherwise."""
        enter = ['nsenter', f'--target={self.pid}', '--mount', '--net', '--uts']
        if user:
            enter += ['setpriv', f'--reuid={user}', f'--regid={user}', '--clear-groups']
        return [*enter, *command]

    def run(self, command, root=True, typed=(), timeout=300):
        """One line of a shell. `typed`: (prompt, answer) for what asks on the terminal."""
        argv = self.argv(['bash', '-c', f'cd; {command}'], None if root else USER_ID)
        if typed:
            return self._run_on_terminal(argv, root, dict(typed), timeout)
        done = subprocess.run(argv, env=self.environment(root), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8',
                              errors='replace', timeout=timeout, check=False)
        return Output(done.stdout, done.returncode)

    def _run_on_terminal(self, argv, root, answers, timeout):
        pid, terminal = pty.fork()
        if pid == 0:
            os.execvpe(argv[0], argv, {**self.environment(root), 'TERM': 'dumb'})
        text, seen, deadline = '', 0, time.monotonic() + min(timeout, _TYPING_PATIENCE)
        try:
            while time.monotonic() < deadline:
                if not select.select([terminal], [], [], 0.2)[0]:
                    continue
                try:
                    data = os.read(terminal, 65536)
                except OSError:  # the terminal's other end is closed
                    break
                if not data:
                    break
                text += data.decode('utf-8', 'replace')
                for prompt, answer in answers.items():
                    if text[seen:].rstrip(' ').endswith(prompt):
                        seen = len(text)
                        os.write(terminal, (answer + '\n').encode())
                        break
            else:
                os.kill(pid, signal.SIGKILL)
                text += '\n(it was waited for in vain)\n'
        finally:
            os.close(terminal)
        _, how = os.waitpid(pid, 0)
        text = re.sub(r'[^\n]*\r(?!\n)', '', text.replace('\r\n', '\n'))
        return Output(text, os.waitstatus_to_exitcode(how))

    def listens(self, pid, port):
        """Whether this process' namespace has a listener at the machine's port."""
        wanted = bytes(map(int, self.address.split('.')))[::-1].hex().upper() + f':{port:04X}'
        try:
            lines = pathlib.Path(f'/proc/{pid}/net/tcp').read_text(encoding='utf-8').splitlines()[1:]
        except OSError:
            return False
        return any(line.split()[1] == wanted and line.split()[3] == '0A' for line in lines)
