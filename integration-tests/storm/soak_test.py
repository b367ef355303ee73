# SPDX-License-Identifier: Apache-2.0
"""The verdict of `make soak` sees what it is there to see, and nothing else."""

import random
import sys

import pytest

import bench_refresh
import soak
import soak_events
import soak_samples
import soak_verdict
from long_tests import LONG  # of integration-tests/realm

HOUR = 3600


def event(begin, end, outage=False, calm=True, error=''):
    return {'name': 'x', 'begin': begin, 'end': end, 'outage': outage, 'calm': calm, 'error': error}


def login(due, seconds, outcome='ok', code=0):
    return soak_samples.Login(due, due + seconds, outcome, code, 1, 'u0000001')


def judged(logins, events=()):
    found = soak_verdict.Logins(events)
    for one in logins:
        found.add(one)
    return found, [kept for kept, _ in soak_verdict.judge_logins(found, {'logins': {'shed': 0}})]


OUTAGE = [event(100, 130, outage=True), event(200, 210), event(110, 112, outage=True)]


@pytest.mark.parametrize('one, lost', [
    (login(90, 15, 'lost'), False),         # begun before, ended in it
    (login(129, 15, 'lost'), False),
    (login(99, 50, 'failed', 29), False),   # all around it
    (login(131, 1, 'failed', 29), True),    # just after
    (login(80, 15, 'lost'), True),          # just before
    (login(201, 1, 'failed', 29), True)])   # in an event that may cost nothing
def test_only_an_announced_outage_excuses(one, lost):
    found, kept = judged([login(1, 0.1), one], OUTAGE)
    assert bool(found.lost) == lost and bool(found.in_outage) != lost
    assert kept == [not lost, True, True, True]


def test_an_outage_may_be_over_before_its_event():
    early = [{**event(100, 130, outage=True), 'outage_end': 110}]
    assert judged([login(1, 0.1), login(109, 5, 'lost')], early)[1][0]
    assert not judged([login(1, 0.1), login(111, 5, 'lost')], early)[1][0]


@pytest.mark.parametrize('one, broken', [
    (login(101, 1, 'wrong'), 1), (login(101, 1, 'failed', 18), 2), (login(101, 1, 'failed', 24), 2)])
def test_nothing_excuses_a_wrong_answer_or_a_lockout(one, broken):
    _, kept = judged([login(1, 0.1), one], OUTAGE)
    assert kept == [number != broken for number in range(4)]


def test_no_login_at_all_is_no_success():
    assert judged([])[1][0] is False


def test_silence_is_between_good_logins_and_outside_of_outages():
    found, _ = judged([login(at, 0.1) for at in (1, 2, 3, 7, 99, 131, 132)], OUTAGE)
    assert found.silence_s == pytest.approx(92) and found.silence_at == pytest.approx(7.1)


def samples(value, name='p0', pid=7, begin=0, seconds=HOUR):
    draw = random.Random(1)
    return [{'at': at, 'name': name, 'pid': pid, 'anon': value(at) + draw.gauss(0, 500),
             'locked': 20480, 'descriptors': 23 + (at // 100) % 2}
            for at in range(begin, begin + seconds, 10)]


def memory_of(found, since=0):
    return [kept for kept, _ in soak_verdict.judge_memory(found, ['p0'], since)]


def test_a_leak_is_seen_and_noise_is_not():
    assert memory_of(samples(lambda at: 60000)) == [True, True]
    assert memory_of(samples(lambda at: 60000 + 64 * 1024 * at / HOUR)) == [False, True]
    # What fills in the first quarter and stays is no leak.
    assert memory_of(samples(lambda at: 60000 + 30000 * min(1, at / 600))) == [True, True]


def test_too_little_is_not_told_as_good():
    assert memory_of(samples(lambda at: 60000, seconds=600)) == [None, None]
    assert memory_of([]) == [None, None]


def test_memory_is_of_one_process():
    """What a process had before it was ended says nothing of the next one."""
    before = samples(lambda at: 200000, pid=6, seconds=1800)
    after = samples(lambda at: 60000, begin=1800, seconds=2400)
    assert memory_of(before + after) == [True, True]
    assert soak_verdict.calm_since([event(5, 9, calm=False), event(20, 30)], 1) == 9


def test_descriptors_that_are_not_closed_are_seen():
    flat = samples(lambda at: 0)
    assert soak_verdict.judge_descriptors(flat, ['p0'], 0)[0][0] is True
    for sample in flat:
        sample['descriptors'] += sample['at'] // 300
    assert soak_verdict.judge_descriptors(flat, ['p0'], 0)[0][0] is False


def test_a_failed_event_is_a_broken_promise():
    assert soak_verdict.judge_events([event(1, 2)])[0][0]
    assert not soak_verdict.judge_events([event(1, 2, error='no')])[0][0]


def test_logins_are_read_as_login_storm_writes_them(tmp_path):
    log = tmp_path / 'logins.log'
    log.write_text('1000.500000 250.000 ok 0 1 u0000001\n1061.000000 15000.000 lost 0 4 u0000002\n'
                   '1062.0 30')
    found = list(soak_samples.read_logins(log))
    assert found == [(1000.5, 1000.75, 'ok', 0, 1, 'u0000001'),
                     (1061.0, 1076.0, 'lost', 0, 4, 'u0000002')]
    minutes = soak_samples.Minutes(1000, 60)
    for one in found:
        minutes.add(one)
    assert [(row['from_s'], row['ok'], row['not_ok'], row['resent']) for row in minutes.rows()] == [
        (0, 1, 0, 0), (60, 0, 1, 1)]
    assert minutes.rows()[0]['p99_ms'] == pytest.approx(250)
    assert not list(soak_samples.read_logins(tmp_path / 'none'))


def test_percentiles():
    assert soak_samples.percentile(list(range(1, 101)), 99) == 99
    assert soak_samples.percentile([5], 50) == 5 and soak_samples.percentile([], 50) is None


@pytest.mark.parametrize('postgresql, triples, missing', [
    (False, 1, {'fail over', 'kill triple'}), (True, 1, {'backup, restore', 'kill triple'}),
    (True, 2, {'backup, restore'})])
def test_every_event_comes_and_refreshes_between_them(postgresql, triples, missing):
    usable = soak_events.usable(postgresql, triples)
    names = soak_events.schedule(random.Random(3), usable)
    some = [next(names) for _ in range(40)]
    assert set(some) == set(soak_events.EVENTS) - missing
    assert some.count('refresh') >= 8
    again = soak_events.schedule(random.Random(3), usable)
    assert some == [next(again) for _ in range(40)]


@pytest.mark.parametrize('gap, during, kept', [
    (1.5, 'kill server', True), (3, 'kill server', False), (3, 'fail over', True),
    (12, 'fail over', False)])
def test_a_silence_is_measured_by_what_happens(gap, during, kept):
    events = [{**event(10, 20), 'name': during}]
    found, _ = judged([login(1 + at / 2, 0.1) for at in range(20)]
                      + [login(10.5 + gap, 0.1), login(30, 0.1)][:1], events)
    assert soak_verdict.judge_silence(found, events)[0][0] == kept


def test_an_outage_is_one_of_the_realm_that_it_hits():
    def world(triples):
        live = type('Live', (), {'options': type('Options', (), {'triples': triples})})
        return soak_events.World(live, random.Random(1))
    kinds = {name: kind for name, (_, kind, _) in soak_events.EVENTS.items()}
    assert [world(1).has_outage(kinds['kill server']), world(2).has_outage(kinds['kill server'])] == [
        True, False]
    assert world(2).has_outage(kinds['replace party'])
    assert not world(1).has_outage(kinds['refresh'])


def test_recovery_is_from_when_on_nearly_all_are_good():
    logins = [login(at / 10, 0.05, 'ok' if at in (31, 32) or at >= 50 else 'failed', 0)
              for at in range(0, 100)]
    first, well = bench_refresh.recovery(logins, 2)
    assert first == pytest.approx(1.15) and well == 3  # the whole second from 5 s on
    assert bench_refresh.recovery([login(3, 1, 'lost')], 2) == (None, None)


SMALL = ['--users', '50', '--rate', '20', '--pause', '1', '--sample', '1', '--minute', '10']


@LONG
@pytest.mark.parametrize('control, status', [([], 0), (['--break-something'], 1)])
def test_a_small_soak_and_one_that_is_broken(tmp_path, control, status, capsys):
    done = soak.main(['--hours', '0.01', *SMALL, '--out', str(tmp_path), '--only',
                      'refresh,password', *control])
    told = capsys.readouterr().out
    assert done == status, told
    assert (tmp_path / 'report.json').exists() and sys.getsizeof(told) > 1000
    assert ('lost outside of outages: none' in told) == (status == 0), told
