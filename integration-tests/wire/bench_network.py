# SPDX-License-Identifier: Apache-2.0
"""`make bench-network`: AES between three parties on three networks, beside what these allow.

    bench_network.py [--channel tls,aead] [--batch 512,16384,65536] [--seconds S] [--only NAME]...
                     [--delay-ms 15 [--round-trip]] [--congestion NAME] [--json] [--out FOLDER]
                     [--way 'NAME=OPTIONS OF mpc-bench']...

Needs root (network namespaces). Writes FOLDER/network.json and, with matplotlib, network.svg and
network.png.
Exit status: 0 measured, 1 an output was wrong or a measurement failed, 2 it cannot run here.
"""

import argparse
import json
import pathlib
import signal
import sys

import lines
import measure
import plot_network

PAPER_ROUND_TRIP_MS = 0.13  # the paper's servers had this ping, and a faster network

WAYS = {
    # What a batch costs when nothing overlaps: each round waits for the whole last one.
    'one chunk': ('--workers=1', '--slots=1', '--chunk=1048576'),
    # As servers do it by default: limits.h, kDefaultWorkers, kChunkBlocks, kChunksUnderWay.
    'as servers': ('--workers=2', '--join'),
    # More and smaller chunks.
    'long line': ('--workers=2', '--join', '--slots=16', '--chunk=2048'),
}


def main():
    arguments = parse_arguments()
    reason = lines.missing() or missing_bench()
    if reason:
        print(f'make bench-network cannot run here: {reason}', file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the namespaces are cleared away
    load = measure.Load(dict(arguments.way or WAYS), channels(arguments),
                        tuple(int(n) for n in arguments.batch.split(',')), arguments.seconds)
    kernel = lines.Kernel(congestion=arguments.congestion or None,
                          slow_start_after_idle=arguments.slow_start_after_idle)
    say = quiet if arguments.json else speak
    say(measure.heading())
    out = pathlib.Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    report = {'networks': []}
    try:
        for network in chosen(arguments):
            report['networks'].append(measure.measure(network, load, kernel, say))
            (out / 'network.json').write_text(json.dumps(report, indent=1) + '\n')
    except (measure.BenchError, lines.network.NetworkError) as error:
        print(f'bench-network: {error}', file=sys.stderr)
        return 1
    if arguments.json:
        print(json.dumps(report, indent=1))
    written = (out / 'network.json', *plot_network.draw(report, out))
    say(f'written: {", ".join(str(path) for path in written)}')
    results = [r for n in report['networks'] for r in n['results']]
    return 0 if all(r['verified'] for r in results) else 1


def parse_arguments():
    parser = argparse.ArgumentParser(description='AES between three parties on three networks')
    parser.add_argument('--channel',
                        help='of mpc-bench, with commas between; otherwise tls and aead')
    parser.add_argument('--batch', default='512,16384,65536', help='blocks, with commas between')
    parser.add_argument('--seconds', type=float, default=4, help='of each measurement')
    parser.add_argument('--only', action='append', choices=('lan', 'paper', 'wan'),
                        help='may be given again; all without it')
    parser.add_argument('--delay-ms', type=float, default=15, help='of the slow network, one way')
    parser.add_argument('--round-trip', action='store_true', help='--delay-ms is there and back')
    parser.add_argument('--congestion', default='cubic', help='"": the kernel\'s own choice')
    parser.add_argument('--slow-start-after-idle', action='store_true',
                        help="the kernel's default, which a server's operator should change")
    parser.add_argument('--json', action='store_true', help='print the report, no table')
    parser.add_argument('--out', default=lines.BUILD / 'bench')
    parser.add_argument('--way', action='append', type=way, metavar='NAME=OPTIONS',
                        help='options of mpc-bench under a name; may be given again; otherwise: '
                             + ', '.join(f'"{name}={" ".join(words)}"'
                                         for name, words in WAYS.items()))
    return parser.parse_args()


def channels(arguments):
    if arguments.channel:
        return tuple(arguments.channel.split(','))
    return tuple(name for name in measure.channels() if name in ('tls', 'aead'))


def way(text):
    name, equals, options = text.partition('=')
    if not equals:
        raise argparse.ArgumentTypeError(f'"{text}" is not NAME=OPTIONS')
    return name, tuple(options.split())


def chosen(arguments):
    one_way = arguments.delay_ms / (2 if arguments.round_trip else 1)
    networks = {
        'lan': measure.Network('1 Gb/s', 1000),
        'paper': measure.Network(f'1 Gb/s, ping {PAPER_ROUND_TRIP_MS} ms', 1000,
                                 round_trip_ms=PAPER_ROUND_TRIP_MS),
        'wan': measure.Network(f'200 Mb/s, {one_way:g} ms one way', 200, one_way_ms=one_way)}
    return [networks[name] for name in arguments.only or networks]


def missing_bench():
    if not measure.BENCH.exists():
        return f'{measure.BENCH} is missing: run `make build`'
    return None


def speak(text):
    print(text, flush=True)


def quiet(_):
    pass


if __name__ == '__main__':
    sys.exit(main())
