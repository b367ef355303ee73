# SPDX-License-Identifier: Apache-2.0
"""The drawings of `make storm`: throughput, CPU, latency, the ramp, growth. SVG and PNG."""

import itertools

from storm_goals import PAPER
from storm_report import phases

# The same colour for a thing in every figure; told apart in grey too.
LOOK = {'stock': ('#666666', 's'), 'ours': ('#0072b2', 'o'), 'jobs': ('#009e73', '^'),
        'aes128-gcm': ('#0072b2', 'o'), 'aes256-gcm': ('#d55e00', 's')}
KINDS = ('one-step', 'two-step', 'AS+TGS')


def draw(report, folder):
    """Files written; none without matplotlib, which `make storm` installs."""
    try:
        import matplotlib
    except ImportError:
        return []
    matplotlib.use('Agg')
    import matplotlib.pyplot as plt
    results, written = report['results'], []
    for name, figure_of in (('throughput', throughput), ('cpu', cpu), ('latency', latency),
                            ('ramp', ramp), ('growth', growth)):
        figure, ax = plt.subplots(figsize=(8, 5.2))
        if figure_of(results, ax):
            note = f'{report["machine"]["cores"]} cores of {report["machine"]["cpu"]}, commit ' \
                   f'{report["machine"]["commit"]}, {report["setup"]["users"]:,} users'
            figure.text(0.01, 0.01, note, fontsize=7.5, color='#444444')
            figure.tight_layout(rect=(0, 0.03, 1, 1))
            for kind in ('svg', 'png'):
                path = folder / f'{name}.{kind}'
                figure.savefig(path, dpi=150)
                written.append(path)
        plt.close(figure)
    return written


def throughput(results, ax):
    bars = [(f'{side}\n{kind}', results[f'{side} {kind}'], side) for kind in KINDS
            for side in ('stock', 'ours') if f'{side} {kind}' in results]
    if 'jobs' in results:
        bars.append(('jobs,\nno KDC', results['jobs'], 'jobs'))
    for at, (_, result, side) in enumerate(bars):
        rate, spread = result['logins_per_s'], result.get('spread')
        error = [[rate - spread['min']], [spread['max'] - rate]] if spread else None
        ax.bar(at, rate, color=LOOK[side][0], yerr=error, capsize=4)
    ax.axhline(PAPER['logins_per_s'], color='black', linestyle=':', linewidth=1)
    ax.text(0, PAPER['logins_per_s'], 'Araki et al. 2016, 48 cores', va='bottom', fontsize=9)
    ax.set_xticks(range(len(bars)), [label for label, _, _ in bars])
    ax.set(ylabel='logins per second',
           title='Logins per second at saturation (bars: slowest to fastest run)')
    return bars


def cpu(results, ax):
    parts = (('kdc_cpu_per_1000', 'krb5kdc', '#0072b2', ''),
             ('servers_cpu_per_1000', 'three servers', '#009e73', '//'))
    names = [f'{side} {kind}' for kind in KINDS for side in ('stock', 'ours')
             if f'{side} {kind}' in results]
    below = [0.0] * len(names)
    for key, label, colour, hatch in parts:
        values = [1000 * (results[name].get(key) or 0.0) for name in names]
        ax.bar(range(len(names)), values, bottom=below, label=label, color=colour, hatch=hatch)
        below = [low + value for low, value in zip(below, values)]
    ax.set_xticks(range(len(names)), [name.replace(' ', '\n', 1) for name in names])
    ax.set(ylabel='CPU ms per 1,000 logins', title='What a login costs')
    ax.legend()
    return names


def latency(results, ax):
    """Shares of logins that took at most so long, at saturation and with the servers' phases."""
    drawn = False
    for side in ('stock', 'ours'):
        bins = (results.get(f'{side} one-step') or {}).get('histogram_ms')
        if not bins:
            continue
        ys = list(itertools.accumulate(count for _, _, count in bins))
        ax.step([high for _, high, _ in bins], [y / ys[-1] for y in ys], where='post',
                color=LOOK[side][0], label=f'{side}, saturation')
        drawn = True
    split = phases(results.get('ours one-step') or {})
    if split:
        ax.set_xlabel('ms at the client. Ours, mean: ' + ', '.join(
            f'{name} {value:.1f}' for name, value in split.items()), fontsize=9)
    ax.set(xscale='log', ylabel='share of logins', title='Latency at the client')
    ax.grid(True, color='#dddddd')
    if drawn:
        ax.legend()
    return drawn


def ramp(results, ax):
    steps = (results.get('ours ramp') or {}).get('steps')
    if not steps:
        return False
    xs = [step['offered_per_s'] for step in steps]
    for key, style in (('p50_ms', '-'), ('p99_ms', '--')):
        ax.plot(xs, [step[key] for step in steps], style, color=LOOK['ours'][0], marker='o',
                label=key[:3])
    ax.axvline(results['ours ramp']['knee_per_s'], color='black', linestyle=':', label='knee')
    ax.set(yscale='log', xlabel='logins offered per second (Poisson)', ylabel='ms',
           title='Latency against load')
    ax.grid(True, which='both', color='#dddddd')
    ax.legend()
    return True


def growth(results, ax):
    points = results.get('growth') or []
    for enctype in sorted({point['enctype'] for point in points}):
        own = [point for point in points if point['enctype'] == enctype]
        colour, mark = LOOK.get(enctype, LOOK['aes128-gcm'])
        ax.plot([p['users'] for p in own], [p['logins_per_s'] for p in own], color=colour,
                marker=mark, label=enctype)
    if points:
        ax.set_xscale('log')
        ax.set_ylim(bottom=0)
        ax.legend()
    ax.set(xlabel='users', ylabel='logins per second',
           title='Throughput against the number of users')
    return bool(points)
