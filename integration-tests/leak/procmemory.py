# SPDX-License-Identifier: Apache-2.0
"""The memory of a running process, mapping by mapping, with the kernel's flags (proc(5), smaps)."""

import dataclasses
import re

import keysearch

_HEAD = re.compile(r'([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+ *(.*)')
LOCKED, NOT_DUMPED, WIPED_ON_FORK = 'lo', 'dd', 'wf'


@dataclasses.dataclass
class Mapping:
    begin: int
    end: int
    permissions: str
    name: str
    flags: frozenset = frozenset()

    def is_arena(self):
        """mpc-server/base/arena.cc is the only code that asks for wiping on fork."""
        return WIPED_ON_FORK in self.flags

    def is_guard(self):
        return self.permissions.startswith('---')


def mappings(pid):
    found = []
    with open(f'/proc/{pid}/smaps') as smaps:
        for line in smaps:
            if head := _HEAD.fullmatch(line.rstrip('\n')):
                found.append(Mapping(int(head[1], 16), int(head[2], 16), head[3], head[4]))
            elif line.startswith('VmFlags:'):
                found[-1].flags = frozenset(line.split()[1:])
    return found


def search(pid, secrets, piece=16):
    """{name: [mappings]} of the secrets that lie in writable memory.

    A secret counts as found when 16 bytes of it at a multiple of 16, or its last 16, are there: the
    allocator overwrites the beginning of what is freed. What is shorter is looked for as it is.
    `secrets` is [(name, bytes)].
    """
    needles = {}
    for name, secret in secrets:
        last = max(len(secret) - piece, 0)
        for at in [*range(0, last, piece), last]:
            needles.setdefault(bytes(secret[at:at + piece]), name)
    found = {}
    with open(f'/proc/{pid}/mem', 'rb', 0) as memory, \
            open(f'/proc/{pid}/pagemap', 'rb', 0) as pages:
        for mapping in mappings(pid):
            if not mapping.permissions.startswith('rw'):
                continue
            for data in keysearch.touched_memory(memory, pages, mapping.begin, mapping.end):
                for needle, name in needles.items():
                    if needle in data:
                        found.setdefault(name, []).append(mapping)
    return found
