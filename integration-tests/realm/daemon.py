# SPDX-License-Identifier: Apache-2.0
"""Background processes with pid files, where they run, and loopback ports.

A pid file holds the process id and the process's start time, so that a recycled id is never taken
for ours: only processes that a realm started itself are ever signalled.
"""

import contextlib
import dataclasses
import os
import pathlib
import signal
import socket
import subprocess
import time


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a process runs: the address it has there, and the command that puts it there.

    The command must become the process (as `ip netns exec NAME` does), not its parent."""
    address: str = '127.0.0.1'
    command: tuple = ()

    def argv(self, argv):
        return [str(part) for part in (*self.command, *argv)]

    def endpoint(self, port):
        return f'{self.address}:{port}'


class Daemon:
    def __init__(self, name, argv, env, run_dir, log_dir, place=Place()):
        self.name = name
        self.argv = place.argv(argv)
        self.env = env
        self.pid_file = pathlib.Path(run_dir) / f'{name}.pid'
        self.log = pathlib.Path(log_dir) / f'{name}.log'
        self._child = None

    def start(self):
        assert not self.is_running(), f'{self.name} runs already'
        with open(self.log, 'ab') as log:
            self._child = subprocess.Popen(
                self.argv, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True)
        self.pid_file.write_text(f'{self._child.pid} {_start_time(self._child.pid)}\n')

    def pid(self):
        """The process id while it runs, else None."""
        if self._child:
            self._child.poll()  # reaps it if it has ended
        try:
            pid, started = self.pid_file.read_text().split()
        except (OSError, ValueError):
            return None
        return int(pid) if _start_time(int(pid)) == started else None

    def is_running(self):
        return self.pid() is not None

    def listens_on(self, port):
        """Whether somebody listens on a TCP port of the network that the process sees."""
        pid = self.pid()
        return pid is not None and port in _listening_ports(pid)

    def send_signal(self, number):
        pid = self.pid()
        if pid:
            os.kill(pid, number)

    def stop(self, number=signal.SIGTERM, patience=10):
        """Ends it; with SIGKILL when it does not listen. Returns whether it listened."""
        self.send_signal(number)
        listened = wait_until(lambda: not self.is_running(), patience)
        if not listened:
            self.send_signal(signal.SIGKILL)
            wait_until(lambda: not self.is_running(), 5)
        if self._child:
            # Its first thread has ended; until the last one has, its files are open and locked.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(patience)
        self.pid_file.unlink(missing_ok=True)
        return listened

    def kill(self):
        self.stop(signal.SIGKILL)

    def exit_status(self):
        """Of what was started and has ended; None if nothing was started."""
        return self._child.wait() if self._child else None

    def log_tail(self, lines=20):
        try:
            return '\n'.join(self.log.read_text(errors='replace').splitlines()[-lines:])
        except OSError:
            return ''


def _start_time(pid):
    """Field 22 of /proc/PID/stat, as text; None when it is gone or a zombie."""
    try:
        fields = open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()
    except OSError:
        return None
    return None if fields[0] in 'ZX' else fields[19]


def wait_until(condition, seconds, pause=0.05):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def _listening_ports(pid):
    """From /proc: no connection is made, and other network namespaces are seen too."""
    ports = set()
    for table in ('tcp', 'tcp6'):
        try:
            lines = open(f'/proc/{pid}/net/{table}').read().splitlines()[1:]
        except OSError:  # the process has just ended
            continue
        for local, state in ((line.split()[1], line.split()[3]) for line in lines):
            if state == '0A':
                ports.add(int(local.rsplit(':', 1)[1], 16))
    return ports


def is_free(port):
    """Whether nobody has the port, for TCP and for UDP."""
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(type=kind) as probe:
            if kind == socket.SOCK_STREAM:  # what lingers of a closed connection does not count
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(('127.0.0.1', port))
            except OSError:
                return False
    return True


# Below the ephemeral range, so that no outgoing connection takes one. Each process of a parallel test
# run (pytest-xdist) has a part of its own.
_WORKER = int(os.environ.get('PYTEST_XDIST_WORKER', 'gw0')[2:]) % 4
FIRST_PORT, LAST_PORT = 20000 + 2500 * _WORKER, 22499 + 2500 * _WORKER
_next_port = FIRST_PORT + os.getpid() * 97 % 2500


def free_ports(count):
    """A run of free ports. None is given out twice: its owner may only have stopped for a while."""
    global _next_port
    for _ in range(1000):
        if _next_port + count > LAST_PORT:
            _next_port = FIRST_PORT
        ports = list(range(_next_port, _next_port + count))
        _next_port += count
        if all(is_free(port) for port in ports):
            return ports
    raise RuntimeError('no free ports on the loopback interface')
