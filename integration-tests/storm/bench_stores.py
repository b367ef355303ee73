#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the store's backend costs: a realm with LMDB and one with PostgreSQL, the same users, one
after the other on the same machine. Enrolment, bytes per key, logins at saturation.

    /usr/bin/python3 integration-tests/storm/bench_stores.py --users 20000 --seconds 8

PostgreSQL is one server for the three databases, on the same cores and disk, reached by a Unix
socket: the load that it makes is part of what is measured, a network is not."""

import argparse
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'realm'))
# pylint: disable=wrong-import-position
import config_files
import many_users
import postgres
import realm as realm_module
import storm
import storm_realms

ENCTYPE = 'aes128-gcm'


def migrate_all(live, cluster):
    for party in range(3):
        done = postgres.migrate(live, cluster, party)
        assert done.returncode == 0, done.stderr


def store_bytes(live, cluster, party):
    if cluster is None:
        return (live.dir / f'p{party}/data/shares.mdb').stat().st_blocks * 512
    database = f'p{party}'
    tables = ('keys', 'records')
    return sum(int(cluster.sql(f"SELECT pg_total_relation_size('mpckdc.{table}')", database))
               for table in tables)


def measure(name, live, cluster, args):
    live.create((lambda: migrate_all(live, cluster)) if cluster else (lambda: None))
    keytab = live.dir / 'users.keytab'
    many_users.write_keytab(keytab, live.name, args.users,
                            enctype=many_users.KEYTAB_NUMBERS[ENCTYPE])
    started = time.monotonic()
    live.admin('enroll', '--all', '--keytab', keytab, '--enctype', ENCTYPE, timeout=4 * 3600)
    enrolled = time.monotonic() - started
    size = max(store_bytes(live, cluster, party) for party in range(3)) / args.users
    print(f'{name}: {args.users / enrolled:.0f} users/s enrolled, {size:.0f} bytes per key',
          flush=True)
    for in_flight in args.in_flight:
        report = storm.logins(live, '--keytab', keytab, '--enctype', ENCTYPE, '--in-flight',
                              in_flight, '--duration', f'{args.seconds}s', '--warm-up', '2s',
                              '--check', '0.01', status=None).report
        latency = report['latency_ms']['login']
        print(f'{name}: {in_flight} in flight: {report["logins"]["ok_per_s"]:.0f} logins/s, '
              f'p50 {latency["p50"]:.1f} ms, p99 {latency["p99"]:.1f} ms, '
              f'lost {report["logins"]["lost"]}, failed {report["logins"]["failed"]}', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--users', type=int, default=20000)
    parser.add_argument('--seconds', type=int, default=8)
    parser.add_argument('--in-flight', type=int, nargs='+', default=[1, 64, 2048])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=config_files.BUILD) as work:
        options = storm_realms.options_for(ENCTYPE, ours=True)
        with realm_module.Realm(pathlib.Path(work) / 'lmdb', options) as live:
            measure('lmdb', live, None, args)
        cluster = postgres.Cluster()
        try:
            options = storm_realms.options_for(ENCTYPE, ours=True, databases=cluster.databases())
            with realm_module.Realm(pathlib.Path(work) / 'postgresql', options) as live:
                measure('postgresql', live, cluster, args)
        finally:
            cluster.remove()


if __name__ == '__main__':
    main()
