# SPDX-License-Identifier: Apache-2.0
"""Machines for tests: each a root file system of its own on a common base, with systemd as process 1.

A machine is an overlay on the base, namespaces for processes, mounts, names, control groups and network, and
boot.sh beside this file, which starts systemd in them. Machines are joined by a bridge in a network namespace
of its own, from which nothing leads outside; apt reaches its mirror through a proxy on the bridge's address.
"""

import concurrent.futures
import ctypes
import http.server
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
# Of network namespaces, links and control groups: another where two run at once.
PREFIX = os.environ.get('MPCKDC_MACHINES', 'mpcpkg')
NETWORK = '10.77.0'
PROXY_PORT = 3142
PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
_CLONE_NEWNET = 0x40000000


class MachineError(Exception):
    pass


def run(*argv, **options):
    return subprocess.run([str(arg) for arg in argv], check=True, **options)


# ---- The network -----------------------------------------------------------------------------------------------


class Lan:
    """A bridge in a namespace; machines are plugged in."""

    def __init__(self):
        self.netns = f'{PREFIX}-lan'
        remove_netns(self.netns)
        run('ip', 'netns', 'add', self.netns)
        self.ip('link', 'add', 'br0', 'type', 'bridge')
        self.ip('addr', 'add', f'{NETWORK}.1/24', 'dev', 'br0')
        for device in ('lo', 'br0'):
            self.ip('link', 'set', device, 'up')

    def ip(self, *arguments):
        run('ip', '-n', self.netns, *arguments)

    def plug(self, netns, number):
        remove_netns(netns)
        run('ip', 'netns', 'add', netns)
        cable = f'{PREFIX}{number}'
        self.ip('link', 'add', cable, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', netns)
        self.ip('link', 'set', cable, 'master', 'br0', 'up')
        for arguments in (['link', 'set', 'lo', 'up'], ['addr', 'add', f'{NETWORK}.{number}/24', 'dev', 'eth0'],
                          ['link', 'set', 'eth0', 'up']):
            run('ip', '-n', netns, *arguments)

    def close(self):
        remove_netns(self.netns)


def remove_netns(name):
    if pathlib.Path('/run/netns', name).exists():
        run('ip', 'netns', 'del', name)


def listen_inside(netns, address):
    """A listening socket that stays in the namespace; the thread comes back."""
    libc = ctypes.CDLL(None, use_errno=True)
    listener = socket.socket()
    with open('/proc/thread-self/ns/net') as here, open(f'/run/netns/{netns}') as there:
        for namespace in (there, here):
            if libc.setns(namespace.fileno(), _CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), 'setns')
            if namespace is there:
                listener.close()
                listener = socket.create_server(address)
    return listener


class AptProxy:
    """What apt on a machine asks for is fetched from here; packages are kept."""

    def __init__(self, lan, cache):
        cache.mkdir(parents=True, exist_ok=True)
        listener = listen_inside(lan.netns, (f'{NETWORK}.1', PROXY_PORT))
        self.server = http.server.ThreadingHTTPServer(('', 0), _handler(cache), bind_and_activate=False)
        self.server.socket.close()
        self.server.socket = listener
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def _handler(cache):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = 'HTTP/1.1'

        def log_message(self, *_):
            pass

        def do_GET(self):
            kept = cache / urllib.parse.quote(self.path, safe='') if self.path.endswith('.deb') else None
            if kept is not None and kept.exists():
                return self.answer(200, kept.read_bytes())
            request = urllib.request.Request(self.path, headers={
                name: value for name, value in self.headers.items() if name.lower() == 'if-modified-since'})
            try:
                with urllib.request.urlopen(request, timeout=60) as reply:
                    body, modified = reply.read(), reply.headers.get('Last-Modified')
            except urllib.error.HTTPError as error:
                return self.answer(error.code, b'' if error.code == 304 else error.read())
            except OSError as error:
                return self.answer(502, str(error).encode())
            if kept is not None:
                partial = kept.with_suffix(f'.{threading.get_ident()}')
                partial.write_bytes(body)
                partial.rename(kept)
            return self.answer(200, body, modified)

        def answer(self, status, body, modified=None):
            self.send_response(status)
            if modified:
                self.send_header('Last-Modified', modified)
            if status != 304:
                self.send_header('Content-Length', str(len(body)))
            self.end_headers()
            self.wfile.write(body)
    return Handler


# ---- The machines ----------------------------------------------------------------------------------------------


def cgroup_root():
    for line in pathlib.Path('/proc/self/mounts').read_text().splitlines():
        _, where, kind, *_ = line.split()
        if kind == 'cgroup2':
            return pathlib.Path(where)
    raise MachineError('no cgroup2 is mounted here; systemd needs one')


class Machine:
    """NAME.example.com; `number` is the end of its address. `shared` are folders of ours, {there: here}."""

    def __init__(self, lan, base, folder, name, number, shared=()):
        self.name, self.number, self.folder = name, number, folder / name
        self.netns = f'{PREFIX}-{name}'
        self.cgroup = cgroup_root() / f'{PREFIX}-{name}'
        self.init = None
        lan.plug(self.netns, number)
        for part in ('upper', 'work', 'root'):
            (self.folder / part).mkdir(parents=True)
        self.shared = dict(shared)
        self.process = self._start(base)
        self._wait_until_booted()

    def _start(self, base):
        self.cgroup.mkdir(exist_ok=True)
        console = open(self.folder / 'console', 'wb')
        binds = [f'{here}:{there}' for there, here in self.shared.items()]
        process = subprocess.Popen(
            ['nsenter', f'--net=/run/netns/{self.netns}', 'unshare', '--mount', '--pid', '--uts', '--ipc', '--cgroup',
             '--fork', '--kill-child', 'bash', HERE / 'boot.sh', base, self.folder, self.name, *binds],
            stdin=subprocess.DEVNULL, stdout=console, stderr=console,
            preexec_fn=lambda: (self.cgroup / 'cgroup.procs').write_text(str(os.getpid())))
        return process

    def _wait_until_booted(self):
        children = pathlib.Path(f'/proc/{self.process.pid}/task/{self.process.pid}/children')
        for _ in range(600):
            if self.process.poll() is not None:
                raise MachineError(f'{self.name} did not boot: {(self.folder / "console").read_text()}')
            pids = children.read_text().split()
            if pids:
                self.init = int(pids[0])
                state = self.run('systemctl is-system-running', check=False)
                if state.strip() in ('running', 'degraded'):
                    return
            time.sleep(0.1)
        raise MachineError(f'{self.name} does not come up ({state.strip()}): {(self.folder / "console").read_text()}')

    def run(self, script, check=True):
        """The output of a bash script, standard error in it."""
        done = subprocess.run(
            ['nsenter', '-t', str(self.init), '-m', '-u', '-i', '-n', '-p', '-C', '-r', '-w', '/usr/bin/env', '-i',
             'HOME=/root', f'PATH={PATH}', 'LC_ALL=C.UTF-8', 'bash', '-euo', 'pipefail', '-c', script],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8', errors='replace')
        if check and done.returncode != 0:
            raise MachineError(f'{self.name}: exit status {done.returncode} of\n{script}\n{done.stdout}')
        return done.stdout

    def write(self, path, text, mode=0o644):
        """Into the machine's file system, by its own processes' eyes."""
        file = pathlib.Path(f'/proc/{self.init}/root{path}')
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)  # unshare takes the machine with it
            self.process.wait()
        remove_netns(self.netns)
        for _ in range(50):
            try:
                for folder, _, _ in os.walk(self.cgroup, topdown=False):
                    os.rmdir(folder)
                break
            except OSError:
                time.sleep(0.1)


class Machines:
    """Several, by name; all are told each other's names, and root reaches each from each by ssh."""

    def __init__(self, base, folder, names, shared=()):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.machines, self.lan, self.proxy = {}, Lan(), None
        try:
            self.proxy = AptProxy(self.lan, folder.parent / 'apt-cache')
            for number, name in enumerate(names, 10):
                self.machines[name] = Machine(self.lan, base, folder, name, number, shared)
            self._introduce(folder)
        except BaseException:
            self.close()
            raise

    def _introduce(self, folder):
        run('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', folder / 'ssh-key')
        key, public = (folder / 'ssh-key').read_text(), (folder / 'ssh-key.pub').read_text()
        hosts = '127.0.0.1 localhost\n' + ''.join(
            f'{NETWORK}.{m.number} {m.name}.example.com {m.name}\n' for m in self.machines.values())
        for machine in self.machines.values():
            machine.write('/etc/hosts', hosts)
            machine.write('/etc/apt/apt.conf.d/99proxy',
                          f'Acquire::http::Proxy "http://{NETWORK}.1:{PROXY_PORT}";\n')
            machine.write('/root/.ssh/id_ed25519', key, 0o600)
            machine.write('/root/.ssh/authorized_keys', public, 0o600)
            machine.write('/root/.ssh/config', 'StrictHostKeyChecking accept-new\nLogLevel ERROR\n', 0o600)
            machine.run('chmod 700 /root/.ssh')

    def __getitem__(self, name):
        return self.machines[name]

    def run(self, names, script):
        """The same on several at once: {name: output}."""
        with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
            return dict(zip(names, pool.map(lambda name: self[name].run(script), names)))

    def close(self):
        for machine in self.machines.values():
            machine.close()
        if self.proxy is not None:
            self.proxy.close()
        self.lan.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
