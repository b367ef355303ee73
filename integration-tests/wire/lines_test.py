# SPDX-License-Identifier: Apache-2.0
"""The lab of the network measurements does what it is asked, and is gone afterwards.

Only the quickest of many packets is held against a bound: the others waited for the machine."""

import os
import pathlib
import signal
import subprocess
import sys

import daemon
import lines
import network
import pytest

pytestmark = pytest.mark.usefixtures('can_make_lines')

RING = (('p0', 'p1'), ('p1', 'p2'), ('p2', 'p0'))


def namespaces():
    """This process's own: a lab of the fault tests may be among them."""
    return {path.name for path in pathlib.Path('/run/netns').glob(f'*fault-{os.getpid()}-*')}


def relays():
    """This process's own."""
    found = subprocess.run(['ps', '--ppid', str(os.getpid()), '-o', 'comm='],
                           stdout=subprocess.PIPE, encoding='utf-8', check=False)
    return found.stdout.split().count('wire-relay')


def test_namespaces_and_relay_come_and_go():
    before = namespaces()
    with lines.Wire(lines.Line(one_way_ms=1)):
        assert len(namespaces() - before) >= len(lines.PARTIES)
        assert relays() == 1
    assert namespaces() == before
    assert not relays()


def test_a_body_that_fails_leaves_nothing():
    before = namespaces()
    with pytest.raises(ZeroDivisionError), lines.Wire(lines.Line(one_way_ms=1)):
        _ = 1 / 0
    assert namespaces() == before
    assert not relays()


@pytest.mark.parametrize('one_way_ms', (1, 5))
def test_the_relay_holds_each_packet_for_the_delay(one_way_ms):
    with lines.Wire(lines.Line(one_way_ms=one_way_ms)) as wire:
        for source, destination in RING:
            ping = wire.ping(source, destination, count=20)
            assert 2 * one_way_ms <= ping['min'] < 2 * one_way_ms + 1
            assert ping['lost'] == 0


@pytest.mark.parametrize('line', (lines.Line(), lines.Line(one_way_ms=0)))
def test_without_a_delay_a_ping_is_short(line):
    with lines.Wire(line) as wire:
        assert wire.ping('p0', 'p1', count=20)['min'] < 1


def test_an_aimed_line_has_the_round_trip_asked_for():
    line, ping = lines.aim(mbit=0, round_trip_ms=2)
    assert line.one_way_ms < 1
    assert 1.8 < ping['min'] < 2.2


@pytest.mark.parametrize('one_way_ms', (None, 0))
def test_a_line_carries_its_rate(one_way_ms):
    with lines.Wire(lines.Line(100, one_way_ms)) as wire:
        for rate in wire.streams(RING, seconds=1, warm_up=0):
            assert 50 < rate < 97    # Ethernet leaves TCP 94.1 %; the bucket was full at first
        wire.stop_relay()
        assert not [d for d in lines.doubts(wire.line, wire.relay_report) if 'lost' in d]


def test_a_line_without_a_rate_carries_more():
    with lines.Wire(lines.Line(one_way_ms=0)) as wire:
        assert min(wire.streams(RING, seconds=1, warm_up=0)) > 120


def test_two_senders_share_the_rate_of_the_receivers_port():
    with lines.Wire(lines.Line(100, one_way_ms=1)) as wire:
        both = wire.streams((('p0', 'p2'), ('p1', 'p2')), seconds=1, warm_up=0)
        assert 50 < sum(both) < 97


def test_a_relay_that_loses_packets_is_doubted():
    with lines.Wire(lines.Line(one_way_ms=2), relay_options=('--slots=1',)) as wire:
        wire.streams(RING[:1], seconds=1, warm_up=0)
        wire.stop_relay()
    assert any('lost' in reason for reason in lines.doubts(wire.line, wire.relay_report))


def test_an_idle_connection_starts_slowly_unless_told_not_to():
    line, message = lines.Line(one_way_ms=20), 128 << 10
    times = {}
    for slow in (False, True):
        with lines.Wire(line, lines.Kernel(slow_start_after_idle=slow)) as wire:
            times[slow] = wire.message_ms(message, idle_seconds=0.5)
    # Slow start takes a round trip of 40 ms more, at least: half of it tells the two apart.
    assert times[False]['after_idle'] < times[False]['warm'] + 20
    assert times[True]['after_idle'] > times[True]['warm'] + 20


def test_what_a_killed_run_left_is_removed_by_the_next():
    program = ('import sys, time; sys.path.insert(0, sys.argv[1]); import lines\n'
               'with lines.Wire(lines.Line(one_way_ms=1)) as wire:\n'
               '    print(wire.place("p0").command[-1], wire._relay.pid, flush=True)\n'
               '    time.sleep(60)\n')
    with subprocess.Popen([sys.executable, '-c', program, str(lines.HERE)],
                          stdout=subprocess.PIPE, encoding='utf-8') as run:
        name, relay = run.stdout.readline().split()
        run.send_signal(signal.SIGKILL)
    left = pathlib.Path('/run/netns', name)
    assert left.exists()
    relay = pathlib.Path('/proc', relay)
    assert daemon.wait_until(lambda: not relay.exists(), 5), 'the relay runs on'
    network.remove_leftovers()
    assert not left.exists()


def test_what_the_relay_refuses_is_reported():
    before = namespaces()
    nowhere = '--ports=nowhere=198.51.100.1,nowhere=198.51.100.2'
    with pytest.raises(network.NetworkError, match='network namespace nowhere'):
        with lines.Wire(lines.Line(one_way_ms=1), relay_options=(nowhere,)):
            pass
    assert namespaces() == before
