# SPDX-License-Identifier: Apache-2.0
"""krb5kdc and kadmind without their check of ticket headers: the control of that check.

It is one function of libkrb5, which a library that is loaded before takes the place of.
"""

import functools
import subprocess

import config_files

_STUB = '''
/* Takes the place of libkrb5's: every header agrees. */
int k5_check_ticket_header(void);
int k5_check_ticket_header(void) { return 0; }
'''


@functools.lru_cache(maxsize=None)
def _stub():
    folder = config_files.BUILD / 'intruder'
    folder.mkdir(exist_ok=True)
    source, library = folder / 'no_header_check.c', folder / 'no_header_check.so'
    source.write_text(_STUB)
    subprocess.run(['cc', '-shared', '-fPIC', '-o', str(library), str(source)], check=True)
    return library


def program(name):
    """The path of krb5kdc's or kadmind's control."""
    script = config_files.BUILD / f'intruder/{name}-control'
    preload = _stub()
    script.write_text(f'#!/bin/sh\nLD_PRELOAD={preload} exec {config_files.krb5_program(name)} "$@"\n')
    script.chmod(0o755)
    return str(script)
