# SPDX-License-Identifier: Apache-2.0
"""`make bench-distance`: logins at a realm whose servers are far from each other.

    bench_distance.py [--only NAME]... [--type NAME,...] [--logins N] [--idle S] [--rounds N]
                      [--line MS:MBIT]... [--engine 'KEY = VALUE'] [--congestion NAME]
                      [--slow-start-after-idle] [--buffer-bytes N] [--json] [--out FOLDER]

Needs root (network namespaces). Writes FOLDER/distance.json.
Exit status: 0 measured, 1 a login failed or a measurement did, 2 it cannot run here.
"""

import argparse
import json
import pathlib
import signal
import subprocess
import sys

import distance
import lines

LINES = {
    'loopback': distance.Distance('loopback'),
    'near': distance.Distance('1 ms, 1 Gb/s', 1000, 1),
    'far': distance.Distance('10 ms, 1 Gb/s', 1000, 10),
    'thin': distance.Distance('30 ms, 100 Mb/s', 100, 30),
}


def main():
    arguments = parse_arguments()
    reason = lines.missing() or distance.missing_programs()
    if reason:
        print(f'make bench-distance cannot run here: {reason}', file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the namespaces are cleared away
    load = distance.Load(arguments.type, arguments.logins, arguments.idle, arguments.rounds,
                         '\n'.join(arguments.engine))
    kernel = lines.Kernel(congestion=arguments.congestion or None,
                          buffer_bytes=arguments.buffer_bytes or None,
                          slow_start_after_idle=arguments.slow_start_after_idle)
    out = pathlib.Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    say = quiet if arguments.json else speak
    report = {'machine': distance.storm_runs.machine(), 'options': sys.argv[1:], 'lines': []}
    say(f'{report["machine"]["commit"]} on {report["machine"]["cores"]} cores of '
        f'{report["machine"]["cpu"]}, load {report["machine"]["load_before"]:.1f} before; '
        'milliseconds')
    say(distance.heading())
    try:
        for line in chosen(arguments):
            report['lines'].append(
                distance.measure_line(line, load, kernel, out / 'distance-realm', say))
            (out / 'distance.json').write_text(json.dumps(report, indent=1) + '\n')
    except (distance.DistanceError, distance.realm_module.RealmError, lines.network.NetworkError,
            subprocess.SubprocessError) as error:
        print(f'bench-distance: {error}', file=sys.stderr)
        return 1
    if arguments.json:
        print(json.dumps(report, indent=1))
    say(f'written: {out / "distance.json"}')
    failed = any(result['failures'] for found in report['lines'] for result in found['results'])
    return 1 if failed else 0


def parse_arguments():
    parser = argparse.ArgumentParser(description='logins at servers that are far from each other')
    parser.add_argument('--only', action='append', choices=LINES,
                        help='may be given again; all without it')
    parser.add_argument('--line', action='append', type=line, metavar='MS:MBIT', default=[],
                        help='another line, of so many milliseconds one way; instead')
    parser.add_argument('--type', type=types, default=distance.TYPES,
                        help='with commas between: ' + ', '.join(distance.NUMBERS))
    parser.add_argument('--logins', type=int, default=15, help='one after the other')
    parser.add_argument('--idle', type=float, default=15,
                        help='seconds before the login after an idle time')
    parser.add_argument('--rounds', type=int, default=1, help='of all types, on each line')
    parser.add_argument('--engine', action='append', default=[], metavar='KEY = VALUE',
                        help="a line of [engine] in the servers' configuration")
    parser.add_argument('--congestion', default='cubic', help='"": the kernel\'s own choice')
    parser.add_argument('--buffer-bytes', type=int, default=lines.Kernel().buffer_bytes,
                        help='the last number of tcp_rmem and tcp_wmem; 0: as the kernel has it')
    parser.add_argument('--slow-start-after-idle', action='store_true',
                        help="the kernel's default, which a server's operator should change")
    parser.add_argument('--json', action='store_true', help='print the report, no table')
    parser.add_argument('--out', default=lines.BUILD / 'bench')
    return parser.parse_args()


def line(text):
    try:
        delay, mbit = map(float, text.split(':'))
    except ValueError:
        raise argparse.ArgumentTypeError(f'"{text}" is not MS:MBIT, as 5:200') from None
    return distance.Distance(f'{delay:g} ms, {mbit:g} Mb/s', mbit, delay)


def types(text):
    chosen_types = tuple(text.split(','))
    for name in chosen_types:
        if name not in distance.NUMBERS:
            raise argparse.ArgumentTypeError(f'{name} is none of ' + ', '.join(distance.NUMBERS))
    return chosen_types


def chosen(arguments):
    if arguments.line and not arguments.only:
        return arguments.line
    return [*(LINES[name] for name in arguments.only or LINES), *arguments.line]


def speak(text):
    if text:
        print(text, flush=True)


def quiet(_):
    pass


if __name__ == '__main__':
    sys.exit(main())
