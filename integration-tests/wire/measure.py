# SPDX-License-Identifier: Apache-2.0
"""One network of the issue, proved, and mpc-bench on it."""

import dataclasses
import itertools
import json
import os
import re
import subprocess

import bounds
import lines

BENCH = lines.BUILD / 'cmake/mpc-server/cmd/mpc-bench'
RING = tuple(zip(lines.PARTIES, (*lines.PARTIES[1:], lines.PARTIES[0])))
FIRST_PORT = 7000           # of each party; a namespace has all ports to itself
PORTS_APART = 100           # between two measurements, so that none meets the last one's remains
BENCH_TIMEOUT_S = 600
STALL_FACTOR = 10           # of p99 to p50: no line does that, a machine or a program did
BUSY_SHARE = 0.92           # of all processors: above, they and not the line were the limit


class BenchError(Exception):
    """mpc-bench failed; the text is its own."""


@dataclasses.dataclass(frozen=True)
class Network:
    """round_trip_ms: of a ping, all included; one_way_ms: what the relay adds. Or neither."""
    name: str
    mbit: float
    round_trip_ms: float | None = None
    one_way_ms: float | None = None

    def line(self, kernel):
        if self.round_trip_ms is not None:
            return lines.aim(self.mbit, self.round_trip_ms, kernel)[0]
        return lines.Line(self.mbit, self.one_way_ms)


@dataclasses.dataclass(frozen=True)
class Load:
    """What mpc-bench is to do on each network. A way is a name and options of mpc-bench."""
    ways: dict
    channels: tuple = ('tls',)
    batches: tuple = (512, 16384, 65536)
    seconds: float = 4


def measure(network, load, kernel, say):
    """Everything about one network: the line's own figures, then a result per channel and batch."""
    line = network.line(kernel)
    found = {'network': network.name, 'mbit': network.mbit,
             'asked': {'round_trip_ms': network.round_trip_ms, 'one_way_ms': network.one_way_ms},
             'relay_delay_ms': line.one_way_ms, 'kernel': dataclasses.asdict(kernel),
             'proof': prove(line, kernel), 'results': []}
    one_way_ms = found['proof']['ping_ms']['p50'] / 2
    say(proof_text(found))
    for channel, way, batch in itertools.product(load.channels, load.ways, load.batches):
        options = (f'--channel={channel}', f'--batch={batch}', f'--seconds={load.seconds}',
                   *load.ways[way])
        result = {'way': way, **run_bench(line, kernel, options)}
        result.update(compare(result, network.mbit, one_way_ms))
        found['results'].append(result)
        say(result_text(result))
    return found


def prove(line, kernel):
    """That the line is what was asked for, before anything of ours runs on it."""
    with lines.Wire(line, kernel) as wire:
        proof = {'ping_ms': wire.ping('p0', 'p1', count=100, interval=0.005),
                 'one_stream_mbit': wire.streams(RING[:1])[0],
                 'ring_mbit': wire.streams(RING)}
        proof['dropped'] = wire.dropped()
        wire.stop_relay()
    proof['relay'] = wire.relay_report
    proof['doubts'] = lines.doubts(line, wire.relay_report, proof['dropped'])
    return proof


def run_bench(line, kernel, options):
    """A result of mpc-bench with what the line and the machine did meanwhile."""
    with lines.Wire(line, kernel) as wire:
        before, idle = wire.sent(), idle_seconds()
        result = call_bench(wire, options)
        idle = [now - then for now, then in zip(idle_seconds(), idle)]
        sent = {key: value - before[key] for key, value in wire.sent().items()}
        dropped, retransmitted = wire.dropped(), wire.retransmitted()
        wire.stop_relay()
    result.update(tcp_overhead=sent['wire'] / sent['payload'], retransmitted=retransmitted,
                  machine_busy=1 - idle[0] / idle[1], own_busy=own_share(result, wire.relay_report),
                  relay=wire.relay_report,
                  doubts=lines.doubts(line, wire.relay_report, dropped))
    if result['machine_busy'] > BUSY_SHARE:
        result['doubts'].append(f'the processors were busy {100 * result["machine_busy"]:.0f} % of '
                                f'the time, {100 * result["own_busy"]:.0f} % with this')
    latency = result['latency_ms']
    if latency['p99'] > STALL_FACTOR * latency['p50']:
        result['doubts'].append(f'something stood still: p99 is {latency["p99"]:.0f} ms')
    return result


def own_share(result, relay):
    """The share of all processors' time that the parties and the relay took."""
    processors = result['blocks_per_s'] / result['blocks_per_cpu_s']
    return (processors + (relay['cpu_share'] if relay else 0)) / os.cpu_count()


def channels():
    """Those of this mpc-bench that a network can be put under."""
    text = subprocess.run([BENCH, '--help'], stdout=subprocess.PIPE, encoding='utf-8',
                          check=True).stdout
    option = re.search(r'--channel NAME(.*?)--', text, re.DOTALL)[1]
    return [name for name in ('tls', 'aead', 'tcp') if name in option]


_calls = 0


def call_bench(wire, options):
    global _calls
    port = FIRST_PORT + PORTS_APART * (_calls % 500)
    _calls += 1
    places = [wire.place(party) for party in lines.PARTIES]
    launch = ' '.join(places[0].command)
    assert launch.endswith('p0'), launch
    argv = [BENCH, 'aes', '--parties=processes', '--json', f'--launch={launch[:-1]}{{party}}',
            '--addresses=' + ','.join(place.endpoint(port) for place in places), *options]
    if wire.kernel.congestion:
        argv.append(f'--congestion={wire.kernel.congestion}')
    done = subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding='utf-8',
                          timeout=BENCH_TIMEOUT_S)
    if done.returncode:
        raise BenchError(f'{" ".join(str(word) for word in argv)}: {done.stderr.strip()}')
    report = json.loads(done.stdout)
    result = dict(report['results'][0])
    result['about'] = {key: value for key, value in report.items() if key != 'results'}
    return result


def compare(result, mbit, one_way_ms):
    """The result beside what the line allows."""
    sent = result['bytes_per_block_per_party']
    share = bounds.share_of_line(result['blocks_per_s'], sent, mbit)
    rounds = bounds.ROUNDS[result['sbox'], result['bits']]
    best = bounds.batch_bound_ms(result['batch'], mbit, sent, rounds, one_way_ms)
    return {'share_of_line': share,
            'share_of_line_with_tcp': share * result['tcp_overhead'],
            'rate_bound_blocks_per_s': bounds.rate_bound(mbit, sent),
            'latency_bound_ms': bounds.latency_bound_ms(rounds, one_way_ms),
            'batch_bound_ms': best,
            'share_of_bound': result['blocks_per_s'] * best / 1e3 / result['batch']}


def idle_seconds():
    """(idle, all) of all processors since the machine's start."""
    fields = [int(f) for f in open('/proc/stat').readline().split()[1:9]]
    tick = os.sysconf('SC_CLK_TCK')
    return (fields[3] + fields[4]) / tick, sum(fields) / tick


# Text --------------------------------------------------------------------------------------------

COLUMNS = (     # heading, width, what of a result
    ('channel', 8, lambda r: r['channel']),
    ('way', 11, lambda r: r['way']),
    ('batch', 8, lambda r: f'{r["batch"]:,}'),
    ('blocks/s', 10, lambda r: f'{r["blocks_per_s"]:,.0f}'),
    ('p50 ms', 9, lambda r: f'{r["latency_ms"]["p50"]:.2f}'),
    ('p99 ms', 9, lambda r: f'{r["latency_ms"]["p99"]:.2f}'),
    ('rounds', 7, lambda r: f'{r["rounds"]:.0f}'),
    ('latency bound', 14, lambda r: f'{r["latency_bound_ms"]:.2f} ms'),
    ('best', 11, lambda r: f'{r["batch_bound_ms"]:.2f} ms'),
    ('of line', 8, lambda r: f'{r["share_of_line"]:.3f}'),
    ('with TCP', 9, lambda r: f'{r["share_of_line_with_tcp"]:.3f}'),
    ('of best', 8, lambda r: f'{r["share_of_bound"]:.3f}'),
    ('CPU', 7, lambda r: f'{100 * r["own_busy"]:.0f} %'),
)


def heading():
    return '  ' + ''.join(f'{name:>{width}}' for name, width, _ in COLUMNS)


def result_text(result):
    text = '  ' + ''.join(f'{get(result):>{width}}' for _, width, get in COLUMNS)
    if not result['verified']:
        text += '  WRONG OUTPUT'
    return text + ''.join(f'\n      doubtful: {reason}' for reason in result['doubts'])


def proof_text(found):
    proof = found['proof']
    ping, ring = proof['ping_ms'], proof['ring_mbit']
    text = (f'{found["network"]}: ping {ping["p50"]:.3f} ms (least {ping["min"]:.3f}), '
            f'one TCP stream {proof["one_stream_mbit"]:.0f} Mb/s, the ring '
            f'{min(ring):.0f} to {max(ring):.0f} Mb/s of {found["mbit"]:.0f}')
    return text + ''.join(f'\n      doubtful: {reason}' for reason in proof['doubts'])
