# SPDX-License-Identifier: Apache-2.0
"""kadmin.local that is killed before its k-th write or sync of the database (mpc-server/testing/fault_shim.c)."""

import signal

import config_files
from old_realm import OldRealm

SHIM = config_files.CMAKE / "mpc-server/testing/libmpckdc_fault_shim.so"
FILE = {"db2": "principal", "klmdb": "principal.mdb"}
UNREADABLE, LOST_NAMES = "unreadable", "lists what it does not find"


def killed_at(r, wrapped, number, query, file=None, **options):
    """False: the command has fewer writes, and has ended."""
    env = {**options, "LD_PRELOAD": str(SHIM), "MPCKDC_SHIM_AT": str(number),
           "MPCKDC_SHIM_FILE": str(file or r.kdc_dir / FILE[wrapped]), "MPCKDC_SHIM_DO": "kill"}
    result = r.run("kadmin.local", "-q", query, check=False, env=env)
    assert result.returncode in (0, -signal.SIGKILL), result.stdout
    return result.returncode != 0


def without_us(r):
    """A kdc.conf of MIT's own for the same database, which leaves the update log alone."""
    profile = OldRealm(r, wrapped=r.options.wrapped).profile
    lines = profile.read_text().splitlines(keepends=True)
    profile.write_text("".join(line for line in lines if "iprop_" not in line))
    return profile


def damaged(r, profile=None):
    """UNREADABLE, LOST_NAMES or "". db2's file is broken when only some of the pages that one write changes
    were written: krb5's programs crash on it, or call it corrupted, or list entries that they do not find by
    name. It is so without us too (rename_db2_killed_test.py). Looked at without us, who hide some entries."""
    env = {"KRB5_KDC_PROFILE": str(profile or without_us(r))}
    file = r.dir / "is-it-whole"
    if r.run("kdb5_util", "dump", file, check=False, env=env).returncode != 0:
        return UNREADABLE
    names = [line.split("\t")[6] for line in file.read_text().splitlines() if line.startswith("princ")]
    found = r.run("kadmin.local", check=False, env=env, stdin="".join(f"getprinc {n}\n" for n in names))
    assert "Principal: " in found.stdout
    return "" if all(f"Principal: {n}\n" in found.stdout for n in names) else LOST_NAMES
