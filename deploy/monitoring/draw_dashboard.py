#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the panels of dashboard.json from what a Prometheus has, for who has no Grafana at hand: a report, a
ticket, a picture for the file.

    draw_dashboard.py [--prometheus URL] --realm EXAMPLE.COM [--minutes 60] [--title TEXT] FILE

FILE ends with .png, .svg or .pdf. Needs python3-matplotlib. The queries are Grafana's own, from
make_dashboard.py; a panel that shows nothing says so."""

import argparse
import json
import pathlib
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import make_dashboard  # pylint: disable=wrong-import-position

POINTS = 240     # of a line
LEAST_WINDOW = 4  # scrapes or steps that a rate looks back over
COLUMNS = 3
NAMED = 8        # lines of a panel that the legend names: those that reach highest
UNITS = {'reqps': '/s', 'ops': '/s', 's': 's', 'Bps': 'bytes/s', 'bytes': 'bytes', 'short': ''}


class Source:
    """A Prometheus, and what the dashboard's variables are."""

    def __init__(self, url, realm, scrape_seconds=15):
        self.url, self.realm, self.scrape = url.rstrip('/'), realm, scrape_seconds

    def get(self, path, **parameters):
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f'{self.url}/api/v1/{path}?{query}', timeout=60) as reply:
            answer = json.load(reply)
        if answer['status'] != 'success':
            raise OSError(answer.get('error', 'no answer'))
        return answer['data']

    def lines(self, target, begin, end):
        """[(legend, [times], [values])] of one query of a panel."""
        step = max((end - begin) / POINTS, self.scrape)
        window = f'{max(1, round(LEAST_WINDOW * step))}s'
        query = target['expr'].replace('$realm', self.realm).replace('$__rate_interval', window)
        found = []
        for series in self.get('query_range', query=query, start=begin, end=end, step=step)['result']:
            points = [(float(at), float(value)) for at, value in series['values']]
            found.append((legend(target['legendFormat'], series['metric']),
                          [at for at, _ in points], [value for _, value in points]))
        return sorted(found)


def legend(text, labels):
    return re.sub(r'{{(\w+)}}', lambda m: labels.get(m.group(1), ''), text).strip()


def rows():
    """[(title, [panels])] in the dashboard's order."""
    found = []
    for panel in make_dashboard.panels():
        if panel['type'] == 'row':
            found.append((panel['title'], []))
        else:
            found[-1][1].append(panel)
    return found


def draw_panel(ax, panel, lines, begin, end, dates):
    defaults = panel['fieldConfig']['defaults']
    ax.set_title(panel['title'], fontsize=9, loc='left', fontweight='bold')
    named = sorted((line for line in lines if any(line[2])), key=lambda line: -max(map(abs, line[2])))[:NAMED]
    for line in lines:
        text, times, values = line
        ax.plot(dates(times), values, linewidth=1.2, label=text if line in named else None)
    said = 'nothing' if not lines else '' if named else '0'
    ax.text(0.5, 0.5, said, transform=ax.transAxes, ha='center', va='center', color='#888888')
    if defaults['min'] == 0:
        ax.set_ylim(bottom=0)
        if not named:
            ax.set_ylim(top=1)
    ax.set_xlim(*dates([begin, end]))
    ax.set_ylabel(UNITS[defaults['unit']], fontsize=8)
    ax.tick_params(labelsize=7)
    ax.grid(True, color='#e4e4e4')
    if named:
        left = len([line for line in lines if any(line[2])]) - len(named)
        ax.legend(fontsize=6, loc='upper left', bbox_to_anchor=(1.0, 1.02), frameon=False,
                  title=f'and {left} more' if left else None, title_fontsize=6, handlelength=1.2)


def draw(source, begin, end, title, path):
    """Writes the picture; returns how many panels have a line, and of how many."""
    import datetime
    import matplotlib
    matplotlib.use('Agg')
    import matplotlib.dates
    import matplotlib.pyplot as plt

    def dates(times):
        return [datetime.datetime.fromtimestamp(at, datetime.timezone.utc) for at in times]
    panels = [(row, panel) for row, members in rows() for panel in members]
    height = -(-len(panels) // COLUMNS)
    figure, axes = plt.subplots(height, COLUMNS, figsize=(6.2 * COLUMNS, 2.1 * height), squeeze=False,
                                layout='constrained')
    shown = 0
    for ax, (row, panel) in zip(axes.flat, panels):
        lines = [line for target in panel['targets'] for line in source.lines(target, begin, end)]
        shown += bool(lines)
        draw_panel(ax, {**panel, 'title': f'{row}: {panel["title"]}'}, lines, begin, end, dates)
        ax.xaxis.set_major_locator(matplotlib.dates.AutoDateLocator(minticks=3, maxticks=5))
        ax.xaxis.set_major_formatter(matplotlib.dates.DateFormatter('%H:%M:%S'))
    for ax in list(axes.flat)[len(panels):]:
        ax.axis('off')
    figure.suptitle(title, fontsize=11, x=0.01, ha='left', wrap=True)
    figure.savefig(path, dpi=70)
    plt.close(figure)
    return shown, len(panels)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--prometheus', default='http://127.0.0.1:9090', metavar='URL')
    parser.add_argument('--realm', required=True)
    parser.add_argument('--minutes', type=float, default=60, help='that end now (60)')
    parser.add_argument('--scrape', type=float, default=15, metavar='SECONDS', help='between scrapes (15)')
    parser.add_argument('--title', default='')
    parser.add_argument('file')
    arguments = parser.parse_args()
    end = time.time()
    source = Source(arguments.prometheus, arguments.realm, arguments.scrape)
    try:
        shown, panels = draw(source, end - 60 * arguments.minutes, end,
                             arguments.title or f'{arguments.realm}, {arguments.minutes:g} minutes', arguments.file)
    except ImportError:
        sys.exit('draw_dashboard.py: install python3-matplotlib')
    except (urllib.error.URLError, OSError) as error:
        sys.exit(f'draw_dashboard.py: {arguments.prometheus} does not answer: {error}')
    print(f'{arguments.file}: {shown} of {panels} panels show something')
    if not shown:
        sys.exit(f'draw_dashboard.py: nothing of the realm {arguments.realm}: is its name right, and does Prometheus '
                 'scrape its servers (deploy/monitoring/README.md)?')


if __name__ == '__main__':
    main()
