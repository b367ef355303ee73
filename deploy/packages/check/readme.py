# SPDX-License-Identifier: Apache-2.0
"""The commands of deploy/README.md: an indented block after a line `On **NAME, NAME**:` is for those machines."""

import re
import textwrap


def blocks(path):
    """[([NAME], SCRIPT)], in order."""
    found, names, lines = [], None, []
    for line in [*path.read_text().splitlines(), 'end']:
        if names and (line.startswith('    ') or (lines and not line.strip())):
            lines.append(line)
            continue
        if names and lines:
            found.append((names, textwrap.dedent('\n'.join(lines)).strip() + '\n'))
            names, lines = None, []
        heading = re.fullmatch(r'On \*\*([\w, ]+)\*\*:', line)
        if heading:
            names = re.split(r', *', heading.group(1))
    return found
