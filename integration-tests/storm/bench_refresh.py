#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a refresh of the shares and the rebuilding of a lost party cost: users' keys per second, and the
longest moment in which no login was answered, under a steady stream of logins.

    /usr/bin/python3 integration-tests/storm/bench_refresh.py --users 20000 --rate 300

The three servers, the KDC and the clients share this machine's cores and disk."""

import argparse
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'realm'))
# pylint: disable=wrong-import-position
import daemon
import many_users
import realm as realm_module
import storm
import storm_realms

ENCTYPE = 'aes128-gcm'


def settled(live):
    return daemon.wait_until(
        lambda: not any(status.get('refreshing') or status.get('receiving')
                        for status in live.server_status()), 3600, 0.2)


class Load:
    """Logins at a steady rate beside what is measured."""

    def __init__(self, live, keytab, rate, seconds):
        self.report = None
        self._thread = threading.Thread(target=self._run, args=(live, keytab, rate, seconds))

    def _run(self, live, keytab, rate, seconds):
        storm.PATIENCE = seconds + 60
        self.report = storm.logins(live, '--keytab', keytab, '--enctype', ENCTYPE, '--rate', rate,
                                   '--duration', f'{seconds}s', status=None).report

    def __enter__(self):
        self._thread.start()
        time.sleep(2)
        return self

    def __exit__(self, *_):
        self._thread.join()


def show(name, keys, seconds, report):
    line = f'{name}: {keys} keys of each server in {seconds:.1f} s, {keys / seconds:.0f}/s'
    if report:
        counts, latency = report['logins'], report['latency_ms']['login']
        line += (f"; of {counts['started']} logins {counts['ok']} good, p50 {latency['p50']:.1f} ms, "
                 f"p99 {latency['p99']:.0f} ms, longest {latency['max']:.0f} ms")
    print(line, flush=True)


def measure_refresh(live, keytab, args, load):
    epoch = live.server_status()[0]['epoch']

    def refresh():
        started = time.monotonic()
        live.admin('refresh', '--no-wait')
        entered = time.monotonic() - started
        assert settled(live)
        return entered, time.monotonic() - started

    if not load:
        entered, seconds = refresh()
        show(f'refresh, nothing else (entered after {entered * 1000:.0f} ms)',
             live.server_status()[0]['refresh_to_write'], seconds, None)
    else:
        with Load(live, keytab, args.rate, args.seconds) as beside:
            entered, seconds = refresh()
        show(f'refresh beside {args.rate} logins/s (entered after {entered * 1000:.0f} ms)',
             live.server_status()[0]['refresh_to_write'], seconds, beside.report)
    assert live.server_status()[0]['epoch'] == epoch + 1


def measure_replace(live, party):
    assert settled(live)
    live.servers[party].stop()
    shutil.rmtree(live.dir / f'p{party}/data')
    (live.dir / f'p{party}/data').mkdir(mode=0o700)
    (live.dir / f'p{party}/store.key').unlink()
    live.servers[party].start()
    assert daemon.wait_until(lambda: live.servers[party].listens_on(live.ports.clients[party]), 30)
    started = time.monotonic()
    live.admin('replace-party', party, '--no-wait')
    assert daemon.wait_until(lambda: not live.server_status()[party].get('receiving', True), 3600, 0.2)
    show('a lost party receives', live.server_status()[party]['keys'], time.monotonic() - started, None)
    assert settled(live)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n', maxsplit=1)[0])
    parser.add_argument('--users', type=int, default=20000)
    parser.add_argument('--rate', type=int, default=300, help='logins a second beside a refresh')
    parser.add_argument('--seconds', type=int, default=30)
    args = parser.parse_args()
    commit = subprocess.run(['git', 'rev-parse', '--short', 'HEAD'], stdout=subprocess.PIPE,
                            encoding='ascii', check=False).stdout.strip()
    print(f'{platform.processor() or platform.machine()}, {os.cpu_count()} cores, commit {commit}, '
          f'{args.users} users of {ENCTYPE}', flush=True)
    with tempfile.TemporaryDirectory(dir='/var/tmp') as work:
        options = storm_realms.options_for(ENCTYPE, ours=True)
        with realm_module.Realm(pathlib.Path(work) / 'realm', options) as live:
            live.create()
            keytab = live.dir / 'users.keytab'
            many_users.write_keytab(keytab, live.name, args.users,
                                    enctype=many_users.KEYTAB_NUMBERS[ENCTYPE])
            live.admin('enroll', '--all', '--keytab', keytab, '--enctype', ENCTYPE,
                       timeout=4 * 3600)
            measure_refresh(live, keytab, args, load=False)
            measure_refresh(live, keytab, args, load=True)
            measure_replace(live, 1)


if __name__ == '__main__':
    main()
