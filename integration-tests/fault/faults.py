# SPDX-License-Identifier: Apache-2.0
"""The faults: what is done to a server or to the KDC, and how it ends.

A target is `p0`, `p1`, `p2` or `kdc`: a process (krb5kdc for the KDC) and the network namespace
that is its host.
"""

import dataclasses
import signal
import time

TARGETS = ('p0', 'p1', 'p2', 'kdc')
KINDS = ('kill', 'stop', 'partition', 'slow')
SLOW_BYTES_PER_SECOND = 1024
DESCRIPTIONS = {
    'kill': 'kill -9, started again afterwards',
    'stop': 'SIGSTOP, then SIGCONT',
    'partition': 'every frame to and from the host lost, nothing refused',
    'slow': '1 KB/s to and from the host',
}


@dataclasses.dataclass(frozen=True)
class Timing:
    """Seconds. The load runs `before` the fault, during it, and at least `after` it."""
    before: float = 5
    kill: float = 3
    stop: float = 30
    partition: float = 20
    slow: float = 30
    after: float = 15

    def of(self, kind):
        return getattr(self, kind)


class Fault:
    def __init__(self, kind, target, realm, network):
        self.kind, self.target = kind, target
        self._network = network
        self._process = realm.kdc if target == 'kdc' else realm.servers[int(target[1])]

    @property
    def name(self):
        return f'{self.target}: {self.kind}'

    def begin(self):
        """Returns the moment from which it works, by time.monotonic()."""
        if self.kind == 'kill':
            self._process.kill()
        elif self.kind == 'stop':
            self._process.send_signal(signal.SIGSTOP)
        elif self.kind == 'partition':
            self._network.partition(self.target)
        else:
            self._network.slow(self.target, SLOW_BYTES_PER_SECOND)
        return time.monotonic()

    def end(self):
        """Does not wait for what it started or woke. Returns the moment, as begin() does."""
        moment = time.monotonic()
        if self.kind == 'kill':
            self._process.start()
        elif self.kind == 'stop':
            self._process.send_signal(signal.SIGCONT)
        else:
            self._network.heal(self.target)
        return moment
