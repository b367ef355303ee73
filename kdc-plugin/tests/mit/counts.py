# SPDX-License-Identifier: Apache-2.0
"""How often the three servers of a realm were asked, by their audit logs: a script that never asks
them proves nothing about remote keys."""

import collections
import dataclasses
import json
import pathlib

PARTIES = 3


@dataclasses.dataclass
class Counts:
    """Of one realm. The fewest of the three servers' numbers: each job needs all three."""
    realm: str
    jobs: int = 0     # computed, verdict OK
    used: int = 0     # different keys in these
    made: int = 0     # transactions that stored keys, of kadmin's side
    ops: tuple = ()   # what kinds of jobs

    def __str__(self):
        kinds = f' ({" ".join(self.ops)})' if self.ops else ''
        return f'{self.realm}: {self.jobs} jobs{kinds} with {self.used} keys; {self.made} writes of keys'


def of_realm(name, log_dir):
    """From LOG_DIR/pN-audit.jsonl; a server that never ran has none, and then nothing was asked."""
    found = [_of_party(pathlib.Path(log_dir) / f'p{party}-audit.jsonl') for party in range(PARTIES)]
    fewest = min(found, key=lambda one: one.jobs)
    return Counts(name, fewest.jobs, fewest.used, min(one.made for one in found), fewest.ops)


def _of_party(path):
    if not path.exists():
        return Counts('')
    handles, ops, jobs, made = set(), collections.Counter(), 0, 0
    with open(path) as log:
        for line in log:
            record = json.loads(line)
            if record['kind'] == 'admin':
                made += record.get('call') == 'CommitKeys' and record.get('result') == 'OK'
            for job in record.get('jobs', ()) if record['kind'] == 'batch' else ():
                if job['verdict'] == 'OK':
                    jobs += 1
                    ops[job['op']] += 1
                    handles.update(key['handle'] for key in job.get('keys', ()))
    return Counts('', jobs, len(handles), made, tuple(f'{op} {n}' for op, n in sorted(ops.items())))


def problems(script, realms):
    """What is wrong with how often the servers were asked. `script`: expected.Script;
    `realms`: the Counts of its realms with servers."""
    jobs, made = sum(one.jobs for one in realms), sum(one.made for one in realms)
    if script.asks == 'nothing':
        return [f'expected.toml says that it asks no server, and there were {jobs} jobs and '
                f'{made} writes of keys'] if jobs or made else []
    if not made:
        return ['no key was put on any server']
    if script.asks == 'keys':
        return [f'expected.toml says that it has no job computed, and there were {jobs}'] if jobs else []
    return [] if jobs else ['the servers computed no job']
