# SPDX-License-Identifier: Apache-2.0
"""Runs login-storm against a realm of integration-tests/realm, and reads what it reports."""

import collections
import json
import os
import pathlib
import subprocess

import config_files

USERS = 20
PASSWORD = 'a storm of users'
SERVICE = 'host/www.example.com'
PATIENCE = 60  # seconds; every test asks for a small part of it


def user_name(number):
    return f'user{number:04d}'


def make_keytab(live, file, names, password, enctype):
    entries = ''.join(f'addent -password -p {name}@{live.name} -k 1 -e {enctype}\n{password}\n'
                      for name in names)
    live.run('ktutil', stdin=f'{entries}wkt {live.dir / file}\nq\n')
    return live.dir / file


def program():
    path = config_files.CMAKE / 'integration-tests/storm/login-storm'
    if not path.exists():
        raise FileNotFoundError(f'{path} is not built; `make build` builds it')
    return str(path)


Result = collections.namedtuple('Result', 'output errors report')


def run(realm, *arguments, prefix=(), stdin='', status=0):
    """login-storm with these arguments, which ends with `status` (None: any); a report that it
    wrote agrees with itself."""
    file = pathlib.Path(realm.dir) / 'storm.json'
    file.unlink(missing_ok=True)
    done = subprocess.run(
        [*prefix, program(), *map(str, arguments), '--realm', realm.name, '--json', file],
        env=realm.env, input=stdin, timeout=PATIENCE, capture_output=True, encoding='utf-8')
    assert status in (None, done.returncode), done.stdout + done.stderr
    report = json.loads(file.read_text()) if file.exists() else None
    if report:
        check_report(report, 'jobs' if 'jobs' in arguments else 'logins')
    return Result(done.stdout, done.stderr, report)


def logins(realm, *arguments, **options):
    """As run(), at the realm's own KDC unless the arguments name one."""
    target = [] if '--kdc' in arguments else ['--kdc', f'127.0.0.1:{realm.ports.kdc}']
    return run(realm, *target, *arguments, **options)


def jobs_target(live):
    """As the realm's KDC, to its servers."""
    ca = live.dir / 'ca'
    return ['jobs', '--servers', ','.join(f'127.0.0.1:{port}' for port in live.ports.clients),
            '--ca', ca / 'ca.pem', '--certificate', ca / 'kdc-kdc.pem', '--key',
            ca / 'kdc-kdc.key', '--handles', live.dir / 'handles.json']


def check_latency(latency):
    assert isinstance(latency['count'], int)
    if not latency['count']:
        assert set(latency) == {'count'}
        return
    names = ('p50', 'p90', 'p99', 'p99.9', 'max')
    assert set(latency) == {'count', 'mean', *names}
    rising = [latency[name] for name in names]
    assert 0 < rising[0] and rising == sorted(rising)


def check_report(report, mode):
    """The report is as login-storm(8) says, and its numbers agree with each other."""
    assert report['version'] == 1 and report['mode'] == mode
    counts = report['logins']
    ends = ['ok', 'failed', 'wrong_answers']
    if mode == 'logins':
        ends += ['refused', 'lost']
        assert set(report['latency_ms']) == {'login', 'as_first', 'as', 'tgs'}
        errors = sum(e['expected'] + e['unexpected'] for e in report['errors'].values())
        assert errors == counts['refused'] + counts['failed']
    assert counts['started'] == sum(counts[end] for end in ends), counts
    for latency in report['latency_ms'].values():
        check_latency(latency)
    assert report['latency_ms']['login']['count'] == counts['ok']
    assert sum(count for _, _, count in report['histogram_ms']) == counts['ok']
    assert all(low < high for low, high, _ in report['histogram_ms'])
    series = report['series']
    assert len(series['ok']) == len(series['other']) and series['interval_s'] == 0.25
    assert sum(series['ok']) >= counts['ok']
    assert report['seconds'] > 0
    assert isinstance(report['cpu']['seconds_per_1000_logins'], dict)
    for limit in report['limits']:
        assert set(limit) == {'limit', 'exceeded'}


def may_make_namespaces():
    return os.geteuid() == 0 and not subprocess.run(
        ['unshare', '--net', 'true'], capture_output=True).returncode
