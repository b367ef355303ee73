# SPDX-License-Identifier: Apache-2.0
"""A stranger's garbage fills no audit log, and hides nothing in it."""

import functools
import json

import pytest

import audit_test
import datagrams
import realm as realm_module

PASSWORD = 'a password'
PER_SECOND = 400
WANTED = 1000      # refused jobs
LINE_BYTES = 780   # that each of them was
MOST_LOGINS = 200  # of bob's meanwhile


@pytest.fixture(scope='module')
def live(tmp_path_factory):
    # Tokens come back too slowly for the flood.
    quota = {'principal_failures': '1/min burst 5', 'known_failures': '1/min burst 3'}
    with realm_module.Realm(tmp_path_factory.mktemp('flood') / 'realm',
                            realm_module.Options(quota=quota)) as made:
        made.create()
        for name in ('alice', 'bob'):
            made.enroll(name, PASSWORD)
        yield made


def jobs_in(log):
    """How many were counted, and the verdicts of those that were written down."""
    lines = [json.loads(line) for line in audit_test.lines_of(log)]
    counted = sum(kind['count'] for line in lines for kind in line.get('counted', []))
    return counted, [job['verdict'] for line in lines for job in line.get('jobs', [])]


def test_a_flood_is_a_few_lines(live):
    logs = [live.log_dir / f'p{party}-audit.jsonl' for party in range(3)]
    before = [log.stat().st_size for log in logs]
    logins = 0
    garbage = functools.partial(datagrams.garbage_login, live.name, 'alice', 300)
    with datagrams.flood(live.ports.kdc, [garbage], PER_SECOND) as sent:
        while jobs_in(logs[0])[0] < WANTED:
            assert logins < MOST_LOGINS, f'nothing is counted of {sent[0]} datagrams'
            live.kinit('bob', PASSWORD)
            logins += 1
    live.stop_kdc()
    for server in live.servers:  # a stopped server's log is complete
        server.stop()
    for log, size in zip(logs, before):
        counted, verdicts = jobs_in(log)
        grown = log.stat().st_size - size
        print(f'{log.name}: {sent[0]} datagrams, {counted} counted, {grown} bytes')
        assert counted >= WANTED
        assert verdicts.count('BAD_TAG') >= 5, 'guesses that were computed'
        assert verdicts.count('OK') >= logins, 'what was granted'
        assert grown < counted * LINE_BYTES / 4
    status, found = audit_test.reconcile(*logs)
    assert status == 0 and found['clean'], found
    shown = json.loads(audit_test.audit('show', '--json', logs[1]).stdout)
    assert [act for act in shown if act['verdict'] == 'QUOTA' and ' more since ' in act['detail']]
