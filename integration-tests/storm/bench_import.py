#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How many principals a second `mpc-admin import-realm` moves: a stock db2 realm with keys of 18
and 17 becomes ours in place, everything on this machine.

    bench_import.py --users 100000 --types aes256-gcm,aes256-cts

Users have the same two stored keys each (a dump's line, repeated), which are decrypted and split
for each of them all the same.
"""

import argparse
import json
import pathlib
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'realm'))

import realm as realm_module  # noqa: E402
from many_users import user_name  # noqa: E402
from old_realm import OldRealm  # noqa: E402

FIRST = user_name(0)
PASSWORD = 'everybody has this one'


def fill(old, users):
    """The stock database, with that many users."""
    old.run('kdb5_util', 'create', '-s', '-P', old.master)
    old.local(f'addprinc -e aes256-cts:normal,aes128-cts:normal -pw "{PASSWORD}" {FIRST}')
    dump, full = old.folder / 'one.dump', old.folder / 'all.dump'
    old.run('kdb5_util', 'dump', dump)
    with open(full, 'w') as out:
        for line in dump.read_text().splitlines(keepends=True):
            mine = f'\t{FIRST}@' in line
            for number in range(users if mine else 1):
                out.write(line.replace(f'\t{FIRST}@', f'\t{user_name(number)}@') if mine else line)
    old.run('kdb5_util', 'load', full, timeout=600)


def measure(folder, users, types):
    keysalts = ' '.join(f'{name}:normal' for name in types)
    options = realm_module.Options(extra_realm={'supported_enctypes': keysalts})
    with realm_module.Realm(pathlib.Path(folder) / 'realm', options) as live:
        live.write_files()
        old = OldRealm(live)
        fill(old, users)
        live.start_servers()
        live.admin('init-realm')
        source = ('import-realm', '--source', old.profile, '--json')
        begun = time.monotonic()
        scan = json.loads(live.admin(*source, '--dry-run', timeout=600).stdout)
        scanned = time.monotonic()
        report = json.loads(live.admin(*source, timeout=1800).stdout)
        ended = time.monotonic()
        assert scan['to_import'] == report['imported'] == users, report
        live.start_kdc()
        # Salts are those of the first user, so the others have another password; one is enough.
        live.kinit(FIRST, PASSWORD)
        committed = time.monotonic()
        live.admin(*source, '--commit', '--yes', timeout=1800)
        live.admin('status')
        return {'users': users, 'types': types, 'scan_s': round(scanned - begun, 1),
                'import_s': round(ended - scanned, 1),
                'per_second': round(users / (ended - scanned)),
                'commit_s': round(time.monotonic() - committed, 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--users', type=int, default=100000)
    parser.add_argument('--types', default='aes256-gcm,aes256-cts')
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix='mpckdc-import-') as folder:
        print(json.dumps(measure(folder, arguments.users, arguments.types.split(','))), flush=True)


if __name__ == '__main__':
    main()
