# SPDX-License-Identifier: Apache-2.0
"""One run of login-storm, with what the servers say and the processes use meanwhile."""

import contextlib
import json
import os
import pathlib
import re
import subprocess
import threading
import urllib.request

import config_files
import storm
import storm_realms

SAMPLE = '1%'   # of replies that are opened; every one is checked as far as its plaintext goes
PATIENCE = 120  # seconds beyond a run's own time: users are read, what is in flight ends
NEARLY_ALL = 0.95  # of the most logins per second: saturation


def target(lab):
    return ['--kdc', f'127.0.0.1:{lab.live.ports.kdc}', '--enctype', lab.enctype]


def jobs_target(lab):
    return [*storm.jobs_target(lab.live), '--enctype', lab.enctype]


def run(lab, arguments, seconds, check=SAMPLE, warm_up=1.0, name='report'):
    """login-storm's report, with `servers` (summary()), `memory_mib` (peaks), `status`.

    `arguments` begin with target() or jobs_target()."""
    file = lab.live.dir / f'{name}.json'
    file.unlink(missing_ok=True)
    pids = [word for process, pid in lab.pids() for word in ('--pid', f'{process}={pid}')]
    argv = [storm.program(), *map(str, arguments), '--check', check, '--warm-up', f'{warm_up}s',
            '--realm', lab.live.name, '--keytab', lab.keytab, '--duration', f'{seconds}s', '--json',
            file, *pids]
    before = [scrape(port) for port in lab.live.options.metrics]  # none of a stock realm
    steps = dict(zip(arguments, arguments[1:])).get('--ramp-steps', 1)
    with memory_peaks(lab.pids()) as peaks:
        # It is built with the patched krb5, whichever KDC it talks to.
        done = subprocess.run(
            argv, env={**lab.live.env, 'LD_LIBRARY_PATH': config_files.krb5_library_path()},
            capture_output=True, encoding='utf-8', timeout=seconds * steps + PATIENCE)
    if not file.exists():
        raise storm_realms.StormError(f'login-storm: exit {done.returncode}: {done.stderr[-2000:]}')
    report = json.loads(file.read_text())
    report['status'] = done.returncode
    report['memory_mib'] = peaks
    if before:
        report['servers'] = summary([
            {key: value - old.get(key, 0.0) for key, value in scrape(port).items()}
            for old, port in zip(before, lab.live.options.metrics)])
    return report


def figures(report):
    """The numbers of a run that tables and goals are made of."""
    counts = report['logins']
    latency = report['latency_ms']['login']
    cpu = report['cpu']['seconds_per_1000_logins']
    servers = [cpu[name] for name in ('p0', 'p1', 'p2') if cpu.get(name) is not None]
    return {
        'logins_per_s': counts['ok_per_s'], 'ok': counts['ok'], 'failed': counts['failed'],
        'wrong': counts['wrong_answers'], 'lost': counts.get('lost', 0),
        'shed': counts.get('shed', 0), 'resends': report.get('resends', 0),
        'mean_ms': latency.get('mean'), 'p50_ms': latency.get('p50'), 'p99_ms': latency.get('p99'),
        'p999_ms': latency.get('p99.9'), 'max_ms': latency.get('max'),
        'kdc_cpu_per_1000': cpu.get('kdc'),
        'servers_cpu_per_1000': sum(servers) if servers else None,
        'tool_us_per_login': 1e6 * (report['cpu']['tool_seconds_per_login'] or 0.0),
        'servers': report.get('servers'), 'memory_mib': report['memory_mib'],
        'status': report['status'], 'errors': report.get('errors') or report.get('verdicts') or {},
    }


def repeated(lab, arguments, seconds, times):
    """The median run by throughput, with the spread of all of them and that run's curves."""
    runs = sorted((run(lab, arguments, seconds) for _ in range(times)),
                  key=lambda report: report['logins']['ok_per_s'])
    middle = runs[len(runs) // 2]
    rates = [report['logins']['ok_per_s'] for report in runs]
    result = figures(middle)
    result['spread'] = {'runs': times, 'min': rates[0], 'max': rates[-1]}
    result['any'] = {what: sum(figures(report)[what] for report in runs)
                     for what in ('failed', 'wrong', 'lost')}
    result['histogram_ms'], result['series'] = middle['histogram_ms'], middle['series']
    return result


def best_in_flight(lab, head, candidates, seconds):
    """The fewest in flight that carry nearly the most logins per second, and what each number gave.

    More of them only wait longer."""
    tried = {number: run(lab, [*head, '--in-flight', number], seconds)['logins']['ok_per_s']
             for number in candidates}
    enough = NEARLY_ALL * max(tried.values())
    return min(number for number in tried if tried[number] >= enough), tried


def machine():
    with open('/proc/cpuinfo', encoding='utf-8') as file:
        models = [line.split(':', 1)[1].strip() for line in file if line.startswith('model name')]
    kernel = os.uname()
    return {'cpu': models[0] if models else '?', 'cores': len(models),
            'kernel': f'{kernel.sysname} {kernel.release}', 'commit': config_files.commit(),
            'load_before': os.getloadavg()[0]}


# What the servers say and the processes use -----------------------------------------------------

def scrape(port):
    """{('name', 'labels'): value} of one server's metrics."""
    with urllib.request.urlopen(f'http://127.0.0.1:{port}/metrics', timeout=10) as reply:
        return parse_metrics(reply.read().decode())


def parse_metrics(text):
    lines = re.findall(r'^(\w+)(?:\{(.*)\})? (\S+)$', text, re.MULTILINE)
    return {(name, labels): float(value) for name, labels, value in lines}


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
    """{'VmRSS': KiB, 'RssAnon': KiB}; empty when the process is gone."""
    try:
        text = pathlib.Path(f'/proc/{pid}/status').read_text()
    except OSError:
        return {}
    found = re.findall(r'^(VmRSS|RssAnon):\s+(\d+) kB$', text, re.MULTILINE)
    return {name: int(value) for name, value in found}


@contextlib.contextmanager
def memory_peaks(pids, every=0.1):
    """Yields each name's largest RSS in MiB, which is right at the end."""
    peaks, stop = {}, threading.Event()

    def watch():
        while not stop.wait(every):
            for name, pid in pids:
                mib = memory(pid).get('VmRSS', 0) / 1024
                peaks[name] = max(peaks.get(name, 0.0), mib)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        stop.set()
        thread.join()
