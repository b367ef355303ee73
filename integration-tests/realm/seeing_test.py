# SPDX-License-Identifier: Apache-2.0
"""What an administrator sees of a krb5kdc with workers: one file of metrics for all of them, in which a
good login, a wrong password, an outage and who is away stand as what they are; and one name for each
request, by which krb5kdc's log, the logs of the three servers and their audit logs speak of it."""

import concurrent.futures
import functools
import json
import os
import re
import stat

import pytest

import daemon
import datagrams
import known_source_test as known
import realm as realm_module

SAMPLE = re.compile(r'^mpckdc_krb5kdc_(\w+)(?:\{(.*)\})? (\S+)$', re.M)
LABEL = re.compile(r'(\w+)="((?:[^"\\\\]|\\\\.)*)"')
NAMED = re.compile(r'\b(AS_REQ|TGS_REQ) .*: ([A-Z_]+): .*, request ([0-9a-f]{16})$', re.M)
WORKERS = 3
GCM = -24002


class Seen:
    """One reading of the file."""

    def __init__(self, text):
        self.samples = [(name, dict(LABEL.findall(labels)), float(value))
                        for name, labels, value in SAMPLE.findall(text)]

    def all(self, name, **labels):
        return {tuple(sorted(found.items())): value for each, found, value in self.samples
                if each == name and labels.items() <= found.items()}

    def sum(self, name, **labels):
        return sum(self.all(name, **labels).values())


class Watched(realm_module.Realm):
    @property
    def metrics_file(self):
        return self.options.extra_database['mpc_metrics_file']

    def see(self):
        """Nothing in the first second."""
        return Seen(self.metrics_file.read_text() if self.metrics_file.exists() else '')

    def wait_until_seen(self, condition):
        """The file is written once a second."""
        assert daemon.wait_until(lambda: condition(self.see()), 20, 0.2), self.metrics_file.read_text()
        return self.see()

    def log(self, name):
        return (self.log_dir / name).read_text(errors='replace')

    def requests(self, status):
        """The names of requests that ended so, in krb5kdc's log, oldest first."""
        return [name for _, found, name in NAMED.findall(self.log('kdc.log')) if found == status]


@pytest.fixture(scope='module')
def live(tmp_path_factory):
    folder = tmp_path_factory.mktemp('seeing')
    with Watched(folder / 'realm', realm_module.Options(
            workers=WORKERS, extra_database={'mpc_metrics_file': folder / 'kdc.prom',
                                             'mpc_timeout': '2s'})) as made:
        made.create()
        made.enroll('alice', 'secret')
        made.add_service('host/www.example.com')
        yield made


def log_in(live, number, password='secret'):
    return live.kinit('alice', password, ccache=f'cc{number}', check=False).returncode == 0


def audit_of(live, party, request):
    """That party's audit lines of jobs of the request."""
    jobs = [job for line in live.log(f'p{party}-audit.jsonl').splitlines()
            for job in json.loads(line).get('jobs', ())]
    return [job for job in jobs if job.get('request') == request]


def test_all_workers_are_one(live):
    logins = 24
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda number: log_in(live, number), range(logins)))
    live.kvno('host/www.example.com', ccache='cc0')
    seen = live.wait_until_seen(
        lambda s: s.sum('requests_total', type='as', result='ok', keys='remote') >= logins and
        s.sum('requests_total', type='tgs', result='ok', keys='remote') >= 1)
    assert seen.sum('requests_total', type='as', result='preauth_required') >= logins
    assert seen.sum('requests_total', result='wrong_password') == 0
    assert seen.sum('requests_total', result='unavailable') == 0
    # Each process has its share of them, and nothing is counted that none of them answered.
    by_process = seen.all('process_requests_total')
    assert sum(1 for count in by_process.values() if count > 0) > 1, by_process
    assert sum(by_process.values()) == seen.sum('requests_total')
    # Their parent, which has closed its databases, is none of them.
    live.wait_until_seen(lambda s: s.sum('processes') == WORKERS)
    assert seen.sum('jobs_total', operation='login', verdict='ok') >= logins
    for phase in 'gathered', 'job', 'tag', 'resumed':
        assert seen.sum('wait_seconds_count', phase=phase, enctype='aes256-gcm') >= logins
    assert seen.sum('request_seconds_count', type='as') >= 2 * logins
    for party in range(3):
        assert set(seen.all('server_up', party=f'p{party}').values()) == {1.0}
        assert 0 < min(seen.all('server_round_trip_seconds', party=f'p{party}').values()) < 1
        assert seen.sum('server_answers_total', party=f'p{party}', verdict='ok') >= logins
        assert seen.sum('server_entries_total', party=f'p{party}') >= 2 * logins
    assert min(seen.all('certificate_expires_seconds').values()) > os.stat(live.metrics_file).st_mtime


def test_the_file_tells_no_names_and_may_be_read(live):
    text = live.metrics_file.read_text()
    assert stat.S_IMODE(live.metrics_file.stat().st_mode) == 0o644
    assert live.name in text and 'alice' not in text and 'www.example' not in text
    assert not [path for path in live.metrics_file.parent.glob('*.new*')]


def test_a_login_is_named_alike_in_all_logs(live):
    before = len(live.requests('ISSUE'))
    assert log_in(live, 0)
    request = live.requests('ISSUE')[before:][0]
    for party in range(3):
        found = daemon.wait_until(lambda p=party: audit_of(live, p, request), 10, 0.1)
        assert found, party
        assert {job['verdict'] for job in audit_of(live, party, request)} == {'OK'}
        assert request not in live.log(f'p{party}.log')  # of what is well the audit log alone tells


def test_a_wrong_password(live):
    before = live.see().sum('requests_total', result='wrong_password')
    assert not log_in(live, 0, 'wrong')
    live.wait_until_seen(
        lambda s: s.sum('requests_total', type='as', result='wrong_password',
                        keys='remote') == before + 1)
    assert live.see().sum('jobs_total', operation='login', verdict='bad_tag') >= 1
    assert live.see().sum('requests_total', result='unavailable') == 0
    request = live.requests('PREAUTH_FAILED')[-1]
    assert len(set(live.requests('ISSUE') + [request])) == len(live.requests('ISSUE')) + 1
    for party in range(3):
        assert re.search(rf' request {request}: LOGIN of KDC \S+ \(job \d+\): BAD_TAG',
                         live.log(f'p{party}.log')), live.log(f'p{party}.log')[-2000:]
        assert [job['verdict'] for job in audit_of(live, party, request)] == ['BAD_TAG']


def test_a_guess_with_many_enctypes_is_named(live):
    """The line has room for 2 KiB, and begins with what the client asks for."""
    before = live.see()
    guess = datagrams.garbage_login(live.name, 'alice', 1000, GCM, unknown_enctypes=200)
    assert known.ask_by_tcp(live, guess, known.STRANGER) == known.PREAUTH_FAILED
    lines = [line for line in live.log('kdc.log').splitlines() if '202 etypes' in line]
    assert len(lines) == 1 and NAMED.search(lines[0]), lines
    assert f' {known.STRANGER}: PREAUTH_FAILED: alice@{live.name} for krbtgt/' in lines[0]
    live.wait_until_seen(lambda s: s.sum('requests_total', result='wrong_password') >
                         before.sum('requests_total', result='wrong_password'))


def test_one_server_is_away(live):
    before = live.see()
    live.servers[2].stop()
    try:
        assert not log_in(live, 0)
        seen = live.wait_until_seen(
            lambda s: s.sum('requests_total', result='unavailable') >
            before.sum('requests_total', result='unavailable') and
            0.0 in s.all('server_up', party='p2').values())
        assert seen.sum('requests_total', result='wrong_password') == \
            before.sum('requests_total', result='wrong_password')
        # The line that says why, and the one that says who was told so, have one name.
        found = re.findall(rf'remote keys: request (\w+): .*:{live.ports.clients[2]}: ',
                           live.log('kdc.log'))
        assert found and re.search(
            rf'AS_REQ .*: [A-Z_]+: alice@.*, request {found[-1]}$',
            live.log('kdc.log'), re.M), live.log('kdc.log')[-3000:]
    finally:
        live.servers[2].start()
        live.wait_for_servers()
    assert daemon.wait_until(lambda: log_in(live, 0), 30, 0.2)
    live.wait_until_seen(lambda s: 1.0 in s.all('server_up', party='p2').values())


def test_all_servers_are_away(live):
    before = live.see()
    for server in live.servers:
        server.stop()
    try:
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            assert not any(pool.map(lambda number: log_in(live, number), range(8)))
        live.wait_until_seen(
            lambda s: s.sum('requests_total', type='as', result='unavailable') >=
            before.sum('requests_total', type='as', result='unavailable') + 8 and
            set(s.all('server_up').values()) == {0.0})
    finally:
        for server in live.servers:
            server.start()
        live.wait_for_servers()
    assert daemon.wait_until(lambda: log_in(live, 0), 30, 0.2)
    live.wait_until_seen(lambda s: s.sum('oldest_wait_seconds') == 0)


def test_who_guesses_or_repeats_brings_about_no_outage(tmp_path):
    """A stranger's requests, answered "not available" for quotas' sake, would wake somebody (MpcKdcOutage)."""
    with Watched(tmp_path / 'realm', realm_module.Options(
            quota=known.SLOW, extra_database={'mpc_metrics_file': tmp_path / 'kdc.prom'})) as guessed:
        guessed.create()
        for user in ('alice', 'bob'):
            guessed.enroll(user, 'secret')
        guess = known.as_req_of(guessed, 'alice')
        tgt = functools.partial(datagrams.garbage_tgt, guessed.name, f'krbtgt/{guessed.name}', 300)
        login = known.recorded(guessed, lambda env: guessed.kinit('bob', 'secret', env=env))
        for make in (lambda: known.with_wrong_preauth(guess), tgt, lambda: datagrams.with_more_padata(login)):
            codes = [known.ask_by_tcp(guessed, make(), known.STRANGER) for _ in range(12)]
            assert codes.count(known.SVC_UNAVAILABLE) > 2, codes
        seen = guessed.wait_until_seen(lambda s: s.sum('requests_total', result='replay') > 2)
        assert seen.sum('requests_total', type='as', result='over_quota') > 2
        assert seen.sum('requests_total', type='tgs', result='over_quota') > 2
        assert seen.sum('requests_total', result='unavailable') == 0


def test_a_realm_without_the_relation_writes_no_file(tmp_path):
    with realm_module.Realm(tmp_path / 'realm') as quiet:
        quiet.create()
        quiet.enroll('alice', 'secret')
        quiet.kinit('alice', 'secret')
        assert not list(tmp_path.rglob('*.prom*'))
        # Its requests have names all the same.
        assert NAMED.search((quiet.log_dir / 'kdc.log').read_text())


def test_a_stock_realm_logs_as_ever(tmp_path):
    with realm_module.StockRealm(tmp_path / 'realm') as stock:
        stock.create()
        stock.start_kdc()
        stock.kadmin_local('addprinc -pw secret alice')
        stock.kinit('alice', 'secret')
        log = (stock.log_dir / 'kdc.log').read_text()
        assert 'ISSUE' in log and 'request ' not in log.replace('(retransmitted?) request', '')


def test_a_path_that_node_exporter_would_not_read_is_refused(tmp_path):
    with realm_module.Realm(tmp_path / 'realm', realm_module.Options(
            extra_database={'mpc_metrics_file': 'kdc.prom'})) as wrong:
        wrong.write_files()
        done = wrong.run('krb5kdc', '-n', check=False)
        assert done.returncode != 0
        log = (wrong.log_dir / 'kdc.log').read_text() + done.stdout
        assert 'mpc_metrics_file must be an absolute path that ends with .prom' in log
