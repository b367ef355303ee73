#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on an #include against layers.txt, and on an installed program that links testing/.

    layers_test.py SOURCE BUILD      SOURCE: the checkout; BUILD: where ninja built it
"""
import fnmatch
import pathlib
import re
import subprocess
import sys
import tempfile

INCLUDE = re.compile(r'^\s*#include "mpc-server/([\w/-]+)/[\w.-]+"', re.M)
PRODUCTION = ['mpc-server/cmd/mpc-server', 'mpc-server/cmd/mpc-admin',
              'kdc-plugin/kdb-module/mpc.so', 'kdc-plugin/kdb-tool/mpc-kdb',
              'integration-tests/storm/login-storm']
NOT_IN_PRODUCTION = re.compile(r'mpc-server/(testing|sim|bench)/')


def read_rules(path):
    """{room: the rooms that it may include}, and the order of the rooms."""
    rules = {}
    for line in path.read_text().splitlines():
        room, *uses = line.split('#')[0].split() or ['']
        if room:
            rules[room] = uses
    return rules


def room_of(path):
    """'circuit' of mpc-server/circuit/bitslice/x.h; of others the folder, for fnmatch."""
    parts = pathlib.PurePath(path).parts
    return parts[1] if parts[0] == 'mpc-server' else '/'.join(parts[:-1])


def uses_of(rules, room):
    return next((uses for name, uses in rules.items() if fnmatch.fnmatch(room, name)), None)


def upward_rules(rules):
    """Rooms that the list lets use a room above itself: the list is in the order of the layers."""
    order = [name for name in rules if '/' not in name and name != 'proto']
    return [f'layers.txt: {room} is below {used} and may not use it'
            for i, room in enumerate(order) for used in rules[room] if used in order[:i]]


def wrong_includes(rules, files):
    """`files`: (path, text) pairs. One line for each include that no rule allows."""
    wrong = []
    for path, text in files:
        room = room_of(path)
        uses = uses_of(rules, room)
        is_test = re.search(r'_(test|fuzz)\.cc$|/tests/|_check\.cc$', path) is not None
        for used in (match.split('/')[0] for match in INCLUDE.findall(text)):
            if used == room or uses == ['*'] or (is_test and used == 'testing'):
                continue
            if uses is None:
                wrong.append(f'{path}: no rule for {room} in layers.txt')
            elif used not in uses:
                wrong.append(f'{path}: {room} may not use {used}')
    return wrong


def sources(top):
    names = subprocess.run(['git', '-C', top, 'ls-files', '*.h', '*.cc', '*.c'], check=True,
                           capture_output=True, text=True).stdout.split()
    return [(name, (top / name).read_text()) for name in names if (top / name).exists()]


def wrong_links(build):
    wrong = []
    for program in PRODUCTION:
        if not (build / program).exists():
            wrong.append(f'{program} is not built')
            continue
        inputs = subprocess.run(['ninja', '-C', build, '-t', 'inputs', program], check=True,
                                capture_output=True, text=True).stdout.split()
        wrong += [f'{program} links {name}' for name in inputs
                  if NOT_IN_PRODUCTION.search(name) and name.endswith(('.a', '.o'))]
    return wrong


def check_the_check(rules):
    """What it must find, it finds."""
    found = wrong_includes(rules, [
        ('mpc-server/circuit/a.cc', '#include "mpc-server/service/server.h"\n'),
        ('mpc-server/wire/a.cc', '#include "mpc-server/testing/relay.h"\n'),
        ('mpc-server/attic/a.cc', '#include "mpc-server/base/bytes.h"\n'),
        ('kdc-plugin/client/a.cc', '#include "mpc-server/store/lmdb.h"\n'),
        ('mpc-server/wire/a_test.cc', '#include "mpc-server/testing/relay.h"\n'),
        ('mpc-server/circuit/bitslice/a.h', '#include "mpc-server/share/session.h"\n')])
    assert len(found) == 4, found
    assert upward_rules({'upper': ['lower'], 'lower': ['upper']}), 'an upward rule passed'
    with tempfile.NamedTemporaryFile('w', suffix='.txt') as rule:
        rule.write('base\nkey base  # comment\n')
        rule.flush()
        assert read_rules(pathlib.Path(rule.name)) == {'base': [], 'key': ['base']}


def main():
    top, build = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    rules = read_rules(top / 'mpc-server/layers.txt')
    check_the_check(rules)
    files = sources(top)
    wrong = upward_rules(rules) + wrong_includes(rules, files) + wrong_links(build)
    for line in wrong:
        print(line)
    includes = sum(len(INCLUDE.findall(text)) for _, text in files)
    print(f'{len(rules)} rules, {len(files)} files, {includes} includes, '
          f'{len(PRODUCTION)} programs: {len(wrong)} wrong')
    sys.exit(1 if wrong else 0)


if __name__ == '__main__':
    main()
