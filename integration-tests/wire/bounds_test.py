# SPDX-License-Identifier: Apache-2.0
import bounds
import lines
import pytest


def test_a_full_line_is_what_ethernet_leaves_to_tcp():
    blocks = bounds.rate_bound(1000, bytes_per_block=340)
    assert blocks == pytest.approx(1e9 * 1448 / 1538 / 8 / 340)
    assert bounds.share_of_line(blocks, 340, 1000) == pytest.approx(0.9415, abs=1e-4)


def test_a_small_batch_is_bound_by_latency_and_a_large_one_by_the_rate():
    line = {'mbit': 200, 'bytes_per_block': 340, 'rounds': 40, 'one_way_ms': 15}
    assert bounds.batch_bound_ms(1, **line) == 600
    assert bounds.batch_bound_ms(65536, **line) == pytest.approx(
        65536 * 340 * 8 / (200e6 * 1448 / 1538) * 1e3)


def test_the_kernels_counters_are_read():
    text = ('Ip: OutRequests Other\nIp: 10 -1\nTcp: OutSegs\nTcp: 30\n'
            'IpExt: OutOctets\nIpExt: 4000\n')
    assert lines.counters(text) == {'Ip.OutRequests': 10, 'Ip.Other': -1, 'Tcp.OutSegs': 30,
                                    'IpExt.OutOctets': 4000}


def test_late_and_busy_relays_are_doubted_and_good_ones_are_not():
    def report(p50=5, p99=30, cpu=0.2, dropped=0):
        return {'late_us': {'p50': p50, 'p99': p99}, 'cpu_share': cpu,
                'ports': [{'dropped': dropped, 'refused': 0}]}
    short, long = lines.Line(1000, 0.05), lines.Line(200, 15)
    assert lines.doubts(short, report()) == []
    assert lines.doubts(lines.Line(1000), None) == []
    assert len(lines.doubts(short, report(p50=500))) == 1
    assert lines.doubts(long, report(p50=500)) == []
    assert len(lines.doubts(long, report(p50=9000, p99=20000, cpu=0.99, dropped=1))) == 4
    assert len(lines.doubts(lines.Line(1000), None, dropped=3)) == 1
