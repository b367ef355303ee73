# SPDX-License-Identifier: Apache-2.0
"""What `make storm` measures. Each measurement has a name, for --only, and fills bench.results."""

import concurrent.futures
import contextlib
import json
import math
import time

import config_files
import daemon
import many_users
import storm_mixed
import storm_realms
import storm_runs
from storm_runs import memory

STOCK_IN_FLIGHT = (8, 16, 32)
OUR_IN_FLIGHT = (128, 512, 1024, 2048)
JOBS_IN_FLIGHT = (1024, 4096, 8192)
OPEN_RATE = 1000           # logins/s
REPETITIONS = 3            # of saturation runs
LOCKOUT_USERS = 200        # with a policy that locks after LOCKOUT_FAILURES
LOCKOUT_FAILURES = 3
GROWTH = (1_000, 10_000, 100_000)
GROWTH_ON_REQUEST = 1_000_000


class Bench:
    """The realms, made when they are first asked for, and the results so far."""

    def __init__(self, work, arguments, security, say):
        """`arguments`: bench_storm's. `security`: our servers'."""
        self.work, self.security, self.say = work, security, say
        self.users, self.seconds, self.grow = arguments.users, arguments.seconds, arguments.grow
        self.repetitions, self.enctype = arguments.repetitions, arguments.enctype
        self.short = min(10.0, max(1.0, self.seconds / 6))
        self.quick = max(1.0, self.short / 3)
        self.results = {}
        self.in_flight = {}
        self._labs = {}

    def lab(self, name):
        """One realm runs at a time: the other one's processes would be in its way."""
        for other, lab in self._labs.items():
            if other != name and lab.live.kdc.is_running():
                lab.stop()
        if name not in self._labs:
            self._labs[name] = self._make(name)
        elif not self._labs[name].live.kdc.is_running():
            self._labs[name].restart()
        return self._labs[name]

    def _make(self, name):
        if name == 'stock':
            return storm_realms.make_stock(self.work, self.users, self.say,
                                           storm_realms.stock_enctype(self.enctype))
        return storm_realms.make_ours(self.work, self.users, self.say, self.enctype, self.security)

    def close(self):
        for lab in self._labs.values():
            lab.stop()

    def best(self, name):
        """In-flight at which a KDC answers most one-step logins; found once."""
        if name not in self.in_flight:
            lab = self.lab(name)
            candidates = STOCK_IN_FLIGHT if name == 'stock' else OUR_IN_FLIGHT
            candidates = [n for n in candidates if n <= self.users] or [self.users]
            self.in_flight[name], self.results.setdefault('in_flight', {})[name] = (
                storm_runs.best_in_flight(lab, storm_runs.target(lab), candidates, self.quick))
        return self.in_flight[name]

    def run(self, name, *arguments, seconds=None, **options):
        """login-storm's report of one run at this realm's KDC."""
        lab = self.lab(name)
        return storm_runs.run(lab, [*storm_runs.target(lab), *arguments], seconds or self.short,
                              **options)

    def once(self, name, key, *arguments, seconds=None, check=storm_runs.SAMPLE, **more):
        """One run's figures are the result `key`, together with `more`."""
        report = self.run(name, *arguments, seconds=seconds, check=check)
        self.results[key] = {**storm_runs.figures(report), **more}

    def closed(self, name, *more, times=None, share=1):
        """Closed loop at the best in-flight, or `share` times as many."""
        number = share * self.best(name)
        lab = self.lab(name)
        result = storm_runs.repeated(
            lab, [*storm_runs.target(lab), '--in-flight', number, *more], self.short,
            times or self.repetitions)
        return {**result, 'in_flight': number}

    def peak(self):
        """What our KDC carries at saturation."""
        return self.results.get('ours one-step') or self.closed('ours', times=1)


def jobs(bench):
    """The three servers without a KDC."""
    lab = bench.lab('ours')
    head = storm_runs.jobs_target(lab)
    best, tried = storm_runs.best_in_flight(lab, head, JOBS_IN_FLIGHT, bench.quick)
    result = storm_runs.repeated(lab, [*head, '--in-flight', best], bench.short, bench.repetitions)
    bench.results['jobs'] = {**result, 'in_flight': best, 'tried': tried}


def saturation(kind, *arguments, names=('stock', 'ours')):
    """Closed loop, as many in flight as carry most one-step logins."""
    def measure(bench):
        for name in names:
            bench.results[f'{name} {kind}'] = bench.closed(name, *arguments)
    return measure


def open_loop(bench):
    for name in ('stock', 'ours'):
        bench.once(name, f'{name} open loop', '--rate', OPEN_RATE)


def in_flight(**numbers):
    """Ours with these numbers of logins in flight, or as many as there are users."""
    def measure(bench):
        for key, number in numbers.items():
            number = min(number, bench.users)
            bench.once('ours', f'ours {key}', '--in-flight', number, in_flight=number)
    return measure


@contextlib.contextmanager
def changed(lab, **options):
    """The realm with other options, and as it was again."""
    before = lab.restart(**options)
    try:
        yield lab
    finally:
        lab.restart(**before)


def window(bench):
    """A batch every 100 ms, as in the paper: open loop, for a closed one would wait in step."""
    with changed(bench.lab('ours'), batch_mode='fixed', batch_window_ms=100):
        bench.once('ours', 'ours window 100 ms', '--rate', OPEN_RATE)


def knee(bench):
    """A ramp to beyond what the closed loop gave; then 80 % of the knee for the whole time."""
    steps = 8
    high = max(100, 1.1 * bench.peak()['logins_per_s'])
    ramp = bench.run('ours', '--rate', round(high / steps), '--ramp', round(high), '--ramp-steps',
                     steps, seconds=bench.quick)
    found = ramp.get('knee_per_s') or 0.0
    bench.results['ours ramp'] = {'knee_per_s': found, 'steps': ramp.get('ramp', [])}
    rate = max(1, math.floor(0.8 * found))
    bench.once('ours', 'ours 80 % of the knee', '--rate', rate, seconds=bench.seconds,
               check='100%', rate=rate)
    bench.results['ours 80 % of the knee']['seconds'] = bench.seconds


def overload(bench):
    """Three times as much as is carried: most is turned away, memory stays, and then it is over."""
    peak = bench.peak()
    lab = bench.lab('ours')
    rate = round(3 * peak['logins_per_s'])
    before = resident(lab)
    storm = bench.run('ours', '--rate', rate, warm_up=0)
    after = bench.run('ours', '--in-flight', bench.best('ours'), seconds=bench.quick)
    bench.results['ours overload'] = {
        **storm_runs.figures(storm), 'rate': rate, 'memory_before_mib': before,
        'memory_after_mib': resident(lab),
        'recovered_logins_per_s': after['logins']['ok_per_s'],
        'recovered_failed': after['logins']['failed'],
        'expected_logins_per_s': peak['logins_per_s']}


def resident(lab):
    total = {}
    for name, pid in lab.pids():
        total[name] = total.get(name, 0.0) + memory(pid).get('VmRSS', 0) / 1024
    return total


def lockout(bench):
    """Lockout on, at saturation, users whose policy locks after three failures: nobody may be."""
    lab = bench.lab('ours')
    live = lab.live
    users = min(LOCKOUT_USERS, lab.users)
    live.kadmin_local(f'addpol -maxfailure {LOCKOUT_FAILURES} storm', check=False)
    live.run('kadmin.local', stdin=''.join(
        f'modprinc -policy storm {many_users.user_name(i)}\n' for i in range(users)))
    database = {key: value for key, value in live.options.extra_database.items()
                if key != 'disable_lockout'}
    with changed(lab, extra_database=database):
        report = bench.run('ours', '--in-flight', min(bench.best('ours'), 4 * users), '--number',
                           users)  # the keytab's first
        text = live.run('kadmin.local', stdin=''.join(
            f'getprinc {many_users.user_name(i)}\n' for i in range(users))).stdout
    counted = [int(line.rsplit(':', 1)[1]) for line in text.splitlines()
               if line.startswith('Failed password attempts')]
    bench.results['ours lockout on'] = {
        **storm_runs.figures(report), 'users': len(counted), 'failures_counted': sum(counted),
        'locked_out': sum(1 for count in counted if count >= LOCKOUT_FAILURES)}


def scale(bench):
    """Worker processes, and a second KDC process on the same servers."""
    for name in ('ours', 'stock') if bench.results.get('stock one-step') else ('ours',):
        with changed(bench.lab(name), workers=2):
            bench.results[f'{name} -w 2'] = bench.closed(name, times=1, share=2)
    bench.results['ours two KDCs'] = two_kdcs(bench)


def two_kdcs(bench):
    """Half of the in-flight to each of two krb5kdc with one database and the same servers; the sum
    of what they carried."""
    number = bench.best('ours')
    lab = bench.lab('ours')
    live = lab.live
    port = daemon.free_ports(1)[0]
    folder = live.dir / 'kdc-second'
    folder.mkdir(exist_ok=True)
    config_files.replace(live.kdc_dir / 'kdc.conf', f':{live.ports.kdc}\n', f':{port}\n',
                         into=folder / 'kdc.conf')

    def storm(where):
        return storm_runs.figures(storm_runs.run(
            lab, ['--kdc', f'127.0.0.1:{where}', '--enctype', lab.enctype, '--in-flight', number],
            bench.short, name=f'report-{where}'))
    second = daemon.Daemon('krb5kdc-second', live._kdc_command(),
                           {**live.env, 'KRB5_KDC_PROFILE': str(folder / 'kdc.conf')},
                           live.run_dir, live.log_dir)
    second.start()
    try:
        live._wait_for_port(second, port)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            runs = list(pool.map(storm, (live.ports.kdc, port)))
    finally:
        second.stop()
    return {**{what: sum(run[what] for run in runs) for what in ('logins_per_s', 'failed', 'lost')},
            'p99_ms': max(run['p99_ms'] or 0 for run in runs),
            'each': [run['logins_per_s'] for run in runs]}


def stores(bench):
    bench.results['stores'] = store_figures(bench.lab('ours'))


def store_figures(lab):
    """Bytes and memory per key, as the realm stands."""
    enrolled = json.loads((lab.live.dir / 'enrolled.json').read_text())
    servers = [(name, pid) for name, pid in lab.pids() if name != 'kdc']
    return {'users': lab.users, 'bytes_per_key': enrolled['bytes_per_key'],
            'anon_mib': max(memory(pid).get('RssAnon', 0) for _, pid in servers) / 1024,
            'enrol_seconds': enrolled['seconds']}


def growth(bench):
    """Logins and latency against the number of users; of GCM for both key sizes."""
    sizes = [n for n in GROWTH if n <= max(bench.users, 1000)]
    if bench.grow:
        sizes.append(GROWTH_ON_REQUEST)
    bench.close()
    both = ('aes128-gcm', 'aes256-gcm')
    bench.results['growth'] = [
        grown(bench, users, enctype)
        for enctype in (both if bench.enctype in both else (bench.enctype,)) for users in sizes
        if enctype != 'aes256-gcm' or users <= GROWTH[-1]]


def grown(bench, users, enctype):
    lab = storm_realms.make_ours(bench.work, users, bench.say, enctype, bench.security)
    try:
        number = min(bench.in_flight.get('ours', 1024), users)
        report = storm_runs.run(lab, [*storm_runs.target(lab), '--in-flight', number], bench.short)
        started = time.monotonic()
        lab.stop()
        lab.start()
        return {'users': users, 'enctype': enctype, **storm_runs.figures(report),
                'restart_s': time.monotonic() - started, **store_figures(lab)}
    finally:
        lab.stop()


MEASURES = {
    'jobs': jobs,
    'stock': saturation('one-step', names=('stock',)),
    'ours': saturation('one-step', names=('ours',)),
    'two-step': saturation('two-step', '--two-step'),
    'tgs': saturation('AS+TGS', '--tgs', 1, '--service', storm_realms.SERVICE),
    'open': open_loop,
    # One login at a time, so that nobody waits for another; and a batch of many.
    'latency': in_flight(**{'idle': 1, '500 in flight': 500}),
    'window': window,
    'knee': knee,
    'overload': overload,
    'lockout': lockout,
    'memory': in_flight(**{'4,000 in flight': 4000}),
    'scale': scale,
    'stores': stores,
    'growth': growth,
    'mixed': storm_mixed.mixed,
}

