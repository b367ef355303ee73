# SPDX-License-Identifier: Apache-2.0
"""A small network of network namespaces: a switch, and a host for each part of a realm.

    p0   p1   p2   kdc   client        a namespace each: one interface, eth0, one address
     |    |    |    |      |
     +----+----+----+------+           veth pairs
                |
             switch                    a namespace with a bridge, so that the machine's own
                                       network, its firewall and its sysctls have no part in it

Two things can happen to a host's cable. *Partition*: its port leaves the bridge. The link stays up
and all hosts know each other's hardware address for ever, so nothing is refused, no host is called
unreachable: frames vanish, both ways. *Slow*: tbf, the kernel's token bucket, holds both directions
to a rate; its queue is as long as a modem's and then drops.

Everything is gone when the namespaces are. Their names hold the id of the process that made them:
what a killed run has left is removed by the next one.
"""

import itertools
import os
import pathlib
import re
import signal
import subprocess

import daemon

HOSTS = ('p0', 'p1', 'p2', 'kdc', 'client')
SWITCH, BRIDGE, CABLE = 'switch', 'br0', 'eth0'
# Used in the namespaces alone (RFC 5737's example addresses): no route leads anywhere else.
ADDRESSES = {host: f'192.0.2.{number}' for number, host in enumerate(HOSTS, 1)}
MACS = {host: f'02:00:00:00:02:{number:02x}' for number, host in enumerate(HOSTS, 1)}
MODEM_QUEUE_BYTES = 8192    # in each direction: 8 s at 1 KB/s
BUCKET_BYTES = 1600         # one full Ethernet frame, the least that lets any through
_PREFIX = 'mpckdc-fault-'
_numbers = itertools.count(1)  # no name comes twice: a namespace may outlast its removal


class NetworkError(Exception):
    """A command that changes the network failed; the text shows it and its output."""


def missing_rights():
    """Why this machine cannot make the network, or None."""
    if os.geteuid() != 0:
        return 'network namespaces need root'
    probe = Network()
    try:
        probe.create()
        probe.slow('client', 1024)
        return None
    except (NetworkError, OSError) as error:
        return f'no network namespaces with veth, bridge and tbf here: {error}'
    finally:
        probe.remove()


class Network:
    """See the module's text. A context manager: create() on entry, remove() on exit."""

    def __init__(self):
        self._made = []
        self._run = f'{_PREFIX}{os.getpid()}-{next(_numbers)}-'

    def __enter__(self):
        try:
            return self.create()
        except BaseException:
            self.remove()
            raise

    def __exit__(self, *_):
        self.remove()

    def create(self):
        remove_leftovers()
        for name in (SWITCH, *HOSTS):
            _ip('netns', 'add', self._namespace(name))
            self._made.append(name)
            self._in(name, 'ip', 'link', 'set', 'lo', 'up')
        self._in(SWITCH, 'ip', 'link', 'add', BRIDGE, 'type', 'bridge')
        self._in(SWITCH, 'ip', 'link', 'set', BRIDGE, 'up')
        for host in HOSTS:
            self._plug_in(host)
        return self

    def remove(self):
        """A namespace ends with its last process: the caller has stopped what it started in it."""
        while self._made:
            subprocess.run(['ip', 'netns', 'del', self._namespace(self._made.pop())],
                           stderr=subprocess.DEVNULL, check=False)

    def places(self):
        return {host: daemon.Place(ADDRESSES[host],
                                   ('ip', 'netns', 'exec', self._namespace(host)))
                for host in HOSTS}

    def partition(self, host):
        self._in(SWITCH, 'ip', 'link', 'set', host, 'nomaster')

    def slow(self, host, bytes_per_second):
        for side, interface in ((host, CABLE), (SWITCH, host)):
            self._in(side, 'tc', 'qdisc', 'add', 'dev', interface, 'root', 'tbf',
                     'rate', f'{bytes_per_second}bps', 'burst', BUCKET_BYTES,
                     'limit', MODEM_QUEUE_BYTES)

    def heal(self, host):
        """Ends a partition or a slow cable; nothing happens if there is none."""
        self._in(SWITCH, 'ip', 'link', 'set', host, 'master', BRIDGE)
        for side, interface in ((host, CABLE), (SWITCH, host)):
            self._in(side, 'tc', 'qdisc', 'del', 'dev', interface, 'root', check=False)

    # Inside -------------------------------------------------------------------------------------

    def _namespace(self, name):
        return self._run + name

    def _in(self, name, *command, check=True):
        return run('ip', 'netns', 'exec', self._namespace(name), *command, check=check)

    def _plug_in(self, host):
        """The switch's end of the cable is called like the host."""
        self._in(SWITCH, 'ip', 'link', 'add', host, 'type', 'veth', 'peer', 'name', CABLE,
                 'netns', self._namespace(host))
        self._in(SWITCH, 'ip', 'link', 'set', host, 'master', BRIDGE, 'up')
        self._in(host, 'ip', 'link', 'set', CABLE, 'address', MACS[host], 'up')
        self._in(host, 'ip', 'address', 'add', f'{ADDRESSES[host]}/24', 'dev', CABLE)
        for other in HOSTS:
            if other != host:
                self._in(host, 'ip', 'neighbour', 'replace', ADDRESSES[other],
                         'lladdr', MACS[other], 'nud', 'permanent', 'dev', CABLE)


def remove_leftovers():
    """What runs that were killed left: their namespaces, and the processes in them."""
    folder = pathlib.Path('/run/netns')
    for path in folder.glob(f'{_PREFIX}*') if folder.is_dir() else ():
        owner = re.match(rf'{_PREFIX}(\d+)-', path.name)
        if owner and not pathlib.Path(f'/proc/{owner[1]}').exists():
            # Words, where another run has just removed it.
            for pid in run('ip', 'netns', 'pids', path.name, check=False).split():
                if pid.isdigit():
                    _kill(int(pid))
            run('ip', 'netns', 'del', path.name, check=False)


def _kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _ip(*arguments):
    return run('ip', *arguments)


def run(*command, check=True, timeout=None):
    argv = [str(part) for part in command]
    try:
        result = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, encoding='utf-8', errors='replace',
                                timeout=timeout)
    except FileNotFoundError:
        raise NetworkError(f'{argv[0]} is missing: install iproute2') from None
    if check and result.returncode:
        raise NetworkError(f'{" ".join(argv)}: {result.stdout.strip()}')
    return result.stdout
