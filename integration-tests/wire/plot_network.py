# SPDX-License-Identifier: Apache-2.0
"""Throughput against batch size, a panel per network, with what the line allows.

    plot_network.py [build/bench/network.json]    draws a report again
"""

import json
import pathlib
import sys

COLOURS = {'tls': 'tab:blue', 'aead': 'tab:orange', 'tcp': 'tab:green'}
MARKERS = 'so^vD'
STYLES = ('-', '-.', '-')
PANEL_INCHES = (5.0, 4.6)


def draw(report, folder):
    """The files written; none, with a message, where matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        print('no plot: install python3-matplotlib', file=sys.stderr)
        return []
    matplotlib.use('Agg')
    from matplotlib import pyplot
    networks = [n for n in report['networks'] if n['results']]
    if not networks:
        return []
    figure, panels = pyplot.subplots(1, len(networks), squeeze=False, layout='constrained',
                                     figsize=(PANEL_INCHES[0] * len(networks), PANEL_INCHES[1]))
    for panel, network in zip(panels[0], networks):
        draw_network(panel, network)
    panels[0][0].set_ylabel('AES blocks per second')
    figure.text(0.01, -0.02, caption(networks[0]['results'][0]), fontsize=8, va='top')
    files = [folder / f'network.{kind}' for kind in ('svg', 'png')]
    for file in files:
        figure.savefig(file, dpi=150, bbox_inches='tight')
    pyplot.close(figure)
    return files


def draw_network(panel, network):
    series = {}
    for result in network['results']:
        series.setdefault((result['channel'], result['way']), []).append(result)
    ways = list(dict.fromkeys(way for _, way in series))
    for (channel, way), results in series.items():
        panel.plot(*points(results, 'blocks_per_s'), label=f'{channel}, {way}',
                   marker=MARKERS[ways.index(way) % len(MARKERS)], color=COLOURS.get(channel),
                   linestyle=STYLES[ways.index(way) % len(STYLES)],
                   alpha=0.4 if way == ways[0] else 1)     # the baseline is pale
    doubtful = [r for r in network['results'] if r['doubts']]
    panel.plot(*points(doubtful, 'blocks_per_s'), marker='x', markersize=10, linestyle='',
               color='black', label='doubtful' if doubtful else None)
    results = max(series.values(), key=len)
    batches = [r['batch'] for r in results]
    panel.plot(*points(results, 'rate_bound_blocks_per_s'), '--', color='black',
               label='bound by the rate')
    panel.plot(batches, [1e3 * r['batch'] / r['latency_bound_ms'] for r in results], ':',
               color='black', label='bound by the latency')
    panel.set_xscale('log', base=2)
    panel.set_yscale('log')
    panel.set_xticks(batches, [f'{b:,}' for b in batches])
    panel.set_ylim(0.15 * min(r['blocks_per_s'] for r in network['results']),
                   3 * max(r['rate_bound_blocks_per_s'] for r in results))
    panel.yaxis.set_major_formatter(lambda value, _: f'{value:,.0f}')
    panel.yaxis.set_minor_formatter(lambda value, _: '')
    panel.set_xlabel('blocks in a batch')
    ping = network['proof']['ping_ms']['p50']
    panel.set_title(f'{network["network"]}\n(ping {ping:.3f} ms)', fontsize=10)
    panel.grid(True, which='both', alpha=0.25)
    panel.legend(fontsize=7, loc='lower right', framealpha=0.7)


def points(results, key):
    return [r['batch'] for r in results], [r[key] for r in results]


def caption(result):
    about = result['about']
    machine = about.get('machine', {})
    words = [f'{machine[key]}' for key in ('cpu', 'kernel') if key in machine]
    return ', '.join([*words, f'commit {about.get("commit", "unknown")}',
                      'three parties and the network on one machine',
                      'x: doubtful, the report says why'])


if __name__ == '__main__':
    source = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else 'build/bench/network.json')
    print('\n'.join(str(f) for f in draw(json.loads(source.read_text()), source.parent)))
