# SPDX-License-Identifier: Apache-2.0
"""`make fault`: every fault on every server and on the KDC, under load, in network namespaces.

    matrix.py [--case p0:kill]... [--rate LOGINS_PER_SECOND] [--seed N] [--out FOLDER]

Prints a table, writes FOLDER/report.json and FOLDER/report.md, keeps the realm's logs in
FOLDER/realm/log. Exit status: 0 all good, 1 a case (or the control) was not, 2 it cannot run here.
"""

import argparse
import json
import pathlib
import shutil
import signal
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'realm'))

import config_files  # noqa: E402
import faults  # noqa: E402
import lab as lab_module  # noqa: E402
import network  # noqa: E402
import realm as realm_module  # noqa: E402

CONTROL_SECONDS = 4
COLUMNS = (  # heading, key, what it is
    ('fault', 'fault', 'what was done'),
    ('to', 'target', 'P0 leads the batches'),
    ('lasted s', 'fault_seconds', 'from its begin to its end'),
    ('logins', 'logins', 'attempted, also before and after the fault'),
    ('ok', 'ok', 'right password, a ticket'),
    ('of these late', 'late', 'or refused late: answered, but only after a second or more'),
    ('refused', 'wrong_password_refused', 'wrong password, called wrong'),
    ('unavailable', 'unavailable', 'kinit says "A service is not available"'),
    ('lost', 'lost', 'kinit says "Cannot contact any KDC"'),
    ('WRONG', 'wrong_answers', 'wrong answers: must be 0'),
    ('locked', 'lockouts', 'users locked out: must be 0'),
    ('counted', 'counted', 'users for whom a failure was counted: must be 0'),
    ('silent s', 'silence_seconds', 'longest time without any answer'),
    ('first s', 'first_answer_seconds', 'from the end of the fault to the first answer'),
    ('steady s', 'steady_seconds', 'from the end of the fault to the first login from which on '
                                   'none failed'),
)


def main():
    arguments = parse_arguments()
    reason = network.missing_rights()
    if reason:
        print(f'make fault cannot run here: {reason}', file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the lab is cleared away
    out = pathlib.Path(arguments.out)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    report = {'commit': config_files.commit(), 'rate': arguments.rate, 'seed': arguments.seed, 'cases': []}
    with lab_module.Lab(out, rate=arguments.rate, seed=arguments.seed) as lab:
        run_all(lab, arguments.case or every_case(), report, out)
    print('\n' + markdown(report))
    print(f'written: {out}/report.json, {out}/report.md')
    return 1 if failed(report) else 0


def parse_arguments():
    parser = argparse.ArgumentParser(description='faults of real processes under load')
    parser.add_argument('--case', action='append', type=case, metavar='TARGET:FAULT',
                        help=f'{"|".join(faults.TARGETS)}:{"|".join(faults.KINDS)}; may be given '
                             'again; all of them without it')
    parser.add_argument('--rate', type=float, default=10, help='logins a second')
    parser.add_argument('--seed', type=int, default=1, help='of who logs in when')
    parser.add_argument('--out', default=config_files.BUILD / 'fault')
    return parser.parse_args()


def case(text):
    target, _, kind = text.partition(':')
    if target not in faults.TARGETS or kind not in faults.KINDS:
        raise argparse.ArgumentTypeError(f'"{text}" is not {faults.TARGETS}:{faults.KINDS}')
    return target, kind


def every_case():
    return [(target, kind) for kind in faults.KINDS for target in faults.TARGETS]


def run_all(lab, cases, report, out):
    """The report is written after every case: an interrupted run has told what it saw."""
    for number, (target, kind) in enumerate(cases, 1):
        say = progress(f'{number}/{len(cases)}')
        try:
            found = lab.run(kind, target, faults.Timing(), say)
            found['complaints'] = lab_module.complaints(found)
            say('silent for {silence_seconds} s; of {logins} logins {unavailable} were told so, '
                '{lost} lost, {wrong_answers} wrong; first answer {first_answer_seconds} s after '
                'the end'.format(**found))
        except realm_module.RealmError as error:
            found = {'target': target, 'fault': kind, 'complaints': [str(error)]}
        report['cases'].append(found)
        write(report, out)
        for complaint in found['complaints']:
            say(f'FAILED: {complaint}')
        if 'logins' not in found:
            return  # the realm did not come back: no case after this one would mean anything
    report['control'] = lab.run_control(CONTROL_SECONDS, progress('control'))
    report['control']['complaints'] = control_complaints(report['control'])
    write(report, out)


def control_complaints(control):
    """The harness is blind if it sees nothing wrong where a right password was called wrong."""
    found = []
    if not control['wrong_answers']:
        found.append('the control\'s wrong answers were not seen')
    if not control['users_with_failures']:
        found.append('the control\'s counted failures were not seen')
    return found


def failed(report):
    return ('control' not in report or report['control']['complaints']
            or any(found['complaints'] for found in report['cases']))


def write(report, out):
    (out / 'report.json').write_text(json.dumps(report, indent=1) + '\n')
    (out / 'report.md').write_text(markdown(report))


def markdown(report):
    rows = [[heading for heading, _, _ in COLUMNS], ['---'] * len(COLUMNS)]
    for found in report['cases']:
        known = {**found, 'counted': len(found.get('users_with_failures', ()))}
        rows.append([str(known.get(key, '?')) for _, key, _ in COLUMNS])
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    lines = ['| ' + ' | '.join(cell.ljust(width) for cell, width in zip(row, widths)) + ' |'
             for row in rows]
    lines += ['', *(f'- **{heading}**: {text}' for heading, _, text in COLUMNS)]
    lines += ['', f'{report["rate"]:g} logins a second, seed {report["seed"]}, commit '
                  f'{report["commit"]}.', verdict(report), '']
    return '\n'.join(lines)


def verdict(report):
    bad = [f'{found["target"]} {found["fault"]}: {complaint}'
           for found in report['cases'] for complaint in found['complaints']]
    control = report.get('control')
    if control is None:
        bad.append('the control did not run')
        return 'FAILED: ' + '; '.join(bad)
    failures = sum(count for count, _ in control['users_with_failures'].values())
    seen = (f'Control: {control["wrong_answers"]} wrong answers and {failures} counted failures '
            'seen where a password was changed on purpose.')
    bad += control['complaints']
    return f'{seen}\nFAILED: ' + '; '.join(bad) if bad else f'{seen} All cases passed.'


def progress(prefix):
    begun = time.monotonic()

    def say(text):
        print(f'[{prefix}, {time.monotonic() - begun:3.0f} s] {text}', flush=True)
    return say


if __name__ == '__main__':
    sys.exit(main())
