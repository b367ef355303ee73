# SPDX-License-Identifier: Apache-2.0
"""krb5kdc linked once more, without the check of TGT headers: the control of that check.

All other objects are those of the patched krb5kdc.
"""

import functools
import shlex
import subprocess

import config_files

_STUB = '''
/* Takes the place of kdc_check_tgt_header(): every header agrees. */
int __wrap_kdc_check_tgt_header(void);
int __wrap_kdc_check_tgt_header(void) { return 0; }
'''


@functools.lru_cache(maxsize=None)
def build():
    """The path of the control."""
    folder = config_files.BUILD / 'intruder'
    folder.mkdir(exist_ok=True)
    stub, out = folder / 'no_header_check.c', folder / 'krb5kdc-control'
    stub.write_text(_STUB)
    objects = config_files.KRB5.resolve().parent / 'source/src/kdc'
    plan = subprocess.run(['make', '-n', '-W', 'main.o', 'krb5kdc'], cwd=objects, check=True,
                          stdout=subprocess.PIPE, encoding='utf-8').stdout
    link = next(shlex.split(line) for line in plan.splitlines() if '-o krb5kdc' in line)
    link[link.index('krb5kdc', link.index('-o'))] = str(out)
    subprocess.run(link + ['-Wl,--wrap=kdc_check_tgt_header', str(stub)], cwd=objects, check=True)
    return out
