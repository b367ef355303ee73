# SPDX-License-Identifier: Apache-2.0
"""A realm on a line, and what a lone login takes on it.

    P0 ---+
    P1 ---+--- the line ---- KDC, and the client beside it
    P2 ---+

The client is login-storm, which speaks as libkrb5 does: one login at a time, in one step (the
pre-authentication is in its first request), its reply decrypted and looked into.
"""

import collections
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import lines
import measure

sys.path.insert(0, str(lines.HERE.parent / 'storm'))

import config_files  # noqa: E402
import daemon  # noqa: E402
import realm as realm_module  # noqa: E402
import storm  # noqa: E402
import storm_runs  # noqa: E402

NUMBERS = {'aes128-gcm': 24001, 'aes256-gcm': 24002, 'aes128-cts': 17, 'aes256-cts': 18,
           'aes128-sha2': 19, 'aes256-sha2': 20}
TYPES = ('aes256-gcm', 'aes128-cts', 'aes256-cts', 'aes128-sha2', 'aes256-sha2')
USER, PASSWORD = 'user%06d', 'a login from far away'
PATIENCE = 45       # seconds until a login counts as lost; a server waits for 30 at most
WARM_UP = 6         # logins: each connection between two servers has carried tables twice
PROCESSES = lines.PARTIES
SETTLE_SECONDS = 2  # after a start: servers prepare their circuits for a while
SHOWN_CPU_MS = 0.1  # a login's, of a thread of the three servers


def missing_programs():
    """What is not built, or None."""
    try:
        storm.program()
        for name in ('krb5kdc', 'kadmind'):
            config_files.krb5_program(name)
        config_files.mpc_program('mpc-server')
    except FileNotFoundError as error:
        return str(error)
    return None


class DistanceError(Exception):
    """A measurement did not come to its end; the text says why."""


@dataclasses.dataclass(frozen=True)
class Distance:
    """one_way_ms None: no line, all on one host's loopback interface."""
    name: str
    mbit: float = 0
    one_way_ms: float | None = None

    def wire(self, kernel):
        if self.one_way_ms is None:
            return Loopback(kernel)
        return lines.Wire(lines.Line(self.mbit, self.one_way_ms), kernel, hosts=lines.REALM)


@dataclasses.dataclass(frozen=True)
class Load:
    types: tuple = TYPES
    logins: int = 15
    idle_seconds: float = 15
    rounds: int = 1             # of all of it
    engine: str = ''            # lines of [engine] in the servers' configuration


class Loopback(lines.Wire):
    """All processes in one namespace: its loopback interface is no line, but counts bytes alike."""

    def __init__(self, kernel):
        super().__init__(lines.Line(), kernel, hosts=lines.PARTIES[:1])

    def place(self, _):
        return daemon.Place('127.0.0.1', super().place('p0').command)

    def places(self):
        return {host: self.place(host) for host in (*lines.REALM, 'client')}


def measure_line(distance, load, kernel, folder, say):
    """Everything about one line: its proof, then a result per type."""
    found = {'line': distance.name, 'mbit': distance.mbit, 'one_way_ms': distance.one_way_ms,
             'kernel': dataclasses.asdict(kernel), 'results': []}
    if distance.one_way_ms is not None:
        found['proof'] = measure.prove(lines.Line(distance.mbit, distance.one_way_ms), kernel)
        say(measure.proof_text({'network': distance.name, **found}))
    else:
        say(distance.name)
    with distance.wire(kernel) as wire, running_realm(wire, load, folder) as live:
        dropped = wire.dropped()    # a device without a reader yet drops the host's first words
        for _ in range(load.rounds):
            for enctype in load.types:
                connect_anew(live)
                result = measure_type(wire, live, enctype, load)
                found['results'].append(result)
                say(result_text(result, distance))
        wire.stop_relay()
        found['doubts'] = lines.doubts(wire.line, wire.relay_report,
                                       wire.dropped() - dropped)
        found['relay'] = wire.relay_report
    say(''.join(f'      doubtful: {reason}\n' for reason in found['doubts']).rstrip())
    return found


@contextlib.contextmanager
def running_realm(wire, load, folder):
    """With a user of each type. What it wrote is removed, but for the logs of one that failed."""
    options = realm_module.Options(
        metrics=tuple(daemon.free_ports(3)),
        extra_server=f'[engine]\n{load.engine}\n' if load.engine else '',
        extra_database={'mpc_timeout': '60s', 'disable_lockout': True,
                        'disable_last_success': True})
    live = realm_module.Realm(folder, options, places=wire.places())
    live.destroy()
    try:
        live.create()
        (live.dir / 'password').write_text(PASSWORD + '\n')
        for enctype in load.types:
            live.enroll(USER % NUMBERS[enctype], PASSWORD, '--enctype', enctype)
        yield live
    except BaseException:
        live.stop()
        raise
    live.destroy()


def connect_anew(live):
    """No connection has carried anything yet."""
    live.stop_kdc()
    for server in live.servers:
        server.stop()
    live.start_servers()
    live.start_kdc()
    time.sleep(SETTLE_SECONDS)


def sessions_ended(live):
    """How often a server has lost the others, since the realm was made."""
    return sum(server.log.read_text(errors='replace').count('not connected to the other servers')
               for server in live.servers)


def measure_type(wire, live, enctype, load):
    """The very first login, WARM_UP more, one after an idle time, and then one after the other."""
    result = {'type': enctype, 'load_average': os.getloadavg()[0]}
    first = log_in(live, enctype, 1)
    result['first_ms'] = first['p50']
    result['failures'] = first['failures']
    if first['failures']:
        return result   # each of the others would take its patience
    log_in(live, enctype, WARM_UP)
    time.sleep(load.idle_seconds)
    result['after_idle_ms'] = log_in(live, enctype, 1)['p50']
    before = Counters.now(wire, live)
    logins = log_in(live, enctype, load.logins)
    moved = Counters.now(wire, live).since(before)
    result.update(logins, **moved.per_login(load.logins))
    result['load_average'] = os.getloadavg()[0]
    return result


def log_in(live, enctype, count):
    """{count, p50, p95, min, max, mean in ms, failures: what went wrong, with its number}."""
    file = live.dir / 'logins.json'
    file.unlink(missing_ok=True)
    argv = [storm.program(), '--kdc', live.place('kdc').endpoint(live.ports.kdc), '--realm',
            live.name, '--users', USER, '--first', NUMBERS[enctype], '--number', 1,
            '--password-file', live.dir / 'password', '--enctype', enctype, '--in-flight', 1,
            '--count', count, '--resends', 0, '--resend-after', f'{PATIENCE}s', '--json', file]
    done = subprocess.run(live.place('client').argv(argv), env=live.env, capture_output=True,
                          encoding='utf-8', timeout=60 + PATIENCE * count)
    if not file.exists():
        raise DistanceError(f'login-storm: exit {done.returncode}: {done.stderr[-2000:]}')
    report = json.loads(file.read_text())
    return {**quantiles(report['histogram_ms']), 'failures': failures(report)}


def failures(report):
    counts = report['logins']
    names = ('failed', 'wrong_answers', 'refused', 'lost')
    found = {name: counts[name] for name in names if counts.get(name)}
    if found:
        found['errors'] = sorted(report.get('errors', {}))
    return found


def quantiles(histogram):
    """Of bins (from, to, count), each 1 % wide: exact enough for a table."""
    times = sorted((low + high) / 2 for low, high, count in histogram for _ in range(count))
    if not times:
        return {'count': 0, 'p50': None, 'p95': None, 'min': None, 'max': None}

    def at(share):
        return times[min(len(times) - 1, int(share * len(times)))]
    return {'count': len(times), 'p50': at(0.5), 'p95': at(0.95), 'min': times[0],
            'max': times[-1]}


# What logins cost -------------------------------------------------------------------------------

@dataclasses.dataclass
class Counters:
    """Of the three servers, the KDC and the hosts' kernels."""
    cpu_ms: dict            # {process: {thread: ms}}
    payload: int
    retransmitted: int
    metrics: list

    @staticmethod
    def now(wire, live):
        daemons = {**dict(zip(PROCESSES, live.servers)), 'kdc': live.kdc}
        return Counters({name: cpu_ms(process.pid()) for name, process in daemons.items()},
                        wire.sent()['payload'], sent_again(wire),
                        [scrape(live.place(name), port)
                         for name, port in zip(PROCESSES, live.options.metrics)])

    def since(self, before):
        return Counters({name: {thread: value - before.cpu_ms[name].get(thread, 0.0)
                                for thread, value in threads.items()}
                         for name, threads in self.cpu_ms.items()},
                        self.payload - before.payload, self.retransmitted - before.retransmitted,
                        [{key: value - old.get(key, 0.0) for key, value in now.items()}
                         for old, now in zip(before.metrics, self.metrics)])

    def per_login(self, logins):
        servers = storm_runs.summary(self.metrics)
        threads = collections.Counter()
        for name in PROCESSES:
            threads.update({re.sub(r'-\d+$', '', thread): value / logins
                            for thread, value in self.cpu_ms[name].items()})
        return {'servers_cpu_ms': threads.total(),
                'threads_cpu_ms': {name: value for name, value in threads.most_common()
                                   if value >= SHOWN_CPU_MS},
                'kdc_cpu_ms': sum(self.cpu_ms['kdc'].values()) / logins,
                'payload_mb': self.payload / logins / 1e6,
                'retransmitted': max(0, self.retransmitted),
                'batches': servers['batches'] / logins,
                'servers': servers}


def cpu_ms(pid):
    """{thread's name: ms}, as precise as the scheduler knows it."""
    found = collections.Counter()
    for task in pathlib.Path(f'/proc/{pid}/task').iterdir():
        with contextlib.suppress(OSError):  # a thread that has just ended
            name = (task / 'comm').read_text().strip()
            found[name] += int((task / 'schedstat').read_text().split()[0]) / 1e6
    return found


def sent_again(wire):
    """TCP segments, of all hosts; not those that only ask a slow receiver whether it has the last
    (loss probes, which may also be new ones)."""
    total = 0
    for host in wire.hosts:
        counted = lines.counters(wire.run(host, 'cat', '/proc/net/snmp', '/proc/net/netstat'))
        total += counted['Tcp.RetransSegs'] - counted['TcpExt.TCPLossProbes']
    return total


def scrape(place, port):
    """One server's metrics, which it gives to its own host only."""
    program = ('import sys, urllib.request as r; '
               'print(r.urlopen(sys.argv[1], timeout=10).read().decode())')
    url = f'http://127.0.0.1:{port}/metrics'
    text = subprocess.run(place.argv([sys.executable, '-c', program, url]), check=True,
                          stdout=subprocess.PIPE, encoding='utf-8').stdout
    return storm_runs.parse_metrics(text)


# Text -------------------------------------------------------------------------------------------

# Milliseconds of a warm lone login, at most: what the realm shall hold.
GOALS = {
    ('loopback', 'aes128-cts'): 15, ('loopback', 'aes256-cts'): 15,
    ('loopback', 'aes128-sha2'): 25, ('loopback', 'aes256-sha2'): 30,
    ('1 ms, 1 Gb/s', 'aes256-cts'): 150, ('10 ms, 1 Gb/s', 'aes256-cts'): 300,
    ('30 ms, 100 Mb/s', 'aes256-cts'): 2500,
    ('10 ms, 1 Gb/s', 'aes256-gcm'): 12 * 10 + 20,
}
GOAL_CPU_MS = {'aes256-cts': 25}


def goal_of(distance, result):
    return GOALS.get((distance.name, result['type']))


def in_ms(value):
    return '-' if value is None else f'{value:.1f}' if value < 100 else f'{value:.0f}'


COLUMNS = (     # heading, width, what of a result
    ('type', 12, lambda r: r['type']),
    ('first', 8, lambda r: in_ms(r['first_ms'])),
    ('after idle', 11, lambda r: in_ms(r['after_idle_ms'])),
    ('p50', 8, lambda r: in_ms(r['p50'])),
    ('p95', 8, lambda r: in_ms(r['p95'])),
    ('from', 8, lambda r: in_ms(r['min'])),
    ('to', 8, lambda r: in_ms(r['max'])),
    ('CPU', 7, lambda r: in_ms(r['servers_cpu_ms'])),
    ('MB', 7, lambda r: f'{r["payload_mb"]:.2f}'),
    ('batches', 8, lambda r: f'{r["batches"]:.1f}'),
    ('rounds', 7, lambda r: f'{r["servers"]["rounds_per_batch"] * r["batches"]:.0f}'),
    ('waited', 8, lambda r: in_ms(r['servers']['waited_us'] / 1e3)),
    ('agreed', 8, lambda r: in_ms(r['servers']['agreed_us'] / 1e3)),
    ('computed', 9, lambda r: in_ms(r['servers']['computed_us'] / 1e3)),
    ('goal', 6, lambda r: r['goal']),
)


def heading():
    return '  ' + ''.join(f'{name:>{width}}' for name, width, _ in COLUMNS)


def result_text(result, distance):
    goal = goal_of(distance, result)
    if result.get('p50') is None:
        return f'  {result["type"]:>12}  FAILED: {result["failures"]}'
    shown = {**result, 'goal': '-' if goal is None else str(goal)}
    text = '  ' + ''.join(f'{get(shown):>{width}}' for _, width, get in COLUMNS)
    if goal is not None:
        text += '  met' if result['p50'] <= goal else '  MISSED'
    cpu = GOAL_CPU_MS.get(result['type'])
    if cpu is not None:
        text += f'; CPU of {cpu}: ' + ('met' if result['servers_cpu_ms'] <= cpu else 'MISSED')
    if result['retransmitted']:
        text += f'\n      doubtful: {result["retransmitted"]} TCP segments were sent again'
    if result['failures']:
        text += f'\n      FAILED: {result["failures"]}'
    return text
