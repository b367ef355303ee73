# SPDX-License-Identifier: Apache-2.0
"""The memory of a running process, mapping by mapping, with the kernel's flags (proc(5), smaps)."""

import dataclasses
import re

import numpy

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
    texts = _Texts(needles)
    found = {}
    with open(f'/proc/{pid}/mem', 'rb', 0) as memory, \
            open(f'/proc/{pid}/pagemap', 'rb', 0) as pages:
        for mapping in mappings(pid):
            if not mapping.permissions.startswith('rw'):
                continue
            for data in keysearch.touched_memory(memory, pages, mapping.begin, mapping.end):
                for needle in texts.in_data(data):
                    found.setdefault(needles[needle], []).append(mapping)
    return found


class _Texts:
    """Many short texts that are looked for at once: only what begins like one of them is compared."""
    BEGIN = 4
    PIECE = 1 << 24  # bytes at a time: the work takes some ten times as many

    def __init__(self, texts):
        self._long = {text for text in texts if len(text) >= self.BEGIN}
        self._short = set(texts) - self._long
        self._sizes = sorted({len(text) for text in self._long})
        self._begins = numpy.unique(numpy.array(
            [int.from_bytes(text[:self.BEGIN], 'little') for text in self._long], numpy.uint32))
        self._first = numpy.zeros(1 << 16, bool)
        self._first[self._begins & 0xffff] = True

    def in_data(self, data):
        """Those that are in data."""
        found = {text for text in self._short if text in data}
        for at in range(0, len(data) - self.BEGIN + 1, self.PIECE):
            for place in self._places(data, at):
                for size in self._sizes:
                    if data[place:place + size] in self._long:
                        found.add(data[place:place + size])
        return found

    def _places(self, data, at):
        """Where something begins like a text, from `at` for a piece."""
        count = min(self.PIECE, len(data) - self.BEGIN + 1 - at)
        octets = numpy.frombuffer(data, numpy.uint8, count + self.BEGIN - 1, at)
        pairs = octets[1:].astype(numpy.uint16) << 8 | octets[:-1]
        places = numpy.flatnonzero(self._first[pairs[:count]])
        words = pairs[places].astype(numpy.uint32) | pairs[places + 2].astype(numpy.uint32) << 16
        return (places[numpy.isin(words, self._begins)] + at).tolist()
