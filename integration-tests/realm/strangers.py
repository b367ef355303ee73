# SPDX-License-Identifier: Apache-2.0
"""Strangers at a TCP port: they connect, say nothing or the same few bytes, and stay."""

import collections
import itertools
import socket
import threading
import time

PER_SECOND = 100
KEPT = 8000  # more connections than the programs under attack keep


class Strangers:
    """Connects to ports of the loopback interface in turn until the `with` ends.

    They come from addresses where no part of a realm is: 127.0.9.1 and those after it."""

    def __init__(self, *ports, per_second=PER_SECOND, addresses=1, first=b''):
        self._ports = itertools.cycle(ports)
        self._sources = itertools.cycle([f'127.0.9.{1 + i}' for i in range(addresses)])
        self._pause = 1 / per_second
        self._first = first
        self._silent = collections.deque()
        self._kept = collections.deque()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.connected = 0

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        for one in itertools.chain(self._silent, self._kept):
            one.close()

    def _run(self):
        due = time.monotonic()
        while not self._stop.wait(max(0, due - time.monotonic())):
            self._connect()
            self._speak()
            due += self._pause

    def _connect(self):
        one = socket.socket()
        one.setblocking(False)
        one.bind((next(self._sources), 0))
        one.connect_ex(('127.0.0.1', next(self._ports)))
        self._silent.append(one)
        self.connected += 1

    def _speak(self):
        """Moves those who have said what they say to the others, in their order."""
        while self._silent:
            try:
                if self._first:
                    self._silent[0].send(self._first)
            except BlockingIOError:
                return  # not connected yet
            except OSError:
                pass  # refused, or dropped
            self._kept.append(self._silent.popleft())
            if len(self._kept) > KEPT:
                self._kept.popleft().close()
