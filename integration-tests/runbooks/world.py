# SPDX-License-Identifier: Apache-2.0
"""Three servers' machines, a KDC's, an administrator's, a client's, an authority's; and a runbook that is
followed on them word by word."""

import os
import pathlib
import re
import shlex
import shutil
import time

import config_files
import console
import stand_ins
from bare_machines import NAMES, Machine, Network

RUNBOOKS = config_files.REPOSITORY / 'deploy/runbooks'
# What a person looks at again until it says what the runbook says, and for how long.
REPEATED = re.compile(r'^(mpc-admin (status|doctor|verify|gc|list|rotate-krbtgt --status)|kinit|klist|kvno|kadmin|'
                      r'journalctl|grep|systemctl is-active)\b')
RECORDING = os.environ.get('MPCKDC_RUNBOOK_RECORD')  # a folder: what is unlike is written there, and is no failure
PATIENCE = 15 if RECORDING else 45
SERVERS = ('p0', 'p1', 'p2')
PASSWORDS = {  # what is typed at a prompt
    'Password for alice@EXAMPLE.COM:': 'a first password',
    'Password for bob@EXAMPLE.COM:': 'another password',
    'Password for ops/admin@EXAMPLE.COM:': 'the administrator',
    'Enter KDC database master key:': 'a long master password',
    'Re-enter KDC database master key to verify:': 'a long master password',
}
_ASKS = re.compile(r'(password|Password|passphrase|KDC database master key).*: *$', re.M)


def answers(typed):
    every = {**PASSWORDS, **dict(typed)}
    return {**every, **{f'{prompt[:-1]} again:': answer for prompt, answer in every.items()}}.items()


def as_block(step, machine, output, good):
    """What was typed and printed, as a runbook would have it."""
    first, *more = step.command.split('\n')
    status = f'    # exit status {output.status}' if output.status else ''
    lines = [f'{step.line}{"" if good else " UNLIKE"}: {machine}{"#" if step.root else "$"} {first}{status}',
             *(f'> {line}' for line in more), *output.text.splitlines()]
    return '\n'.join(lines) + '\n'


class Unlike(AssertionError):
    """A command printed something else than the runbook says, or ended otherwise."""


def _copy_owners(old, new):
    for path in new.rglob('*'):
        before = (old / path.relative_to(new)).lstat()
        os.lchown(path, before.st_uid, before.st_gid)


class World:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.network = Network()
        self.machines = {}

    def __enter__(self):
        self.network.__enter__()
        for name in NAMES:
            self.machines[name] = Machine(name, self.folder / name, self.network).boot()
        self.introduce()
        self.machines['ca'].install('mpc-ca')  # deploy/ca of this repository, which is no package
        return self

    def __exit__(self, *_):
        for machine in self.machines.values():
            machine.off()
        self.network.__exit__()

    def introduce(self):
        stand_ins.tell_of_each_other(self.machines)

    def __getitem__(self, name):
        return self.machines[name]

    # What the tests do beside a runbook ------------------------------------------------------------

    def run(self, machine, command, root=True, typed=(), check=True):
        """One command, that no runbook says."""
        output = self._execute(machine, command, root, typed)
        assert not check or output.status == 0, f'{machine}# {command}\n{output.text}'
        return output

    def file(self, machine, path):
        """Where this machine's file lies, for the test."""
        for name, place in (('etc', '/etc'), ('var-lib', '/var/lib'), ('var-log', '/var/log'),
                            ('var-backups', '/var/backups'), ('root', '/srv/root')):
            if path.startswith(place + '/'):
                return self[machine].folder / name / path[len(place) + 1:]
        raise ValueError(path)

    def steal(self, name, thief):
        """A machine `thief` with all files of this one, at its address; nothing runs on it."""
        victim = self[name]
        folder = self.folder / thief
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(victim.folder, folder, symlinks=True, ignore=shutil.ignore_patterns('journal-*'))
        _copy_owners(victim.folder, folder)
        machine = Machine(name, folder, self.network)
        machine.exported = dict(victim.exported)
        self.machines[thief] = machine.boot()
        self.introduce()
        return machine

    def replace_machine(self, name):
        """Another one in its place, bare. Returns the old one's disk."""
        old = self[name].replace()
        self.introduce()
        return old

    # A runbook -------------------------------------------------------------------------------------

    def follow(self, runbook, before=None, typed=(), only=None, until=None):
        """Runs its commands in order and compares. `before`: what happens that is no command, {heading:
        function}. `only`: the headings that are followed. `until`: how the first command begins that is not."""
        steps = console.read(RUNBOOKS / runbook)
        headings = {step.heading for step in steps}
        for named in (*(before or {}), *(only or ())):
            assert named in headings, f'{runbook} has no commands under {named!r}, but {sorted(headings)}'
        heading = None
        for step in steps:
            if only is not None and step.heading not in only:
                continue
            if until and step.command.startswith(until):
                return
            if step.heading != heading:
                heading = step.heading
                if before and heading in before:
                    before[heading]()
            for machine in SERVERS if step.machine == 'p*' else (step.machine,):
                self._follow_step(step, machine, typed)

    def _follow_step(self, step, machine, typed):
        deadline = time.monotonic() + (PATIENCE if REPEATED.match(step.command) else 0)
        asks = _ASKS.search('\n'.join(step.expected))
        while True:
            output = self._execute(machine, step.command, step.root,
                                   answers(typed) if asks else ())
            good = output.status in step.statuses and console.fits(step.expected, output.text)
            if good or time.monotonic() > deadline:
                break
            time.sleep(0.7)
        if RECORDING:
            with open(pathlib.Path(RECORDING, step.runbook), 'a', encoding='utf-8') as record:
                record.write(as_block(step, machine, output, good))
        elif not good:
            raise Unlike(f'{step.where()}: {machine}{"#" if step.root else "$"} {step.command}\n'
                         f'-- the runbook says, with exit status {step.statuses}:\n' + '\n'.join(step.expected) +
                         f'\n-- it was, with exit status {output.status}:\n{output.text}')

    def _execute(self, name, command, root, typed):
        if name not in self.machines:
            raise console.BadRunbook(f'there is no machine {name}')
        machine = self.machines[name]
        stand_in = stand_ins.FUNCTIONS.get(command.split()[0])
        if stand_in:
            return stand_in(machine, shlex.split(command, comments=True)[1:])
        return machine.run(command, root, typed)
