#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes limits.md from base/limits.h, where each limit is told once.

    limits_table.py            writes limits.md
    limits_table.py --check    fails when limits.md is not what limits.h says
"""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
HEADER = HERE.parent / 'base/limits.h'
DOCUMENT = HERE / 'limits.md'

INTRODUCTION = '''# Limits

All limits of mpc-server, made by `limits_table.py` from [limits.h](../base/limits.h): change them there. A limit
is checked where the value enters the process; whoever exceeds one gets the answer in the last column. Where there is
none the number is a choice.

| limit | value | why | exceeded |
|---|---|---|---|
'''
LIMIT = re.compile(r'inline constexpr \S+ (k\w+) = (.+);$')
UNITS = {'Microseconds': 'us', 'Milliseconds': 'ms', 'Seconds': 's', 'Minutes': 'min', 'Hours': 'h'}


def value_text(name, expression):
    """'4 MiB' of kMaxMessageBytes and '4 << 20', '300 s' of 'absl::Seconds(300)'."""
    duration = re.fullmatch(r'absl::(\w+)\((.+)\)', expression)
    if duration:
        return f'{number(duration[2])} {UNITS[duration[1]]}'
    value = number(expression)
    for suffix, unit in (('Gib', 'GiB'), ('Mib', 'MiB')):
        if name.endswith(suffix):
            return f'{value:,} {unit}'
    if name.endswith('Bytes'):
        for unit, shift in (('MiB', 20), ('KiB', 10)):
            if value >= 1 << shift and value % (1 << shift) == 0:
                return f'{value >> shift} {unit}'
        return f'{value} bytes'
    return f'{value:,}'


def number(expression):
    """C++ constants of limits.h: 4096, 500'000, 4 << 20, 24 * 7."""
    match = re.fullmatch(r"([\d']+)(?: (<<|\*) (\d+))?", expression)
    left = int(match[1].replace("'", ''))
    if match[2] is None:
        return left
    return left << int(match[3]) if match[2] == '<<' else left * int(match[3])


def rows(text):
    comment = []
    for line in text.splitlines():
        title = re.fullmatch(r'// ---- (.+) ----', line)
        limit = LIMIT.fullmatch(line)
        if title:
            yield f'| **{title[1]}** | | | |'
        elif limit:
            why, _, exceeded = ' '.join(comment).partition(' Exceeded: ')
            assert why, f'{limit[1]}: no reason in limits.h'
            cells = (limit[1], value_text(*limit.groups()), why.rstrip('.'), exceeded.rstrip('.'))
            yield '| ' + ' | '.join(cells) + ' |'
        elif line.startswith('inline constexpr'):
            raise ValueError(f'limits.h: not understood: {line}')
        comment = comment + [line[3:]] if line.startswith('// ') and not title else []


def main():
    document = INTRODUCTION + '\n'.join(rows(HEADER.read_text())) + '\n'
    if sys.argv[1:] != ['--check']:
        DOCUMENT.write_text(document)
    elif DOCUMENT.read_text() != document:
        sys.exit('doc/limits.md is not what base/limits.h says: run mpc-server/doc/limits_table.py')


if __name__ == '__main__':
    main()
