# SPDX-License-Identifier: Apache-2.0
"""One run of login-storm, with what the servers say meanwhile."""

import json
import os
import subprocess

import config_files
import storm
import storm_realms
from storm_meters import MemoryWatch, ServerMeter

SAMPLE = '1%'   # of replies that are opened; every one is checked as far as its plaintext goes
PATIENCE = 120  # seconds beyond a run's own time: users are read, what is in flight ends
NEARLY_ALL = 0.95  # of the most logins per second: saturation


def target(lab):
    return ['--kdc', f'127.0.0.1:{lab.live.ports.kdc}', '--enctype', lab.enctype]


def jobs_target(lab):
    return [*storm.jobs_target(lab.live), '--enctype', lab.enctype]


def command(lab, arguments, seconds, file, keytab=None):
    """`arguments` begin with target() or jobs_target()."""
    pids = [word for name, pid in lab.pids() for word in ('--pid', f'{name}={pid}')]
    head, rest = ([arguments[0]], arguments[1:]) if arguments[0] == 'jobs' else ([], arguments)
    return [storm.program(), *map(str, head), '--realm', lab.live.name, '--keytab',
            str(keytab or lab.keytab), *map(str, rest), '--duration', f'{seconds}s', '--json',
            str(file), *pids]


def run(lab, arguments, seconds, keytab=None, check=SAMPLE, warm_up=1.0):
    """login-storm's report, with `servers` (storm_meters), `memory_mib` (peaks), `status`."""
    file = lab.live.dir / 'report.json'
    file.unlink(missing_ok=True)
    meter = ServerMeter(lab.live.options.metrics) if lab.ours else None
    argv = command(lab, [*arguments, '--check', check, '--warm-up', f'{warm_up}s'], seconds, file,
                   keytab)
    if meter:
        meter.begin()
    steps = 1
    if '--ramp-steps' in arguments:
        steps = arguments[arguments.index('--ramp-steps') + 1]
    with MemoryWatch(lab.pids()) as memory:
        done = subprocess.run(argv, env=storm_realms.tool_environment(lab.live),
                              capture_output=True, encoding='utf-8',
                              timeout=seconds * steps + PATIENCE)
    if not file.exists():
        raise storm_realms.StormError(f'login-storm: exit {done.returncode}: {done.stderr[-2000:]}')
    report = json.loads(file.read_text())
    report['status'] = done.returncode
    report['memory_mib'] = memory.peak
    if meter:
        report['servers'] = meter.end()
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
    runs = [run(lab, arguments, seconds) for _ in range(times)]
    runs.sort(key=lambda report: report['logins']['ok_per_s'])
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
    tried = {}
    for number in candidates:
        report = run(lab, [*head, '--in-flight', number], seconds)
        tried[number] = report['logins']['ok_per_s']
    enough = NEARLY_ALL * max(tried.values())
    return min(number for number in tried if tried[number] >= enough), tried


def machine():
    with open('/proc/cpuinfo', encoding='utf-8') as file:
        models = [line.split(':', 1)[1].strip() for line in file if line.startswith('model name')]
    kernel = os.uname()
    return {'cpu': models[0] if models else '?', 'cores': len(models),
            'kernel': f'{kernel.sysname} {kernel.release}', 'commit': config_files.commit(),
            'load_before': os.getloadavg()[0]}
