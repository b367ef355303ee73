# SPDX-License-Identifier: Apache-2.0
"""The matrix: for people at a terminal, as Markdown for the docs, and what counts as a failure."""

import dataclasses

import adapter
import judge

TITLES = {'login': 'login', 'wrong_password': 'wrong password', 'service_ticket': 'service ticket',
          'accepted': 'service accepts', 'renew': 'renewal', 'keytab_login': 'keytab login',
          'armor': 'FAST armor', 'change_password': 'password change'}
MARKS = {judge.YES: 'yes', judge.NO: 'NO', judge.CANNOT: '-', judge.STOCK: 'as stock'}
COLOURS = {'NO': '\033[31m', 'yes': '\033[32m', 'as stock': '\033[33m'}
PLAIN = '\033[0m'


@dataclasses.dataclass
class Application:
    """One check of a program that uses Kerberos: sshd, apache2, SSSD."""
    name: str
    what: str
    verdict: str
    text: str = ''


@dataclasses.dataclass
class Report:
    users: str
    pac: bool
    protocol: str = 'auto'  # of the servers, forced or as they choose
    versions: dict = dataclasses.field(default_factory=dict)
    absent: dict = dataclasses.field(default_factory=dict)  # client: packages that it lacks
    enctype_reasons: dict = dataclasses.field(default_factory=dict)
    transport_reasons: dict = dataclasses.field(default_factory=dict)
    cells: list = dataclasses.field(default_factory=list)
    applications: list = dataclasses.field(default_factory=list)

    def failures(self):
        every = self.cells + self.applications
        return [one for one in every if one.verdict == judge.NO] + list(self.absent)

    def rows(self):
        """(client, enctype, a mark for each step); both transports in one mark."""
        found = []
        for client, enctype in dict.fromkeys((cell.client, cell.enctype) for cell in self.cells):
            marks = []
            for step in adapter.STEPS:
                of_step = [cell for cell in self.cells
                           if (cell.client, cell.enctype, cell.step) == (client, enctype, step)]
                verdicts = {cell.verdict for cell in of_step}
                marks.append(MARKS[verdicts.pop()] if len(verdicts) == 1 else ' '.join(
                    f'{cell.transport}:{MARKS[cell.verdict]}' for cell in of_step))
            found.append((client, enctype, marks))
        return found

    def remarks(self):
        """Every reason once."""
        lines = {}
        for cell in self.cells:
            title = TITLES[cell.step]
            if cell.verdict == judge.CANNOT:
                lines[f'{cell.client}, {title}: {cell.text}.'] = True
            elif cell.verdict == judge.STOCK:
                lines[f'{cell.client}, {title}: fails with MIT\'s own KDC too '
                      f'("{_short(cell.stock_text)}"); here: "{_short(cell.text)}".'] = True
            elif cell.verdict == judge.NO:
                lines[f'{cell.client} {cell.enctype} {cell.transport}, {title}, FAILED: '
                      f'{_short(cell.text)}'] = True
        for kind in (self.enctype_reasons, self.transport_reasons):
            for client, reason in kind.items():
                if reason:
                    lines[f'{client}: {reason}.'] = True
        for client, packages in self.absent.items():
            lines[f'{client} was not tried: {packages} is not there.'] = True
        return list(lines)

    def show(self, out):
        """Colours only where somebody looks."""
        paint = out.isatty()
        titles = [TITLES[step] for step in adapter.STEPS]
        out.write(f'\nusers: {self.users}, PAC: {"on" if self.pac else "off"}, '
                  f'protocol: {self.protocol}\n')
        out.write(f'{"client":16}{"enctype":>8}  ' + '  '.join(titles) + '\n')
        for client, enctype, marks in self.rows():
            cells = [f'{mark:{max(len(title), len(mark))}}' for mark, title in zip(marks, titles)]
            if paint:
                cells = [COLOURS.get(cell.strip(), '') + cell + PLAIN for cell in cells]
            out.write(f'{client:16}{enctype:>8}  ' + '  '.join(cells) + '\n')
        for one in self.applications:
            out.write(f'{one.name}: {one.what}: {MARKS[one.verdict]}'
                      + (f' ({_short(one.text)})' if one.verdict != judge.YES else '') + '\n')
        for line in self.remarks():
            out.write(line + '\n')
        out.write(f'{len(self.cells)} steps, {len(self.failures())} failures\n')

    def markdown(self):
        titles = [TITLES[step] for step in adapter.STEPS]
        lines = ['# Which stock clients can do what', '',
                 'Written by `make clients`; do not edit. Users are '
                 + ('protected: their keys are shared among three servers.'
                    if self.users in ('protected', 'imported') else
                    'local: only krbtgt is shared among three servers.')
                 + f' PAC {"on" if self.pac else "off"}.'
                 + ('' if self.protocol == 'auto' else
                    f' The servers force the protocol "{self.protocol}".'), '',
                 'yes: over UDP and TCP as far as the client speaks them; the KDC\'s log confirms',
                 'the enctype. "-": the client cannot. "as stock": it fails with MIT\'s own KDC too.',
                 '', '| client | enctype | ' + ' | '.join(titles) + ' |',
                 '|---' * (2 + len(titles)) + '|']
        lines += [f'| {client} | {enctype} | ' + ' | '.join(marks) + ' |'
                  for client, enctype, marks in self.rows()]
        if self.applications:
            lines += ['', '| application | what | |', '|---|---|---|']
            lines += [f'| {one.name} | {one.what} | {MARKS[one.verdict]} |'
                      for one in self.applications]
        lines += ['', '## Versions', '']
        lines += [f'- {name}: {version}' for name, version in self.versions.items()]
        lines += ['', '## Remarks', ''] + [f'- {line}' for line in self.remarks()]
        lines += [f'- {one.name}, {one.what}: {_short(one.text)}' for one in self.applications
                  if one.verdict != judge.YES]
        return '\n'.join(lines) + '\n'


def _short(text, limit=110):
    return text if len(text) <= limit else text[:limit].rstrip() + '...'
