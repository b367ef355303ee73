#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""options.py PROGRAM PAGE [--write]: is the page's option list what the program prints of itself?"""
import difflib
import pathlib
import re
import subprocess
import sys

program, page = sys.argv[1], pathlib.Path(sys.argv[2])
options = subprocess.run([program, '--man-options'], check=True, capture_output=True, text=True).stdout
text = page.read_text()
marked = re.compile(r'(\.\\" what --man-options prints\n)(.*?)(\.\\" end of it\n)', re.S)
fresh, count = marked.subn(lambda found: found[1] + options + found[3], text)
if count != 1:
    sys.exit(f'{page}: one list of options between marks is wanted, there are {count}')
if '--write' in sys.argv:
    page.write_text(fresh)
elif fresh != text:
    sys.stdout.writelines(difflib.unified_diff(text.splitlines(True), fresh.splitlines(True)))
    sys.exit(f'{page}: run {sys.argv[0]} {program} {page} --write')
