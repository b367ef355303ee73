#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a refresh of the shares and the rebuilding of a lost party cost: users' keys per second, and
what a steady stream of logins sees of it.

    /usr/bin/python3 integration-tests/storm/bench_refresh.py --users 20000 --rate 300
    /usr/bin/python3 integration-tests/storm/bench_refresh.py --users 1000000 --rate 500

The three servers, the KDC and the clients share this machine's cores and disk."""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'realm'))
# pylint: disable=wrong-import-position
import config_files
import daemon
import many_users
import realm as realm_module
import soak_samples
import soak_verdict
import steady_load
import storm_realms
import storm_runs

ENCTYPE = 'aes128-gcm'
PATIENCE = 4 * 3600  # seconds
BEFORE = 5           # of logins, before something is begun beside them
CONTROL = 60         # of logins with nothing beside them, for what the machine does to these
WELL = 0.99          # of a second's logins: the party is back for who uses it


def pending(live):
    """Whether each server still writes or receives; a server that does not answer does."""
    return [status.get('refreshing', True) or status.get('receiving', True)
            for status in live.server_status()]


def settled(live, begun=None, show=None):
    """When nothing is pending, seconds since `begun`. On a terminal show(status) meanwhile."""
    def well():
        if show and sys.stderr.isatty():
            print(f'\r\033[K{show(live.server_status())}', end='', file=sys.stderr, flush=True)
        return not any(pending(live))
    good = daemon.wait_until(well, PATIENCE, 0.2)
    if show and sys.stderr.isatty():
        print('\r\033[K', end='', file=sys.stderr)
    assert good, 'the servers do not settle'
    return time.monotonic() - (begun or 0)


def enroll(live, keytab):
    """With mpc-admin's own progress bar, which it shows on a terminal."""
    begun = time.monotonic()
    subprocess.run([config_files.mpc_program('mpc-admin'), '--config', live.dir / 'admin/admin.toml',
                    'enroll', '--all', '--keytab', keytab, '--enctype', ENCTYPE], env=live.env,
                   stdout=subprocess.DEVNULL, check=True, timeout=PATIENCE)
    return time.monotonic() - begun


# What logins saw ----------------------------------------------------------------------------------

def seen(log, since, until):
    """Of logins that were due then: counts, latencies, the longest time without a good one."""
    found = soak_verdict.Logins([])
    ms = []
    for login in soak_samples.read_logins(log):
        if not since <= login.due < until:
            continue
        found.add(login)
        if login.outcome == 'ok':
            ms.append(1000 * (login.end - login.due))
    ms.sort()
    silent = f', {found.silence_at - since:.1f} s from its beginning' if found.silence_at else ''
    return (f'of {found.begun} logins {found.ok} good, p50 {number(soak_samples.percentile(ms, 50))}, '
            f'p99 {number(soak_samples.percentile(ms, 99))}, longest {number(max(ms, default=None))}, '
            f'longest silence {1000 * found.silence_s:.0f} ms{silent}')


def number(ms):
    return '-' if ms is None else f'{ms:.1f} ms'


def recovery(logins, since):
    """(seconds until the first good login after `since`, seconds from which on WELL of each second's
    logins were good): None where that did not come."""
    first, seconds = None, {}
    for login in logins:
        if login.due < since:
            continue
        good = login.outcome == 'ok'
        if good and (first is None or login.end - since < first):
            first = login.end - since
        counts = seconds.setdefault(int(login.due - since), [0, 0])
        counts[0] += good
        counts[1] += 1
    well = None
    for second in sorted(seconds):
        good, all_of_it = seconds[second]
        if good < WELL * all_of_it:
            well = None
        elif well is None:
            well = second
    return first, well


def peaks_text(peaks):
    return 'memory at most ' + ', '.join(
        f'{name} {peaks[name]:.0f} MiB' for name in ('p0', 'p1', 'p2') if name in peaks)


def processes(live):
    return [(server.name, server.pid()) for server in live.servers]


# What is measured ---------------------------------------------------------------------------------

def say(text):
    print(text, flush=True)


def rate_of(keys, seconds):
    return f'{keys} keys of each server in {seconds:.1f} s, {keys / seconds:.0f}/s'


def refresh(live):
    """(seconds until the next epoch began, seconds until its records are written)."""
    epoch = live.server_status()[0]['epoch']
    begun = time.monotonic()
    live.admin('refresh', '--no-wait')
    entered = time.monotonic() - begun
    written = settled(live, begun, lambda all_of: 'written: ' + ', '.join(
        str(status.get('refresh_written', '?')) for status in all_of))
    assert live.server_status()[0]['epoch'] == epoch + 1
    return entered, written


def measure_refresh(live, out, args, beside):
    with storm_runs.memory_peaks(processes(live), every=1) as peaks:
        if not beside:
            entered, seconds = refresh(live)
            logins = ''
        else:
            with steady_load.SteadyLoad(live, out, ENCTYPE, args.rate) as load:
                time.sleep(BEFORE)
                alone = time.time()
                time.sleep(CONTROL)
                since = time.time()
                entered, seconds = refresh(live)
                until = time.time()
            say(f'{args.rate} logins/s alone: {seen(load.log, alone, since)}')
            logins = '; ' + seen(load.log, since, until)
    name = f'refresh beside {args.rate} logins/s' if beside else 'refresh, nothing else'
    keys = live.server_status()[0]['refresh_to_write']
    say(f'{name} (entered after {entered * 1000:.0f} ms): {rate_of(keys, seconds)}{logins}; '
        f'{peaks_text(peaks)}')


def measure_replace(live, out, args, party):
    """`--active` users log in before and all the while: theirs are the keys that were used last."""
    settled(live)
    active = min(args.active, args.users)
    with steady_load.SteadyLoad(live, out, ENCTYPE, args.rate, number=active) as load:
        time.sleep(max(BEFORE, active / args.rate))  # each of them once
        live.lose_disk(party)
        with storm_runs.memory_peaks(processes(live), every=1) as peaks:
            begun, since = time.monotonic(), time.time()
            live.admin('replace-party', party, '--no-wait')
            assert daemon.wait_until(
                lambda: not live.server_status()[party].get('receiving', True), PATIENCE, 0.2)
            seconds = time.monotonic() - begun
            keys = live.server_status()[party]['keys']
            settled(live)
        time.sleep(BEFORE)
    first, well = recovery(soak_samples.read_logins(load.log), since)
    text = [f'first login good {first:.1f} s after replace-party' if first is not None
            else 'no login was good again']
    if well is not None:
        text.append(f'99 % of the logins of the {active} users of before from {well} s on')
    say(f'a lost party receives beside {args.rate} logins/s: {rate_of(keys, seconds)}; '
        f'{"; ".join(text)}; {peaks_text(peaks)}')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n', maxsplit=1)[0])
    parser.add_argument('--users', type=int, default=20000)
    parser.add_argument('--rate', type=int, default=300, help='logins a second beside it')
    parser.add_argument('--active', type=int, default=5000,
                        help='users who log in beside a replaced party')
    parser.add_argument('--work', default='/var/tmp', help='where the realm is made')
    args = parser.parse_args()
    storm_realms.check_space(args.work, args.users)
    machine = storm_runs.machine()
    say(f'{machine["cpu"]}, {machine["cores"]} cores, load {machine["load_before"]:.1f} before, '
        f'commit {machine["commit"]}, {args.users} users of {ENCTYPE}')
    with tempfile.TemporaryDirectory(dir=args.work) as work:
        options = storm_realms.options_for(ENCTYPE, ours=True)
        with realm_module.Realm(pathlib.Path(work) / 'realm', options) as live:
            live.create()
            keytab = many_users.write_keytab(live.dir / 'users.keytab', live.name, args.users,
                                             enctype=many_users.KEYTAB_NUMBERS[ENCTYPE])
            seconds = enroll(live, keytab)
            say(f'enrolled in {seconds:.1f} s, {args.users / seconds:.0f} users/s')
            measure_refresh(live, pathlib.Path(work), args, beside=False)
            measure_refresh(live, pathlib.Path(work), args, beside=True)
            measure_replace(live, pathlib.Path(work), args, 1)


if __name__ == '__main__':
    main()
