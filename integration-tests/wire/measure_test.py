# SPDX-License-Identifier: Apache-2.0
"""A short measurement from end to end, and what its report must contain."""

import json

import bench_network
import lines
import measure
import plot_network
import pytest

ROUNDS = 40
WAY = {'one chunk': ('--runs=1', '--sbox=throughput')}


@pytest.fixture(scope='session', autouse=True)
def has_bench(can_make_lines):
    if bench_network.missing_bench():
        pytest.skip(bench_network.missing_bench())


def test_aes_on_a_line_is_verified_and_within_its_bounds(tmp_path):
    load = measure.Load(WAY, ('tls',), (512,), seconds=0.2)
    network = measure.Network('test', 500, one_way_ms=2)
    found = measure.measure(network, load, lines.Kernel(), bench_network.quiet)
    result, = found['results']
    assert result['verified'] and result['rounds'] == ROUNDS
    assert 4 <= found['proof']['ping_ms']['min'] < 6
    # Nothing is quicker than the line: else the figures are not the line's.
    assert result['latency_ms']['p50'] >= ROUNDS * 2
    assert 0 < result['share_of_bound'] <= 1
    assert 0 < result['share_of_line'] < result['share_of_line_with_tcp'] < 1
    assert result['relay']['ports'][0]['packets_in'] > ROUNDS
    report = json.loads(json.dumps({'networks': [found]}))
    files = plot_network.draw(report, tmp_path)
    assert all(file.stat().st_size > 10000 for file in files)


def test_without_the_line_the_same_batch_is_quicker():
    """The control: what the test above holds against the delay is not met without it."""
    with lines.Wire(lines.Line()) as wire:
        result = measure.call_bench(wire, ('--batch=512', '--seconds=0.2', *WAY['one chunk']))
    assert result['latency_ms']['p50'] < ROUNDS * 2


def test_what_mpc_bench_refuses_is_reported():
    with lines.Wire(lines.Line()) as wire:
        with pytest.raises(measure.BenchError, match='--batch'):
            measure.call_bench(wire, ('--batch=none',))
