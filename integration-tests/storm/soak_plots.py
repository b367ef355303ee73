# SPDX-License-Identifier: Apache-2.0
"""The drawing of `make soak`: events, logins, latency, memory and descriptors over time."""


def draw(report, folder):
    """Files written; none without matplotlib, which `make soak` installs."""
    try:
        import matplotlib
    except ImportError:
        return []
    matplotlib.use('Agg')
    import matplotlib.pyplot as plt
    begin = report['begin']
    figure, axes = plt.subplots(7, 1, figsize=(11, 15), sharex=True)
    events(report['events'], axes[0], begin)
    logins_per_s(report, axes[1])
    latency(report, axes[2])
    for ax, (what, factor, label) in zip(axes[3:], (
            ('anon', 1024, 'memory, MiB'), ('locked', 1024, 'locked, MiB'),
            ('descriptors', 1, 'descriptors'), ('store', 1 << 20, 'store, MiB'))):
        lines(report, ax, what, factor)
        ax.set_ylabel(label)
    for ax in axes:
        for event in report['events']:
            if event['outage']:
                shade(event, ax, begin)
        ax.grid(True, color='#dddddd')
    axes[-1].set_xlabel('minutes')
    machine = report['machine']
    figure.text(0.01, 0.003, f'{machine["cores"]} cores of {machine["cpu"]}, commit '
                f'{machine["commit"]}, {report["setup"]["users"]:,} users. Grey: a party is away on '
                'purpose, of a realm that has no other machine of it', fontsize=8, color='#444444')
    figure.tight_layout(rect=(0, 0.012, 1, 1))
    written = []
    for kind in ('svg', 'png'):
        path = folder / f'soak.{kind}'
        figure.savefig(path, dpi=110)
        written.append(path)
    plt.close(figure)
    return written


def middles(report):
    width = report['setup']['minute']
    return [(row['from_s'] + width / 2) / 60 for row in report['minutes']], width


def logins_per_s(report, ax):
    xs, width = middles(report)
    ax.step(xs, [row['ok'] / width for row in report['minutes']], where='mid', color='#0072b2',
            label='good')
    ax.step(xs, [row['not_ok'] / width for row in report['minutes']], where='mid',
            color='#d55e00', label='lost, failed')
    ax.set_ylim(bottom=0)
    ax.set_ylabel('logins per second')
    beside(ax)


def latency(report, ax):
    xs, _ = middles(report)
    for key, style in (('p50_ms', '-'), ('p99_ms', '--'), ('longest_ms', ':')):
        ax.plot(xs, [row[key] if row[key] is not None else float('nan')
                     for row in report['minutes']], style, color='#0072b2', label=key[:-3])
    ax.set_yscale('log')
    ax.set_ylabel('ms')
    beside(ax)


def lines(report, ax, what, factor):
    for name in sorted({s['name'] for s in report['samples'] if what in s}):
        own = [s for s in report['samples'] if s['name'] == name and what in s]
        xs = [(s['at'] - report['begin']) / 60 for s in own]
        ys = [s[what] / factor for s in own]
        for at in range(len(own) - 1, 0, -1):  # a new process is a new line
            if own[at].get('pid') != own[at - 1].get('pid'):
                xs.insert(at, xs[at])
                ys.insert(at, float('nan'))
        ax.plot(xs, ys, label=name, linewidth=1)
    if ax.lines:
        beside(ax)


def beside(ax):
    ax.legend(loc='upper left', bbox_to_anchor=(1.005, 1), fontsize=8, frameon=False)


def minutes(event, begin):
    return (event['begin'] - begin) / 60, (event.get('outage_end', event['end']) - begin) / 60


def shade(event, ax, begin):
    ax.axvspan(*minutes(event, begin), color='#bbbbbb', alpha=0.6, linewidth=0)


def events(all_of_them, ax, begin):
    """A line for each kind: those that failed are red."""
    kinds = list(dict.fromkeys(event['name'] for event in all_of_them))
    for event in all_of_them:
        first, last = minutes(event, begin)
        colour = '#d55e00' if event['error'] else '#009e73'
        at = kinds.index(event['name'])
        ax.plot([first, max(first, last)], [at, at], color=colour, linewidth=4)
        ax.plot(first, at, '|', color=colour, markersize=7)
    ax.set_yticks(range(len(kinds)), kinds, fontsize=8)
    ax.invert_yaxis()
