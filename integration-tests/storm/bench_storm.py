# SPDX-License-Identifier: Apache-2.0
"""`make storm`: a realm of many users under a storm of logins, beside MIT's own KDC and the paper.

    bench_storm.py [--users N] [--seconds S | --long] [--only NAME,...] [--grow] [--repetitions N]
                   [--enctype NAME] [--security semi-honest|active|both] [--work FOLDER]
                   [--out FOLDER] [--remove]

Writes FOLDER/report.json after each measurement, and report.md and the drawings at the end; the
realms below FOLDER/realms stay for the next run. With --security both: all of it below
FOLDER/semi-honest and then FOLDER/active, and in FOLDER the two reports together with their ratios.
README.md beside this says what is measured.

Exit status: 0 measured, 1 a measurement failed or an answer was wrong, 2 it cannot run here.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'realm'))

import many_users  # noqa: E402
import storm_measures  # noqa: E402
import storm_plots  # noqa: E402
import storm_ratios  # noqa: E402
import storm_realms  # noqa: E402
import storm_report  # noqa: E402
import storm_runs  # noqa: E402


def main(argv=None):
    arguments = parse_arguments(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the realms are stopped
    out = pathlib.Path(arguments.out).resolve()
    work = pathlib.Path(arguments.work or out / 'realms').resolve()
    for folder in (out, work):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        storm_runs.storm.program()
        storm_realms.check_space(work, arguments.users)
    except (FileNotFoundError, storm_realms.StormError) as error:
        print(f'make storm cannot run here: {error}', file=sys.stderr)
        return 2
    if arguments.security == 'both':
        good = both(arguments, work, out)
    else:
        good = is_good(storm(arguments, arguments.security, work, out))
    if arguments.remove:
        shutil.rmtree(work, ignore_errors=True)
    return 0 if good else 1


def storm(arguments, security, work, out):
    """All measurements with our servers under `security`; the report."""
    bench = storm_measures.Bench(work, arguments, security, say)
    report = {'machine': storm_runs.machine(), 'setup': setup(arguments, bench),
              'results': bench.results}
    measure(bench, arguments.only, report, out)
    finish(report, out)
    return report


def is_good(report):
    wrong = any(result.get('wrong') for result in report['results'].values()
                if isinstance(result, dict))
    return not report.get('failed') and not wrong


def both(arguments, work, out):
    """One after the other, on the same realms; what active security costs."""
    reports = {}
    for security in storm_ratios.MODES:
        say(f'security = "{security}"')
        (out / security).mkdir(exist_ok=True)
        reports[security] = storm(arguments, security, work, out / security)
    ratios = storm_ratios.compare(reports)
    (out / 'report.json').write_text(
        json.dumps({'ratios': ratios, 'security': reports}, indent=1) + '\n')
    (out / 'report.md').write_text(storm_ratios.markdown(ratios))
    for line in storm_ratios.lines(ratios):
        say(line)
    say(f'written: {out / "report.md"}, report.json')
    return all(is_good(report) for report in reports.values())


def parse_arguments(argv):
    parser = argparse.ArgumentParser(description='login storms, stock and ours side by side')
    parser.add_argument('--users', type=int, default=100_000)
    parser.add_argument('--seconds', type=float, default=60,
                        help='at 80 %% of the knee; saturation runs take a sixth, at most 10')
    parser.add_argument('--long', action='store_true', help='5 minutes at 80 %% of the knee')
    parser.add_argument('--only', type=names, default=list(storm_measures.MEASURES),
                        help='with commas between: ' + ', '.join(storm_measures.MEASURES))
    parser.add_argument('--grow', action='store_true', help='a realm of 1,000,000 users too')
    parser.add_argument('--enctype', type=enctype, default='aes128-gcm',
                        help='of the users\' keys, by name or number: '
                             + ', '.join(many_users.NUMBERS))
    parser.add_argument('--security', choices=(*storm_ratios.MODES, 'both'),
                        default=os.environ.get('MPCKDC_TESTED_SECURITY') or 'active',
                        help='our servers\'; both: one after the other, with the ratios')
    parser.add_argument('--repetitions', type=int, default=storm_measures.REPETITIONS)
    parser.add_argument('--work', help='where the realms are; otherwise below --out')
    parser.add_argument('--out', default=storm_realms.config_files.BUILD / 'storm')
    parser.add_argument('--remove', action='store_true', help='remove the realms at the end')
    arguments = parser.parse_args(argv)
    if arguments.users < 10 or arguments.seconds < 1 or arguments.repetitions < 1:
        parser.error('at least 10 users, 1 second and 1 repetition')
    if arguments.long:
        arguments.seconds = max(arguments.seconds, 300)
    return arguments


def enctype(text):
    found = [name for name, number in many_users.NUMBERS.items() if text in (name, str(number))]
    if not found:
        raise argparse.ArgumentTypeError(f'{text} is none of ' + ', '.join(many_users.NUMBERS))
    return found[0]


def names(text):
    chosen = text.split(',')
    unknown = [name for name in chosen if name not in storm_measures.MEASURES]
    if unknown:
        raise argparse.ArgumentTypeError(f'{unknown[0]} is no measurement')
    return [name for name in storm_measures.MEASURES if name in chosen]


def setup(arguments, bench):
    install = storm_realms.stock_build()
    return {
        **{name: getattr(arguments, name)
           for name in ('users', 'seconds', 'repetitions', 'only', 'enctype')},
        'security': bench.security, 'short': bench.short,
        'stock_enctype': storm_realms.stock_enctype(arguments.enctype),
        'options': ' '.join(sys.argv[1:]) or '(defaults)',
        'stock': (f'unpatched krb5 1.20.1 ({install.parent.name})' if install else
                  'the patched krb5kdc without a remote key (no unpatched build was found: '
                  '`krb5-patches/build.sh --stock` makes one)')}


def measure(bench, only, report, out):
    """Each measurement in turn; one that fails is reported and the others go on."""
    failed = []
    try:
        for name in only:
            say(f'measuring: {name}')
            try:
                storm_measures.MEASURES[name](bench)
            except (storm_realms.StormError, storm_realms.realm_module.RealmError,
                    subprocess.SubprocessError, OSError) as error:
                failed.append(name)
                print(f'{name}: {error}', file=sys.stderr)
                bench.close()  # the next one starts its realm afresh
            report['failed'] = failed
            (out / 'report.json').write_text(json.dumps(report, indent=1) + '\n')
    finally:
        bench.close()
    return failed


def finish(report, out):
    goals = storm_report.goals_of(report)
    report['goals'] = [vars(goal) for goal in goals]
    (out / 'report.json').write_text(json.dumps(report, indent=1) + '\n')
    (out / 'report.md').write_text(storm_report.markdown(report))
    drawn = storm_plots.draw(report, out)
    for goal in goals:
        word = {True: 'met', False: 'MISSED', None: '-'}[goal.met]
        say(f'{word:7}{goal.text}: {goal.seen}')
    say(f'written: {out / "report.md"}, report.json' + ''.join(f', {path.name}' for path in drawn))


def say(text):
    print(text, flush=True)


if __name__ == '__main__':
    sys.exit(main())
