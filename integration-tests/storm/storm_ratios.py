# SPDX-License-Identifier: Apache-2.0
"""Runs of `make storm` under active and under semi-honest security, beside each other."""

from storm_report import number, section

MODES = ('semi-honest', 'active')
FIGURES = (('logins_per_s', 'logins/s', 0), ('p50_ms', 'p50 ms', 1), ('p99_ms', 'p99 ms', 1),
           ('servers_cpu_per_1000', 'servers s/1,000', 3))


def compare(reports):
    """From the report of each mode: both figures of each run, and the active one's share of the
    other. What is of stock's KDC says how much the machine changed from one run to the next."""
    before, after = (reports[mode]['results'] for mode in MODES)
    found = {}
    for run in before:
        for figure, _, _ in FIGURES:
            values = [_figure(results, run, figure) for results in (before, after)]
            if all(values):
                found.setdefault(run, {})[figure] = {
                    **dict(zip(MODES, values)), 'ratio': values[1] / values[0]}
    return found


def _figure(results, run, figure):
    result = results.get(run)
    return result.get(figure) if isinstance(result, dict) else None


def lines(ratios):
    """One for each run: what a log says."""
    return [f'{run}: ' + ', '.join(
        f'{label} {number(pair["semi-honest"], digits)} and {number(pair["active"], digits)}, '
        f'ratio {pair["ratio"]:.2f}' for label, digits, pair in _of(figures))
        for run, figures in ratios.items()]


def _of(figures):
    return [(label, digits, figures[figure]) for figure, label, digits in FIGURES
            if figure in figures]


def markdown(ratios):
    rows = [(run, label, number(pair['semi-honest'], digits), number(pair['active'], digits),
             f'{pair["ratio"]:.2f}')
            for run, figures in ratios.items() for label, digits, pair in _of(figures)]
    return '# The login storm: active beside semi-honest\n\n' + section(
        'Ratios', ('run', 'figure', *MODES, 'active / semi-honest'), rows,
        '\n\nThe whole reports: ' + ', '.join(f'[{mode}]({mode}/report.md)' for mode in MODES)
        + '. Both ran one after the other; stock\'s rows say how much the machine changed.\n')
