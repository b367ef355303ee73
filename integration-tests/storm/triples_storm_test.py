# SPDX-License-Identifier: Apache-2.0
"""A storm over two triples, each party's shares in a PostgreSQL with a synchronous standby, while one
thing after the other is killed: no login is lost beyond one retransmission by the client, no answer is
wrong, nobody is locked out. While a primary database is away no triple can answer, and logins wait.
`make test-long` alone: at half of what the two carry at most, which beside other tests is nothing that
can be relied on."""

import threading
import time

import pytest

import storm
import storm_realms
import triples
from long_tests import LONG, some
from storm import PASSWORD, make_keytab, user_name

USERS = 20
BEFORE, AFTER = 2, 3  # seconds of storm before and after what happens
SILENCE, PROMOTION = 2, 10  # seconds without an answer, at most
INTERVAL = 0.25
RATE = 100


@pytest.fixture(scope='module')
def parties():
    made = triples.postgres_or_skip(pytest, standbys=(0, 1, 2))
    yield made
    made.remove()


@pytest.fixture(scope='module')
def live(parties, tmp_path_factory):
    options = storm_realms.options_for('aes128-gcm', ours=True)
    options.extra_database = {}  # lockout is on
    with triples.two_triples(tmp_path_factory.mktemp('storm') / 'realm', parties, options) as made:
        names = [user_name(i) for i in range(USERS)]
        make_keytab(made, 'users.keytab', names, PASSWORD, 'aes128-cts')
        made.admin('enroll', '--all', '--keytab', made.dir / 'users.keytab', '--enctype',
                   'aes128-gcm')
        yield made


@pytest.fixture(scope='module')
def rate(live):
    """Half the knee."""
    storm.PATIENCE = 120
    found = storm.logins(live, *load(live), '--rate', 200, '--ramp', 4000, '--ramp-steps', 10,
                         '--duration', '4s', status=None).report['knee_per_s']
    print(f'knee at {found:.0f} logins/s')
    return max(RATE, found / 2)


def load(live):
    return ['--keytab', live.dir / 'users.keytab', '--enctype', 'aes128-gcm']


class Storm:
    """`with` it: logins at a steady rate, for BEFORE seconds alone; then the body, then AFTER."""

    def __init__(self, live, rate, seconds, limit):
        self._live, self._rate, self._limit = live, rate, limit
        self._seconds = BEFORE + seconds + AFTER
        self._thread = threading.Thread(target=self._run)
        self._report = None

    def _run(self):
        self._report = storm.logins(
            self._live, *load(self._live), '--rate', self._rate, '--duration', f'{self._seconds}s',
            '--resend-after', '1s', '--resends', 1, '--again-when-unavailable', '--in-flight', 16384,
            status=None).report

    def __enter__(self):
        self._thread.start()
        time.sleep(BEFORE)

    def __exit__(self, *error):
        self._thread.join()
        if error[0] is None:
            self._judge()

    def _judge(self):
        counts = self._report['logins']
        silence = longest_silence(self._report['series']['ok'])
        print(f'{counts}, {self._report["resends"]} sent again, errors {self._report["errors"]}, '
              f'longest silence {silence:.2f} s')
        assert counts['started'] > 0.8 * self._rate * self._seconds
        assert counts['wrong_answers'] == counts['lost'] == counts['failed'] == 0, self._report
        assert silence < self._limit
        counted = [name for name in map(user_name, range(USERS))
                   if self._live.failed_attempts(name)]
        assert not counted


def longest_silence(ended):
    """Seconds at most, of logins that ended well in each interval."""
    longest = now = 0
    for count in ended:
        now = 0 if count else now + 1
        longest = max(longest, now)
    return (longest + 2) * INTERVAL


def test_the_longest_silence():
    assert longest_silence([1, 2, 1]) == 2 * INTERVAL
    assert longest_silence([1, 0, 0, 0, 1, 0]) == 5 * INTERVAL


def kill_and_restart(live, victims):
    for victim in victims:
        victim.kill()
    time.sleep(1.5)
    for victim in victims:
        victim.start()


@pytest.mark.parametrize('server', some(range(6), short=[]))
def test_a_server_is_killed(live, rate, server):
    triples.wait_until_healthy(live)
    with Storm(live, rate, 2, SILENCE):
        kill_and_restart(live, [live.servers[server]])
    triples.wait_until_healthy(live)


@pytest.mark.parametrize('triple', some([0, 1], short=[]))
def test_a_triple_is_killed(live, rate, triple):
    triples.wait_until_healthy(live)
    with Storm(live, rate, 2, SILENCE):
        kill_and_restart(live, live.servers[3 * triple:][:3])
    triples.wait_until_healthy(live)


@pytest.mark.parametrize('party', some([0, 1, 2], short=[]))
def test_a_primary_is_killed(live, rate, parties, party):
    """What watches over it promotes the standby a second later."""
    triples.wait_until_healthy(live)
    cluster = parties.clusters[party]
    with Storm(live, rate, 6, PROMOTION):
        cluster.kill()
        time.sleep(1)
        cluster.standby.promote()
    triples.wait_until_healthy(live)
    assert str(cluster.standby.dir) in live.server_status()[party]['database']['where']
    live.admin('verify')


@LONG
def test_all_of_it_was_right(live):
    live.admin('verify')
    assert live.admin('doctor').returncode == 0
