# SPDX-License-Identifier: Apache-2.0
"""A part of the processors for some processes: a control group with a quota. Root."""

import os
import pathlib

PERIOD_US = 10_000  # short, so that nobody stands still for long when a period's part is used up


class CpuShare:
    """`with` it: the processes, and all that they start, have `cores` processors together."""

    def __init__(self, name, cores, pids):
        self._cores, self._pids = cores, pids
        root = pathlib.Path('/sys/fs/cgroup')
        self._unified = (root / 'cgroup.controllers').exists()
        self._folder = (root if self._unified else root / 'cpu') / f'mpckdc-{os.getpid()}-{name}'

    def __enter__(self):
        self._folder.mkdir()
        quota = round(self._cores * PERIOD_US)
        if self._unified:
            self._write('cpu.max', f'{quota} {PERIOD_US}')
        else:
            self._write('cpu.cfs_period_us', PERIOD_US)
            self._write('cpu.cfs_quota_us', quota)
        for pid in self._pids:
            self._write('cgroup.procs', pid)
        return self

    def __exit__(self, *_):
        """What still runs goes back to where all are."""
        for pid in (self._folder / 'cgroup.procs').read_text().split():
            try:
                (self._folder.parent / 'cgroup.procs').write_text(pid)
            except ProcessLookupError:
                pass
        self._folder.rmdir()

    def _write(self, name, value):
        (self._folder / name).write_text(str(value))

    def throttled(self):
        """How many periods there were, and in how many they wanted more."""
        stat = dict(line.split() for line in (self._folder / 'cpu.stat').read_text().splitlines())
        return int(stat['nr_periods']), int(stat['nr_throttled'])
