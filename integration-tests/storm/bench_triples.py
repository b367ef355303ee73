#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a second triple is worth: logins per second at saturation with one and with two, when the
three servers of each have a fixed part of the processors (a quota, as root), and the databases,
krb5kdc and the clients have the rest.

    /usr/bin/python3 integration-tests/storm/bench_triples.py --cores 0.3 --seconds 10

Each party's database is a PostgreSQL server of its own, which both its machines share: what it
takes is not part of the quota."""

import argparse
import contextlib
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'realm'))
# pylint: disable=wrong-import-position
import config_files
import many_users
import postgres
import storm
import storm_realms
import triples
from cpu_share import CpuShare

ENCTYPE = 'aes128-gcm'


def enrolled(live, users):
    keytab = live.dir / 'users.keytab'
    many_users.write_keytab(keytab, live.name, users, enctype=many_users.KEYTAB_NUMBERS[ENCTYPE])
    live.admin('enroll', '--all', '--keytab', keytab, '--enctype', ENCTYPE, timeout=3600)
    return keytab


def saturate(live, keytab, args, name):
    """Logins per second; each triple that is up has its quota."""
    with contextlib.ExitStack() as stack:
        shares = []
        for triple in range(2):
            pids = [server.pid() for server in live.servers[3 * triple:][:3]]
            if all(pids):
                shares.append(stack.enter_context(CpuShare(f't{triple}', args.cores, pids)))
        report = storm.logins(live, '--keytab', keytab, '--enctype', ENCTYPE, '--in-flight',
                              args.in_flight, '--duration', f'{args.seconds}s', '--warm-up', '3s',
                              '--check', '0.01', '--pid', f'kdc={live.kdc.pid()}',
                              status=None).report
        used = [throttled / max(periods, 1) for periods, throttled in
                (share.throttled() for share in shares)]
    counts, latency = report['logins'], report['latency_ms']['login']
    limits = ', '.join(f'{part:.0%}' for part in used)
    print(f'{name}: {counts["ok_per_s"]:.0f} logins/s, p50 {latency["p50"]:.0f} ms, p99 '
          f'{latency["p99"]:.0f} ms, failed {counts["failed"]}, lost {counts["lost"]}; at the quota in '
          f'{limits} of the periods', flush=True)
    return counts['ok_per_s']


def measure(live, args):
    keytab = enrolled(live, args.users)
    ratios = []
    for run in range(args.runs):
        for server in live.servers[3:]:
            server.stop()
        triples.wait_until_healthy(live, (True, False))
        one = saturate(live, keytab, args, f'run {run}, one triple')
        for server in live.servers[3:]:
            server.start()
        triples.wait_until_healthy(live)
        live.kinit('user000000', 'none', check=False)  # krb5kdc connects again at the next login
        both = saturate(live, keytab, args, f'run {run}, two triples')
        ratios.append(both / one)
        print(f'run {run}: {ratios[-1]:.2f} times', flush=True)
    print(f'two triples, median of {len(ratios)}: {sorted(ratios)[len(ratios) // 2]:.2f} times one')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--cores', type=float, default=0.3, help='of each triple\'s three servers')
    parser.add_argument('--users', type=int, default=1000)
    parser.add_argument('--seconds', type=int, default=10)
    parser.add_argument('--in-flight', type=int, default=256)
    parser.add_argument('--runs', type=int, default=3)
    args = parser.parse_args()
    options = storm_realms.options_for(ENCTYPE, ours=True)
    parties = postgres.Parties()
    try:
        with tempfile.TemporaryDirectory(dir=config_files.BUILD) as work:
            with triples.two_triples(pathlib.Path(work) / 'realm', parties, options) as live:
                measure(live, args)
    finally:
        parties.remove()


if __name__ == '__main__':
    main()
