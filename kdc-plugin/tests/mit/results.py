#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes RESULTS.md from what krb5-check.sh left in the folder of its results with real servers:

    results.py build/krb5/patched-*/servers/check-*  > RESULTS.md

A later folder's result of a script stands in place of an earlier one's."""

import collections
import dataclasses
import pathlib
import re
import sys

import expected

HEAD = '''# MIT's scripts with three real servers

Written by `results.py` from runs of `krb5-check.sh --variants servers`; every reason stands in `expected.toml`.
"passes": as MIT wrote it. "differs": to its end, with exactly the listed differences. "does not apply": passes, but makes no
database, so no server is asked. Jobs: computed by all three servers, in all realms of the script together; keys: different ones
that these jobs used (a login of a `local` user uses krbtgt's alone). Both are counted in the servers' audit logs; a script without jobs
has failed unless the list says why it has none.
'''
WORDS = {'pass': 'passes', 'differs': 'differs', 'alone': 'does not apply', 'fail': 'FAILS',
         'skip': 'passes, in part'}
OURS = ('tests/t_replica.py', 'tests/t_kdb5_util.py')


@dataclasses.dataclass
class Result:
    script: str
    verdict: str
    log: str

    def counts(self):
        """(jobs, keys, writes of keys), of lines that k5test.py printed."""
        found = re.findall(r'^\*\*\* Servers: .*: (\d+) jobs.* with (\d+) keys; (\d+) writes', self.log,
                           re.M)
        return tuple(sum(int(one[i]) for one in found) for i in range(3))

    def asked(self):
        jobs, keys, writes = self.counts()
        return f'{jobs} ({keys})' if jobs else f'none; {writes} writes of keys' if writes else 'none'

    def remarks(self):
        listed = expected.entries_of(self.script)
        said = [f'local: {", ".join(names(one["names"]))} ({one["reason"]})' for one in listed['local']]
        said += [f'kdc.conf: {", ".join(one["relations"])} ({one["reason"]})' for one in listed['setting']]
        said += list(dict.fromkeys(one['reason'] for one in listed['difference']))
        if 'Difference: pass ' in self.log:
            said.append('passes with DES3, RC4, Camellia keys are shown to be refused')
        said += [one['reason'] for one in listed['asks']]
        said += [f'MIT\'s script skips {what}' for what in re.findall(r'^\*\*\* Skipping: (.*)', self.log, re.M)]
        if self.verdict != 'alone':
            said += [f'{n} of its realms have no servers: their entries are made up by MIT\'s test module'
                     for n in re.findall(r'^\*\*\* Servers: (\d+) realms of the script', self.log, re.M)]
        return '; '.join(said)


def names(patterns):
    return [pattern.replace('*', '\\*') for pattern in patterns]


def read(folders):
    found = {}
    for folder in map(pathlib.Path, folders):
        for path in folder.glob('*.result'):
            script = path.stem.replace('__', '/')
            found[script] = Result(script, path.read_text().strip(),
                                   path.with_suffix('.log').read_text(errors='replace'))
    return [found[script] for script in sorted(found)]


def table(results):
    lines = ['| script | result | jobs (keys) | why, and what is different |', '|---|---|---|---|']
    for one in results:
        name = one.script.replace('_', '\\_') + (' (ours)' if one.script in OURS else '')
        lines.append(f'| {name} | {WORDS[one.verdict]} | {one.asked()} | {one.remarks()} |')
    return '\n'.join(lines) + '\n'


def main():
    results = read(sys.argv[1:])
    counted = collections.Counter(WORDS[one.verdict] for one in results)
    jobs = sum(one.counts()[0] for one in results)
    total = ', '.join(f'{n} {word}' for word, n in sorted(counted.items()))
    print(f'{HEAD}\n**{len(results)} scripts: {total}. {jobs:,} jobs.**\n\n{table(results)}', end='')


if __name__ == '__main__':
    main()
