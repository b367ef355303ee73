# SPDX-License-Identifier: Apache-2.0
"""`mpc-kdb import-scrub`, interrupted and done again: the database is the one that there was."""

import os
import signal

import pytest

import config_files
import long_tests
from kdb_realm import new_realm

SHIM = config_files.CMAKE / "mpc-server/testing/libmpckdc_fault_shim.so"

# A kdb5_util whose load ends as on a full disk.
NO_SPACE = """#!/bin/sh
for word; do [ "$word" != load ] || {{ echo "kdb5_util: No space left on device" >&2; exit 1; }}; done
exec {program} "$@"
"""


def handles(r, name):
    return {h["handle"] for h in r.handles(name)}


@pytest.mark.parametrize("wrapped", ["db2", "klmdb"])
def test_after_a_load_that_failed(servers, wrapped):
    """db2: the old file's second name is the live database's file until the load is done."""
    with new_realm(servers, wrapped) as r:
        r.local("addprinc -pw first alice")
        before = handles(r, "alice")
        bin_dir = r.dir / "bin"
        bin_dir.mkdir()
        (bin_dir / "kdb5_util").write_text(
            NO_SPACE.format(program=config_files.krb5_program("kdb5_util")))
        (bin_dir / "kdb5_util").chmod(0o755)
        good = os.path.dirname(config_files.krb5_program("kdb5_util"))
        path = os.environ["PATH"]
        failed = r.run(config_files.mpc_program("mpc-kdb"), "import-scrub", check=False,
                       env={"PATH": f"{bin_dir}:{path}"})
        assert failed.returncode and "No space left" in failed.stdout, failed.stdout
        again = r.run(config_files.mpc_program("mpc-kdb"), "import-scrub", check=False,
                      env={"PATH": f"{good}:{path}"})
        assert before and handles(r, "alice") == before, again.stdout


@pytest.mark.parametrize("at", long_tests.some(
    ["principal.mdb.scrub-old", "principal.scrub-dump"], ["principal.mdb.scrub-old"]))
def test_after_a_kill_takes_no_change_back(servers, at):
    """klmdb, killed when the new file is whole, while what is left is overwritten. The KDC serves again,
    somebody changes his password, and the next day the scrub is done to its end."""
    with new_realm(servers, "klmdb") as r:
        r.local("addprinc -pw first alice")
        file = r.kdc_dir / at
        good = os.path.dirname(config_files.krb5_program("kdb5_util"))
        env = {"LD_PRELOAD": str(SHIM), "MPCKDC_SHIM_FILE": str(file), "MPCKDC_SHIM_AT": "1",
               "MPCKDC_SHIM_DO": "kill", "PATH": f"{good}:{os.environ['PATH']}"}
        program = config_files.mpc_program("mpc-kdb")
        killed = r.run(program, "import-scrub", check=False, env=env)
        assert killed.returncode == -signal.SIGKILL, killed.stdout
        left = sorted(path.name for path in r.kdc_dir.iterdir())
        assert at in left, left
        r.local("cpw -pw second alice")
        second = handles(r, "alice")
        assert second <= {k["handle"] for k in servers.keys("alice")}
        again = r.run(program, "import-scrub", check=False,
                      env={"PATH": f"{good}:{os.environ['PATH']}"})
        assert handles(r, "alice") == second, \
            ("yesterday's password is back, and its keys are deleted", again.stdout)


def test_what_cannot_be_told_is_refused(servers):
    """Two files, and no dump to tell them apart: both stay, and a person looks."""
    with new_realm(servers, "klmdb") as r:
        r.local("addprinc -pw first alice")
        before = handles(r, "alice")
        aside = r.kdc_dir / "principal.mdb.scrub-old"
        aside.write_bytes((r.kdc_dir / "principal.mdb").read_bytes())
        refused = r.run(config_files.mpc_program("mpc-kdb"), "import-scrub", check=False)
        assert refused.returncode and "cannot be told" in refused.stdout, refused.stdout
        assert aside.exists() and before and handles(r, "alice") == before
