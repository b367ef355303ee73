# SPDX-License-Identifier: Apache-2.0
"""A runbook's fenced console blocks, read as what a person types and what he then sees.

    ```console
    p0# systemctl restart mpc-server
    kdc# mpc-admin status                    # exit status 1
    ... of party 0 anything ...
    ...
    client$ cat > note <<'END'
    > a line of the command before
    > END
    ```

A line that begins with a machine's name and `#` (root) or `$` (its user) is a command, at `p*` that
of each of the three servers; one that begins with `> ` goes on with it. What follows is what the
command prints, to the last line. `...` stands for anything within a line, and alone on a line for any
number of lines. A command ends with exit status 0, unless a comment behind it says which other one,
or ones: `# exit status 0 or 1`.
"""

import dataclasses
import pathlib
import re

_PROMPT = re.compile(r'^(p\*|[a-z][a-z0-9]*)([#$]) (.*)$')
_STATUS = re.compile(r'\s+# .*?exit status (\d+(?: or \d+)*)$')
_FENCE = re.compile(r'^```(\w*)$')


class BadRunbook(Exception):
    """A block that no person could follow; the text names file and line."""


@dataclasses.dataclass
class Step:
    runbook: str
    line: int
    heading: str
    machine: str
    root: bool
    command: str
    statuses: tuple = (0,)
    expected: list = dataclasses.field(default_factory=list)

    def where(self):
        return f'{self.runbook}:{self.line}'


def blocks(text):
    """(language, number of its first line, heading above it, lines) of each fenced block."""
    language, heading, lines, first = None, '', [], 0
    for number, line in enumerate(text.splitlines(), 1):
        fence = _FENCE.match(line)
        if language is not None:
            if line == '```':
                yield language, first, heading, lines
                language = None
            else:
                lines.append(line)
        elif fence:
            language, lines, first = fence[1], [], number + 1
        elif line.startswith('#'):
            heading = line.lstrip('#').strip()
    if language is not None:
        raise BadRunbook(f'line {first}: the block has no end')


def read(path):
    """The steps of a runbook, in order."""
    path = pathlib.Path(path)
    steps = []
    for language, first, heading, lines in blocks(path.read_text()):
        if language == 'console':
            steps += _steps(path.name, first, heading, lines)
    return steps


def _steps(runbook, first, heading, lines):
    steps = []
    for number, line in enumerate(lines, first):
        prompt = _PROMPT.match(line)
        if prompt:
            status = _STATUS.search(prompt[3])
            command = prompt[3][:status.start()] if status else prompt[3]
            steps.append(Step(runbook, number, heading, prompt[1], prompt[2] == '#', command.strip(),
                              tuple(map(int, status[1].split(' or '))) if status else (0,)))
        elif not steps:
            raise BadRunbook(f'{runbook}:{number}: a block begins with a prompt such as "kdc# "')
        elif line.startswith('> ') or line == '>':
            if steps[-1].expected:
                raise BadRunbook(f'{runbook}:{number}: the command before has printed something')
            steps[-1].command += '\n' + line[2:]
        else:
            steps[-1].expected.append(line.rstrip())
    return steps


# What was printed, beside what is expected --------------------------------------------------------

def line_fits(pattern, line):
    parts = [re.escape(part) for part in re.sub(r'\s+', ' ', pattern.strip()).split('...')]
    return re.fullmatch('.*'.join(parts), re.sub(r'\s+', ' ', line.strip())) is not None


def fits(expected, printed):
    """Whether all lines are what is expected. Blanks at the ends, and how many there are, do not count."""
    lines = [line for line in printed.splitlines() if line.strip()]
    patterns = [pattern for pattern in expected if pattern.strip()]
    reached = {0}  # how many patterns may be used up before this line
    for line in [*lines, None]:
        frontier = set(reached)
        for at in sorted(reached):  # "..." alone may also be nothing
            while at < len(patterns) and patterns[at].strip() == '...':
                at += 1
                frontier.add(at)
        if line is None:
            return len(patterns) in frontier
        reached = set()
        for at in frontier:
            if at < len(patterns) and patterns[at].strip() == '...':
                reached.add(at)
            elif at < len(patterns) and line_fits(patterns[at], line):
                reached.add(at + 1)
    return False
