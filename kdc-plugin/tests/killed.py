# SPDX-License-Identifier: Apache-2.0
"""kadmin.local that is killed before its k-th write or sync of the database (mpc-server/testing/fault_shim.c)."""

import signal

import config_files

SHIM = config_files.CMAKE / "mpc-server/testing/libmpckdc_fault_shim.so"
FILE = {"db2": "principal", "klmdb": "principal.mdb"}


def killed_at(r, wrapped, number, query, file=None, **options):
    """False: the command has fewer writes, and has ended."""
    env = {**options, "LD_PRELOAD": str(SHIM), "MPCKDC_SHIM_AT": str(number),
           "MPCKDC_SHIM_FILE": str(file or r.kdc_dir / FILE[wrapped]), "MPCKDC_SHIM_DO": "kill"}
    result = r.run("kadmin.local", "-q", query, check=False, env=env)
    assert result.returncode in (0, -signal.SIGKILL), result.stdout
    return result.returncode != 0


def damaged(r, **options):
    """Whether nobody can read the database: db2's file, when only some of the pages that one write changes
    were written. All of krb5's programs crash then, without us too (rename_db2_killed_test.py)."""
    return r.run("kdb5_util", "dump", r.dir / "is-it-whole", check=False,
                 env=options or None).returncode != 0
