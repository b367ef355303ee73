#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Debian's changelog of one version, from the newest section of CHANGELOG.md.

    changelog.py CHANGELOG.md VERSION DISTRIBUTION EPOCH

VERSION begins with that section's; EPOCH, in seconds, becomes the entry's date and with it that of all files.
"""
import datetime
import email.utils
import pathlib
import re
import sys
import textwrap

MAINTAINER = 'mpc-kdc maintainers <maintainers@mpc-kdc.example>'


def newest(text):
    """The version, and its points as plain text."""
    title, body = re.search(r'^## ([\d.]+)[^\n]*\n(.*?)(?=^## |\Z)', text, re.M | re.S).groups()
    points = re.findall(r'^- (.*?)(?=^- |\n\n|\Z)', body, re.M | re.S)
    return title, [plain(point) for point in points]


def plain(markdown):
    text = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', markdown)
    return ' '.join(re.sub(r'[*`]', '', text).split())


def main():
    path, version, distribution, epoch = sys.argv[1:]
    found, points = newest(pathlib.Path(path).read_text())
    if not version.startswith(found):
        sys.exit(f'{path} begins with version {found}, and the packages are to be {version}')
    print(f'mpc-kdc ({version}) {distribution}; urgency=medium\n')
    for point in points:
        print(textwrap.fill(point, 78, initial_indent='  * ', subsequent_indent='    ', break_long_words=False,
                            break_on_hyphens=False))
    date = email.utils.format_datetime(datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc))
    print(f'\n -- {MAINTAINER}  {date}')


if __name__ == '__main__':
    main()
