# SPDX-License-Identifier: Apache-2.0
"""Reads expected.toml: what MIT's scripts need in their realms with real servers, where they must see
something else there, and why.

A script that fails in any other way has failed. So has one in which a listed difference does not
occur any more: it is then to be struck from the list."""

import dataclasses
import pathlib
import sys
import tomllib

FILE = pathlib.Path(__file__).with_name('expected.toml')
# Tables of entries, each with `script` and `reason`.
TABLES = ('difference', 'local', 'setting', 'asks')
ASKS = ('jobs', 'keys', 'nothing')


@dataclasses.dataclass
class Difference:
    """All texts are parts of what k5test says; what is empty fits everything."""
    script: str
    reason: str
    command: str = ''   # the last command that was run before the check
    instead: str = ''   # its output
    message: str = ''   # the check's own
    case: str = ''      # mark() before it
    ends: bool = False  # the script cannot go on after it
    seen: bool = False

    def __str__(self):
        return f'{self.script}: {self.case} {self.command} {self.message}'

    def fits(self, mark, command, output, message):
        return (self.case in (mark or '') and self.command in (command or '')
                and self.instead in (output or '') and self.message in message)


class Script:
    """All that the list says of one."""

    def __init__(self, name, entries):
        self.name = name
        self.differences = [Difference(**one) for one in entries['difference']]
        # Patterns of principals whose keys are in the database (mpc_local in kdc.conf).
        self.local = [name for one in entries['local'] for name in one['names']]
        # More relations of the realm's section in kdc.conf.
        self.relations = {name: value for one in entries['setting']
                          for name, value in one['relations'].items()}
        self.asks = next((one['what'] for one in entries['asks']), 'jobs')
        self.reasons = {table: [one['reason'] for one in entries[table]] for table in TABLES}

    def find(self, **check):
        for difference in self.differences:
            if difference.fits(**check):
                difference.seen = True
                return difference
        return None

    def not_seen(self):
        return [difference for difference in self.differences if not difference.seen]


def _read():
    listed = tomllib.loads(FILE.read_text())
    for table in TABLES:
        for entry in listed.get(table, []):
            _check(table, entry)
    return listed


def _check(table, entry):
    if len(entry.get('reason', '')) < 20:
        raise ValueError(f'{FILE}: {entry} does not say why')
    if table == 'difference' and not entry.get('instead') and not entry.get('message'):
        raise ValueError(f'{FILE}: {entry} does not say what is seen instead')
    if table == 'asks' and entry['what'] not in ASKS:
        raise ValueError(f'{FILE}: {entry}: one of {ASKS}')


def entries_of(script):
    listed = _read()
    return {table: [one for one in listed.get(table, []) if one['script'] == script]
            for table in TABLES}


def script(name):
    return Script(name, entries_of(name))


def scripts():
    """The names of all that the list has something about."""
    listed = _read()
    return sorted({one['script'] for table in TABLES for one in listed.get(table, [])})


def refused_passes():
    """Passes of k5test (multipass_realms) that cannot be, with the reason."""
    return _read().get('refused_pass', {})


if __name__ == '__main__':  # what a script's result depends on, for krb5-check.sh
    print(entries_of(sys.argv[1]), refused_passes())
