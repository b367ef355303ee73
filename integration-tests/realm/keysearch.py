# SPDX-License-Identifier: Apache-2.0
"""Searches files and memory for keys, in every plain form in which a key gets written down.

A secret is cut into pieces of 8 bytes, so that half a round key counts as found. Each piece is looked
for raw; the whole secret also byte-reversed, in hex (both cases) and in base64 (both alphabets, all
three alignments).
"""

import base64
import os
import re

PIECE = 8
PAGE = os.sysconf('SC_PAGESIZE')


def _base64_cores(data):
    """The characters of data's base64 that do not depend on its neighbours, at each alignment."""
    for shift in range(3):
        text = base64.b64encode(bytes(shift) + data)
        first = -(-8 * shift // 6)
        last = 8 * (shift + len(data)) // 6
        yield text[first:last]
        yield text[first:last].translate(bytes.maketrans(b'+/', b'-_'))


def _forms(secret):
    for at in range(0, len(secret) - PIECE + 1, PIECE):
        yield secret[at:at + PIECE]
    if len(secret) < PIECE:
        yield secret
    yield secret[::-1]
    yield secret.hex().encode()
    yield secret.hex().upper().encode()
    yield from _base64_cores(secret)


class KeySearch:
    """Looks for a list of (name, secret bytes)."""

    def __init__(self, secrets):
        self.count = len(secrets)
        self._names = {}
        self._raw = {}
        for name, secret in secrets:
            self._raw.setdefault(secret[:16], name)
            for form in _forms(secret):
                self._names.setdefault(form, name)

    def find(self, data):
        """Names of the secrets that are in data."""
        return sorted({name for form, name in self._names.items() if form in data})

    def find_raw(self, data):
        """The same for the first 16 raw bytes only: for data that is large."""
        return sorted({name for form, name in self._raw.items() if form in data})

    def search_files(self, paths):
        """{path: names} over files and whole directory trees, findings only, and the bytes read."""
        found, size = {}, 0
        for path in _files_under(paths):
            data = open(path, 'rb').read()
            size += len(data)
            names = self.find(data)
            if names:
                found[str(path)] = names
        return found, size

    def search_memory(self, pid):
        """(names, bytes read) over the writable memory of a running process."""
        found, size = set(), 0
        for data in _writable_memory(pid):
            size += len(data)
            found.update(self.find_raw(data))
        return sorted(found), size


def _writable_memory(pid):
    with open(f'/proc/{pid}/maps') as maps, open(f'/proc/{pid}/mem', 'rb', 0) as memory, \
            open(f'/proc/{pid}/pagemap', 'rb', 0) as pagemap:
        for line in maps:
            span = re.match(r'([0-9a-f]+)-([0-9a-f]+) rw', line)
            if span:
                begin, end = (int(part, 16) for part in span.groups())
                yield from touched_memory(memory, pagemap, begin, end)


def touched_memory(memory, pagemap, begin, end):
    """Runs of pages that are in memory or swapped out; stacks are mostly pages never touched."""
    pagemap.seek(begin // PAGE * 8)
    entries = memoryview(pagemap.read((end - begin) // PAGE * 8)).cast('Q')
    run = None
    for number in range(len(entries) + 1):
        touched = number < len(entries) and entries[number] >> 62
        if touched and run is None:
            run = number
        elif not touched and run is not None:
            yield _read(memory, begin + run * PAGE, (number - run) * PAGE)
            run = None


def _read(memory, begin, size):
    try:
        memory.seek(begin)
        return memory.read(size)
    except OSError:
        return b''  # a device, or unmapped meanwhile


def _files_under(paths):
    for path in map(str, paths):
        if not os.path.isdir(path):
            yield path
            continue
        for folder, _, names in os.walk(path):
            for name in sorted(names):
                full = os.path.join(folder, name)
                if os.path.isfile(full) and not os.path.islink(full):
                    yield full
