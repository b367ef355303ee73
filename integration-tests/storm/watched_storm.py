#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`make dashboard`: a realm under a storm, as deploy/monitoring shows it.

    watched_storm.py [--users N] [--seconds S] [--work FOLDER] [--out FILE]

Three servers, krb5kdc with two workers, Debian's Prometheus and node_exporter, and login-storm: a quarter of
what this machine carries, then as much as it does, a refresh of the shares, a server that is away for ten
seconds. Then the dashboard's panels are drawn from what Prometheus has (draw_dashboard.py), and the alerts
that fired are printed."""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'realm'))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'deploy/monitoring'))
# pylint: disable=wrong-import-position
import config_files
import daemon
import draw_dashboard
import many_users
import prometheus
import realm as realm_module
import steady_load
import storm
import storm_realms
import storm_runs

ENCTYPE = 'aes256-gcm'
OTHERS = 50         # users with keys of 18, of stock clients
OTHERS_RATE = 5     # their logins a second
IN_FLIGHT = 200     # at saturation
FIRST_RATE = 300    # logins a second of the calm part
AWAY = 10           # seconds
WORKERS = 2


def fill(live, users):
    for name, count, first, enctype in (('users', users, 0, ENCTYPE), ('others', OTHERS, users, 'aes256-cts')):
        keytab = many_users.write_keytab(live.dir / f'{name}.keytab', live.name, count, first=first,
                                         enctype=many_users.KEYTAB_NUMBERS[enctype])
        live.admin('enroll', '--all', '--keytab', keytab, '--enctype', enctype, timeout=storm_realms.MANY)


def saturate(live, seconds):
    """As many logins as the realm carries."""
    subprocess.run([storm.program(), '--kdc', f'127.0.0.1:{live.ports.kdc}', '--realm', live.name, '--keytab',
                    live.dir / 'users.keytab', '--enctype', ENCTYPE, '--in-flight', str(IN_FLIGHT), '--duration',
                    f'{seconds}s'], env=live.env, stdout=subprocess.DEVNULL, check=True)


def run(live, out, seconds):
    """(text, begin, end) of each part."""
    parts = []

    def part(text, what):
        print(text, flush=True)
        begin = time.time()
        what()
        parts.append((text, begin, time.time()))

    def away():
        live.servers[2].stop()
        time.sleep(AWAY)
        live.servers[2].start()
        assert daemon.wait_until(live.servers_connected, 60)
        time.sleep(AWAY)
    with steady_load.SteadyLoad(live, out, ENCTYPE, FIRST_RATE), \
            steady_load.SteadyLoad(live, out / 'others', 'aes256-cts', OTHERS_RATE, keytab='others.keytab'):
        part(f'{FIRST_RATE} logins/s, and {OTHERS_RATE} of stock clients', lambda: time.sleep(seconds))
        part('as many as there is room for', lambda: saturate(live, seconds))
        part('a refresh of the shares', lambda: (live.admin('refresh'), time.sleep(seconds / 2)))
        part(f'a server is away for {AWAY} s', away)
    return parts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--users', type=int, default=5000)
    parser.add_argument('--seconds', type=float, default=40, help='of each part (40)')
    parser.add_argument('--work', default='/var/tmp', help='where the realm is made')
    parser.add_argument('--out', default=str(config_files.BUILD / 'dashboard.png'))
    args = parser.parse_args()
    machine = storm_runs.machine()
    with tempfile.TemporaryDirectory(dir=args.work) as work:
        folder = pathlib.Path(work)
        (folder / 'textfile').mkdir()
        (folder / 'others').mkdir()
        options = storm_realms.options_for(ENCTYPE, ours=True, metrics=tuple(daemon.free_ports(3)), workers=WORKERS)
        options.extra_realm['supported_enctypes'] = f'{ENCTYPE}:normal aes256-cts:normal'
        options.extra_database['mpc_metrics_file'] = folder / 'textfile/mpc-kdc.prom'
        with realm_module.Realm(folder / 'realm', options) as live:
            live.create()
            fill(live, args.users)
            with prometheus.NodeExporter(options.extra_database['mpc_metrics_file'], folder) as kdc, \
                    prometheus.Prometheus(live, kdc.address, folder / 'prometheus') as watcher:
                begin = time.time()
                parts = run(live, folder, args.seconds)
                end = time.time()
                title = (f'{args.users:,} users, {machine["cores"]} cores of {machine["cpu"]}, load '
                         f'{machine["load_before"]:.1f} before, commit {machine["commit"]}\n'
                         + '; '.join(text for text, _, _ in parts))
                source = draw_dashboard.Source(watcher.url, live.name, prometheus.INTERVAL)
                shown, panels = draw_dashboard.draw(source, begin, end, title, args.out)
                fired = {tuple(sorted(series['metric'].items())) for series in watcher.get(
                    'query_range', query='ALERTS{alertstate="firing"}', start=begin, end=end, step=1)['result']}
    print(f'{args.out}: {shown} of {panels} panels show something')
    print('alerts that fired:', ', '.join(sorted({dict(labels)['alertname'] for labels in fired})) or 'none')


if __name__ == '__main__':
    main()
