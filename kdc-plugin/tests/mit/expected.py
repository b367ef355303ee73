# SPDX-License-Identifier: Apache-2.0
"""Reads expected.toml: where MIT's scripts see something else with real servers, and why it must be.

A script that fails in any other way has failed. So has one in which a listed difference does not
occur any more: it is then to be struck from the list."""

import dataclasses
import pathlib
import tomllib

FILE = pathlib.Path(__file__).with_name('expected.toml')


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


class Expected:
    def __init__(self, differences):
        self._differences = differences

    @staticmethod
    def of_script(script):
        entries = tomllib.loads(FILE.read_text()).get('difference', [])
        for entry in entries:
            if not entry.get('instead') and not entry.get('message'):
                raise ValueError(f'{FILE}: {entry} does not say what is seen instead')
        return Expected([Difference(**entry) for entry in entries if entry['script'] == script])

    def find(self, **check):
        for difference in self._differences:
            if difference.fits(**check):
                difference.seen = True
                return difference
        return None

    def not_seen(self):
        return [difference for difference in self._differences if not difference.seen]


def local_services(script):
    """Patterns of a script's services that our module would take for users (mpc_local in kdc.conf)."""
    return tomllib.loads(FILE.read_text()).get('local_services', {}).get(script)


def refused_pass(name):
    """Why a pass of k5test (multipass_realms) cannot be; None if it can."""
    return tomllib.loads(FILE.read_text()).get('refused_pass', {}).get(name)
