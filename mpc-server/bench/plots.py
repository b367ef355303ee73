# SPDX-License-Identifier: Apache-2.0
"""Draws what mpc-bench measures: `make bench-plots`.

    plots.py MPC-BENCH DIRECTORY [--draw-only]

Measures and writes DIRECTORY/*.json, then draws DIRECTORY/*.svg and *.png from them. --draw-only
draws again what is there.
"""

import itertools
import json
import os
import subprocess
import sys

import matplotlib
matplotlib.use('Agg')
import matplotlib.pyplot as plt  # noqa: E402  the backend comes first

# From one login's blocks to a batch that no cache holds.
BATCHES = '--batch=16,64,256,512,1024,2048,4096,8192,16384,32768,65536,131072,262144'
SMALL = '--batch=1,8,32,64,128,256,384,512,768,1024,2048,4096,8192,16384'
# Each file, and what measures it.
RUNS = {
    'plot-channels': ['aes', '--channel=all', '--with-floor', BATCHES, '--seconds=0.9'],
    'plot-memory': ['aes', '--parties=threads', '--channel=memory', BATCHES, '--seconds=0.9'],
    'plot-sboxes': ['aes', '--sbox=throughput,latency', SMALL, '--seconds=0.9'],
}
# The same colour and mark for a thing in every figure; told apart in grey too.
LOOK = {
    'aead': ('#0072b2', 'o', 'AES-GCM records'),
    'tls': ('#d55e00', 's', 'TLS records'),
    'tcp': ('#009e73', '^', 'plain TCP'),
    'memory': ('#666666', 'D', 'memory, on threads'),
    'throughput': ('#0072b2', 'o', '17 bits, 4 rounds (throughput)'),
    'latency': ('#cc79a7', 's', '22 bits, 3 rounds (latency)'),
}
PAPER_ONE_CORE = 100_103  # blocks/s of three servers with a core each


def load(directory, name):
    with open(f'{directory}/{name}.json', encoding='utf-8') as file:
        found = json.load(file)
    wrong = [r for r in found['results'] if not r['verified']]
    if wrong:
        sys.exit(f'{name}: outputs that were not verified are not drawn: {wrong[0]}')
    return found


def series(results, key):
    """Results by the value of `key`, each in the order of the batches."""
    by = {}
    for result in sorted(results, key=lambda r: r['batch']):
        by.setdefault(result[key], []).append(result)
    return by


def axes(xlabel, ylabel, title, ax=None):
    figure, ax = plt.subplots(figsize=(8, 5.4)) if ax is None else (ax.figure, ax)
    ax.set_xscale('log', base=2)
    ax.set_yscale('log')
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    ax.set_title(title, fontsize=12)
    ax.grid(True, which='major', color='#cccccc', linewidth=0.7)
    ax.grid(True, which='minor', axis='y', color='#eeeeee', linewidth=0.5)
    return figure, ax


def curve(ax, name, xs, ys, label=None, dashed=False, spread=None):
    colour, mark, text = LOOK[name]
    ax.plot(xs, ys, color=colour, marker=None if dashed else mark, markersize=5,
            linewidth=1.2 if dashed else 1.8, linestyle='--' if dashed else '-',
            label=text if label is None else label)
    if spread is not None:
        ax.fill_between(xs, *spread, color=colour, alpha=0.15, linewidth=0)


def number(value, _=None):
    """Round numbers for ticks: 512, 20 k, 1.5 M."""
    for size, unit in ((1e6, ' M'), (1e3, ' k')):
        if value >= max(size, 1e4):
            return f'{value / size:g}{unit}'
    return f'{value:g}'


def finish(ax):
    """Ticks and legend."""
    ax.xaxis.set_major_formatter(lambda v, _: f'{v / 1024:g} Ki' if v >= 1024 else f'{v:g}')
    ax.yaxis.set_major_formatter(number)
    low, high = ax.get_ylim()
    if high / low < 100:  # few decades: name what lies between them
        ax.yaxis.set_minor_formatter(lambda v, _: number(v) if f'{v:e}'[0] in '25' else '')
        ax.tick_params(axis='y', which='minor', labelsize=8)
    handles, _ = ax.get_legend_handles_labels()
    ax.legend(frameon=True, fontsize=9, ncol=2 if len(handles) > 5 else 1)


def save(figure, found, directory, name, note=''):
    for ax in figure.axes:
        finish(ax)
    machine = found['machine']
    figure.text(0.01, 0.01, f'AES-128, a key per block, {machine["best_isa"]}; three parties share '
                f'{machine["cores"]} cores of {machine["cpu"]}, {machine["kernel"]}\n'
                f'commit {found["commit"]}. {note}', fontsize=7.5, color='#444444', va='bottom')
    figure.tight_layout(rect=(0, 0.055, 1, 1))
    for kind in ('svg', 'png'):
        figure.savefig(f'{directory}/{name}.{kind}', dpi=150)
    plt.close(figure)
    print(f'{directory}/{name}.svg, .png')


def runs_apart(field):
    """The slowest and the fastest run of each result."""
    return lambda r: (r['spread'][field]['min'], r['spread'][field]['max'])


# Each figure against the batch's size: file, axis, title, value and shade of a result, note. The
# first two are the paper's Figures 4 and 5 for ours.
FIGURES = (
    ('throughput', 'blocks per second, whole machine', 'Throughput against batch size',
     lambda r: r['blocks_per_s'], runs_apart('blocks_per_s'),
     'Shaded: slowest to fastest run. One ring. S-box by the batch\'s size.'),
    ('latency', 'time of a batch, ms', 'Latency against batch size',
     lambda r: r['latency_ms']['p50'], lambda r: (r['latency_ms']['p50'], r['latency_ms']['p99']),
     'Line: median; shaded up to p99; the latest of the three parties. One ring, loopback.'),
    ('cpu', 'blocks per CPU-second, three parties together',
     'Blocks per CPU-second against batch size',
     lambda r: r['blocks_per_cpu_s'], runs_apart('blocks_per_cpu_s'),
     'Dashed: the same messages without computation. Shaded: slowest to fastest run.'),
)


def draw(channels, memory, directory, name, ylabel, title, value, shade, note):
    figure, ax = axes('blocks in a batch', ylabel, title)
    for channel, results in series(channels['results'] + memory['results'], 'channel').items():
        xs = [r['batch'] for r in results]
        curve(ax, channel, xs, [value(r) for r in results],
              spread=tuple(zip(*(shade(r) for r in results))))
        if name == 'cpu' and 'floor' in results[0]:
            curve(ax, channel, xs, [value(r['floor']) for r in results], dashed=True,
                  label=LOOK[channel][2] + ', without computing')
    if name == 'throughput':
        ax.axhline(PAPER_ONE_CORE, color='black', linewidth=1, linestyle=':',
                   label='Araki et al. 2016: 3 servers x 1 core')
    save(figure, channels, directory, name, note)


def draw_sboxes(found, directory):
    """Left what somebody waits for, right what it costs: on a busy machine the surer measure."""
    by = series(found['results'], 'sbox')
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5.2))
    for ax, unit, of in ((left, 'median time of a batch, ms', lambda r: r['latency_ms']['p50']),
                         (right, 'CPU of a batch, three parties together, ms',
                          lambda r: 1000 * r['batch'] / r['blocks_per_cpu_s'])):
        axes('blocks in a batch', unit, 'The two S-boxes: rounds against traffic', ax)
        for name, results in by.items():
            curve(ax, name, [r['batch'] for r in results], [of(r) for r in results])
        crossing = crossover(by, of)
        if crossing is not None:
            ax.axvline(crossing, color='black', linewidth=1, linestyle=':',
                       label=f'from {crossing} blocks on, 4 rounds cost less')
    channel = found['results'][0]['channel']
    save(figure, found, directory, 'sboxes', f'{LOOK[channel][2]}, loopback.')


def crossover(by, of):
    """The smallest batch from which on the throughput S-box is never the dearer one."""
    pairs = list(zip(by['throughput'], by['latency']))
    cheaper = itertools.takewhile(lambda p: of(p[0]) <= of(p[1]), reversed(pairs))
    return min((t['batch'] for t, _ in cheaper), default=None)


def main():
    if len(sys.argv) < 3 or sys.argv[3:] not in ([], ['--draw-only']):
        sys.exit(__doc__)
    bench, directory = sys.argv[1:3]
    os.makedirs(directory, exist_ok=True)
    if not sys.argv[3:]:
        for name, run in RUNS.items():
            print('measuring: mpc-bench', *run, flush=True)
            subprocess.run([bench, *run, '--brief', f'--save={directory}/{name}.json'], check=True,
                           stdout=subprocess.DEVNULL)
    channels, memory = load(directory, 'plot-channels'), load(directory, 'plot-memory')
    for figure in FIGURES:
        draw(channels, memory, directory, *figure)
    draw_sboxes(load(directory, 'plot-sboxes'), directory)


if __name__ == '__main__':
    main()
