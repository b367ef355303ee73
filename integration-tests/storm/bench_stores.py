#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the store's backend costs: a realm with LMDB and one with PostgreSQL, the same users, one
after the other on the same machine. Enrolment, bytes per key, logins at saturation.

    /usr/bin/python3 integration-tests/storm/bench_stores.py --users 20000 --seconds 8
    /usr/bin/python3 integration-tests/storm/bench_stores.py --bulk 10000000

With --bulk one party's store alone is filled, straight through ShareStore (mpc-store-bench), with
--base keys and then with as many, and asked for what batches of logins ask for: what a login costs
the store with so many principals, and the ratio.

PostgreSQL is one server for the three databases, on the same cores and disk, reached by a Unix
socket: the load that it makes is part of what is measured, a network is not."""

import argparse
import json
import pathlib
import shutil
import subprocess
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


# Millions of principals ----------------------------------------------------------------------------

BULK_BYTES_PER_KEY = 2600  # on the disk, with room for PostgreSQL's log


class LmdbStore:
    name = 'lmdb'

    def __init__(self, work):
        self.folder = work / 'store'
        self.folder.mkdir(mode=0o700)

    def arguments(self, first):
        return []

    def ready(self):
        pass

    def bytes(self):
        return (self.folder / 'shares.mdb').stat().st_blocks * 512

    def remove(self):
        shutil.rmtree(self.folder)


class PostgresStore(LmdbStore):
    name = 'postgresql'

    def __init__(self, work):
        super().__init__(work)
        self.cluster = postgres.Cluster()
        self.cluster.sql("ALTER SYSTEM SET max_wal_size = '4GB'")
        self.cluster.sql('SELECT pg_reload_conf()')
        self.cluster.sql('CREATE DATABASE bulk OWNER mpcowner')

    def arguments(self, first):
        owner = [f'--owner={self.cluster.conninfo("bulk", "mpcowner")}'] if first else []
        return [f'--connection={self.cluster.conninfo("bulk")}', *owner,
                f'--database_pid={self.cluster.server.pid()}']

    def ready(self):
        """As after its own autovacuum, and with nothing left to be written beside what is measured."""
        self.cluster.sql('VACUUM ANALYZE', 'bulk')
        self.cluster.sql('CHECKPOINT')

    def bytes(self):
        return sum(int(self.cluster.sql(f"SELECT pg_total_relation_size('mpckdc.{table}')", 'bulk'))
                   for table in ('keys', 'records'))

    def remove(self):
        self.cluster.remove()
        super().remove()


def store_bench(store, args, first, last, more):
    """What mpc-store-bench says; its progress bar goes to the terminal."""
    argv = [config_files.mpc_program('mpc-store-bench'), f'--folder={store.folder}',
            f'--from={first}', f'--to={last}', f'--batch={args.batch}',
            f'--logins={min(args.logins, last // 4)}', *store.arguments(first == 0 and more)]
    done = subprocess.run(argv, stdout=subprocess.PIPE, encoding='utf-8', check=True)
    return json.loads(done.stdout)


def say_costs(store, keys, told, size):
    parts = []
    for part, name in (('first', 'read'), ('again', 'read again'), ('claims', 'replay entry')):
        cost = told[part]
        parts.append(f'{name} {cost["wall_us"]:.1f} us ({cost["cpu_us"]:.1f} CPU'
                     + (f', {cost["database_cpu_us"]:.1f} of the database' if
                        cost['database_cpu_us'] else '') + ')')
    print(f'{store.name}, {keys} keys: {size / keys:.0f} bytes per key; a login: {"; ".join(parts)}',
          flush=True)


def bulk(store, args):
    """Fills, then measures in a new process, of which the store's own cache is empty."""
    totals = []
    for first, last in ((0, args.base), (args.base, args.bulk)):
        filled = store_bench(store, args, first, last, True)
        print(f'{store.name}: {filled["filled"]} keys in {filled["fill_s"]:.0f} s, '
              f'{filled["filled"] / filled["fill_s"]:.0f}/s', flush=True)
        store.ready()
        told = store_bench(store, args, last, last, False)
        say_costs(store, last, told, store.bytes())
        totals.append(told)
    for part, name in (('first', 'first read'), ('again', 'read again')):
        walls = [told[part]['wall_us'] + told['claims']['wall_us'] for told in totals]
        cpus = [sum(told[which][kind] for which in (part, 'claims')
                    for kind in ('cpu_us', 'database_cpu_us')) for told in totals]
        print(f'{store.name}: a login with its replay entry, {name}: at {args.bulk} keys '
              f'{walls[1] / walls[0]:.2f} of the time at {args.base}, {cpus[1] / cpus[0]:.2f} of the '
              'CPU', flush=True)


def measure_bulk(args):
    for make in (LmdbStore, PostgresStore):
        if args.backend and make.name != args.backend:
            continue
        with tempfile.TemporaryDirectory(dir=args.work or config_files.BUILD) as work:
            for folder in (work, '/tmp'):  # where PostgreSQL's files are
                free = shutil.disk_usage(folder).free
                if free < args.bulk * BULK_BYTES_PER_KEY:
                    sys.exit(f'{folder}: {free >> 30} GiB are free, {args.bulk} keys need about '
                             f'{args.bulk * BULK_BYTES_PER_KEY >> 30}: give fewer')
            store = make(pathlib.Path(work))
            try:
                bulk(store, args)
            finally:
                store.remove()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--users', type=int, default=20000)
    parser.add_argument('--seconds', type=int, default=8)
    parser.add_argument('--in-flight', type=int, nargs='+', default=[1, 64, 2048])
    parser.add_argument('--bulk', type=int, help='how many keys one store gets in bulk')
    parser.add_argument('--base', type=int, default=100000, help='how many at first')
    parser.add_argument('--logins', type=int, default=20000, help='that are measured of --bulk')
    parser.add_argument('--batch', type=int, default=256, help='logins at a time')
    parser.add_argument('--backend', choices=('lmdb', 'postgresql'), help='one of the two alone')
    parser.add_argument('--work', help='folder of the stores (build/); PostgreSQL\'s is in /tmp')
    args = parser.parse_args()
    if args.bulk:
        measure_bulk(args)
        return
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
