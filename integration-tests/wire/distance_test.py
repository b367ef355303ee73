# SPDX-License-Identifier: Apache-2.0
"""A short measurement of logins on a line from end to end, and what its report must contain."""

import json
import time

import distance
import lines
import pytest

pytestmark = pytest.mark.usefixtures('can_make_lines')

LOAD = distance.Load(('aes256-cts',), logins=2, idle_seconds=0)
ONE_WAY_MS = 4


@pytest.fixture(scope='module', autouse=True)
def has_realm():
    reason = distance.missing_programs()
    if reason:
        pytest.skip(reason)


def measured(line, folder):
    said = []
    found = distance.measure_line(line, LOAD, lines.Kernel(), folder / 'realm', said.append)
    assert not (folder / 'realm').exists()
    assert json.loads(json.dumps(found)) and '\n'.join(said)
    assert [result['type'] for result in found['results']] == list(LOAD.types)
    assert all(result['count'] == 2 and not result['failures'] for result in found['results'])
    return found


def test_logins_on_a_line_take_its_delays(tmp_path):
    found = measured(distance.Distance('test', 500, ONE_WAY_MS), tmp_path)
    assert 2 * ONE_WAY_MS <= found['proof']['ping_ms']['min'] < 2 * ONE_WAY_MS + 2
    for result in found['results']:
        # Job, proposal, votes, something computed and the answer, at the least.
        assert result['min'] >= 5 * ONE_WAY_MS
        assert result['servers_cpu_ms'] > 0 and result['payload_mb'] > 0
        assert result['servers']['agreed_us'] >= 2000 * ONE_WAY_MS
    assert found['relay']['ports'][3]['packets_in'] > 0     # the KDC's


def test_without_a_line_they_do_not(tmp_path):
    """The control: agreement takes a part of what the line above takes for it."""
    found = measured(distance.Distance('loopback'), tmp_path)
    assert all(result['servers']['agreed_us'] < 2000 * ONE_WAY_MS for result in found['results'])
    assert all(result['payload_mb'] > 0 for result in found['results'])


@pytest.mark.parametrize('mbit, kinds', [(8, ('aes256-cts',)), (2, ('aes256-gcm',))])
def test_a_slow_line_ends_no_session(tmp_path, mbit, kinds):
    """The very first logins of a fresh realm, for whose tables nothing was measured before."""
    load = distance.Load(kinds, logins=1)
    line = distance.Distance('slow', mbit, 10)
    with line.wire(lines.Kernel()) as wire, distance.running_realm(
            wire, load, tmp_path / 'realm') as live:
        for enctype in kinds:
            distance.connect_anew(live)
            before = distance.sessions_ended(live)
            first = distance.log_in(live, enctype, 1)
            assert (first['count'], first['failures']) == (1, {}), enctype
            assert distance.sessions_ended(live) == before, enctype


def test_keys_far_apart_take_few_messages(tmp_path):
    """Six keys drawn and verified: in rounds, 6,298 and 2,672 ways between two servers."""
    one_way_ms = 10
    user = distance.USER % distance.NUMBERS['aes256-cts']
    line = distance.Distance('test', 1000, one_way_ms)
    with line.wire(lines.Kernel()) as wire, distance.running_realm(
            wire, LOAD, tmp_path / 'realm') as live:
        time.sleep(distance.SETTLE_SECONDS)
        begin = time.monotonic()
        live.admin('randkey', user)
        live.admin('verify', user)
        took_ms = 1000 * (time.monotonic() - begin)
        for status in live.server_status():
            assert status['garbled_batches'] >= 7 and not status['replicated_batches']
    assert took_ms < 2000 * one_way_ms


def test_a_login_that_fails_is_shown_as_failed(tmp_path, monkeypatch):
    monkeypatch.setattr(distance, 'PATIENCE', 5)
    line = distance.Distance('loopback')
    with line.wire(lines.Kernel()) as wire, distance.running_realm(
            wire, LOAD, tmp_path / 'realm') as live:
        live.servers[1].stop()
        result = distance.measure_type(wire, live, 'aes256-cts', LOAD)
    assert result['failures']
    assert 'FAILED' in distance.result_text(result, line)


def test_quantiles_come_from_the_histogram():
    found = distance.quantiles([[10, 10.1, 14], [20, 20.2, 1]])
    assert found['count'] == 15 and found['min'] == found['p50'] == pytest.approx(10.05)
    assert found['p95'] == found['max'] == pytest.approx(20.1)
    assert distance.quantiles([])['p50'] is None
