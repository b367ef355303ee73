# SPDX-License-Identifier: Apache-2.0
"""What `make soak` sees while it runs: each process every few seconds, and every login.

A sample is a dict: `at` (seconds since 1970), `name`, `pid`, `rss`, `anon`, `locked` (KiB),
`descriptors`, `threads`; of a store `store` (bytes) in their place. A Login is a line of login-storm's
--log."""

import array
import collections
import os
import pathlib
import re
import threading
import time

MEMORY = {'VmRSS': 'rss', 'RssAnon': 'anon', 'VmLck': 'locked', 'Threads': 'threads'}


def look_at(name, pid):
    """None when the process is gone."""
    try:
        text = pathlib.Path(f'/proc/{pid}/status').read_text(encoding='ascii')
        descriptors = len(os.listdir(f'/proc/{pid}/fd'))
    except (OSError, TypeError):
        return None
    found = dict(re.findall(r'^(\w+):\s+(\d+)', text, re.MULTILINE))
    if 'VmRSS' not in found:  # it is ending
        return None
    return {'at': time.time(), 'name': name, 'pid': pid, 'descriptors': descriptors,
            **{ours: int(found[theirs]) for theirs, ours in MEMORY.items()}}


class Sampler:
    """pids() and stores() say each time what there is: (name, pid), (name, bytes)."""

    def __init__(self, pids, stores, every):
        self.samples = []
        self._pids, self._stores, self._every = pids, stores, every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _run(self):
        while True:
            for name, pid in self._pids():
                self.samples += filter(None, [look_at(name, pid)])
            for name, size in self._stores():
                self.samples.append({'at': time.time(), 'name': name, 'store': size})
            if self._stop.wait(self._every):
                return


Login = collections.namedtuple('Login', 'due end outcome code sends user')


def read_logins(file):
    """In the order in which they ended; a last line that is half written is left out."""
    try:
        text = pathlib.Path(file).read_text(encoding='ascii')
    except FileNotFoundError:
        return
    for line in text[:text.rfind('\n') + 1].splitlines():
        due, ms, outcome, code, sends, user = line.split()
        yield Login(float(due), float(due) + float(ms) / 1000, outcome, int(code), int(sends), user)


class Minutes:
    """Counts and latencies by the minute in which logins were due."""

    def __init__(self, begin, width):
        self.begin, self.width = begin, width
        self._ms = collections.defaultdict(lambda: array.array('f'))
        self._other = collections.Counter()
        self._resent = collections.Counter()

    def add(self, login):
        at = int((login.due - self.begin) // self.width)
        if login.outcome == 'ok':
            self._ms[at].append(1000 * (login.end - login.due))
        else:
            self._other[at] += 1
        self._resent[at] += login.sends > 1

    def rows(self):
        rows = []
        for at in sorted({*self._ms, *self._other}):
            ms = sorted(self._ms[at])
            rows.append({'from_s': at * self.width, 'ok': len(ms), 'not_ok': self._other[at],
                         'resent': self._resent[at], 'p50_ms': percentile(ms, 50),
                         'p99_ms': percentile(ms, 99), 'longest_ms': ms[-1] if ms else None})
        return rows


def percentile(ordered, percent):
    """The least value that so many are not above; None of nothing."""
    if not ordered:
        return None
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]
