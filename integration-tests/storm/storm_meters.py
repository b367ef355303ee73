# SPDX-License-Identifier: Apache-2.0
"""What the processes say and use while a storm runs: the servers' metrics, and memory."""

import pathlib
import re
import threading
import urllib.request

_LINE = re.compile(r'^(\w+)(?:\{(.*)\})? (\S+)$')


def scrape(port):
    """{('name', 'labels'): value} of one server's metrics."""
    with urllib.request.urlopen(f'http://127.0.0.1:{port}/metrics', timeout=10) as reply:
        text = reply.read().decode()
    values = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match:
            values[match.group(1), match.group(2) or ''] = float(match.group(3))
    return values


class ServerMeter:
    """The servers' metrics between begin() and end()."""

    def __init__(self, ports):
        self.ports = ports
        self.before = []

    def begin(self):
        self.before = [scrape(port) for port in self.ports]

    def end(self):
        after = [scrape(port) for port in self.ports]
        moved = [{key: value - old.get(key, 0.0) for key, value in new.items()}
                 for old, new in zip(self.before, after)]
        return summary(moved)


def _work(metrics, what):
    return metrics.get(('mpckdc_batch_work_total', f'what="{what}"'), 0.0)


def _mean_us(metrics, phase):
    label = f'phase="{phase}"'
    count = metrics.get(('mpckdc_batch_seconds_count', label), 0.0)
    return 1e6 * metrics.get(('mpckdc_batch_seconds_sum', label), 0.0) / count if count else 0.0


def summary(moved):
    """What three servers' differences say. Blocks and rounds are alike at all, bytes are summed.
    A login is one job, each service ticket one more."""
    first = moved[0]
    batches = _work(first, 'batches')
    jobs = first.get(('mpckdc_batch_jobs_sum', ''), 0.0)
    per_batch = 1 / batches if batches else 0.0
    per_job = 1 / jobs if jobs else 0.0
    return {
        'batches': batches,
        'jobs': jobs,
        'failed_batches': _work(first, 'failed_batches'),
        'jobs_per_batch': jobs * per_batch,
        'waited_us': max(_mean_us(m, 'waited') for m in moved),
        'agreed_us': max(_mean_us(m, 'agreed') for m in moved),
        'computed_us': max(_mean_us(m, 'computed') for m in moved),
        'rounds_per_batch': _work(first, 'rounds') * per_batch,
        'blocks_per_job': _work(first, 'aes_blocks') * per_job,
        'bytes_per_job': sum(_work(m, 'bytes') for m in moved) * per_job,
    }


def memory(pid):
    """{'VmRSS': KiB, 'RssAnon': KiB, 'VmHWM': KiB}; empty when the process is gone."""
    try:
        text = pathlib.Path(f'/proc/{pid}/status').read_text()
    except OSError:
        return {}
    found = re.findall(r'^(VmRSS|RssAnon|VmHWM):\s+(\d+) kB$', text, re.MULTILINE)
    return {name: int(value) for name, value in found}


class MemoryWatch:
    """`with MemoryWatch(pids) as watch:` and watch.peak has each name's largest RSS in MiB."""

    def __init__(self, pids, every=0.1):
        self.pids, self.every = pids, every
        self.peak = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _run(self):
        while not self._stop.wait(self.every):
            for name, pid in self.pids:
                mib = memory(pid).get('VmRSS', 0) / 1024
                self.peak[name] = max(self.peak.get(name, 0.0), mib)
