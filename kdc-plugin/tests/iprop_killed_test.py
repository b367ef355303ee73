# SPDX-License-Identifier: Apache-2.0
"""Incremental propagation, and a command that is killed or slow after it wrote the database: libkdb5
logs what the module stored when the module is back, and the module first asks three servers to delete
old keys. A replica that is not told keeps a deleted user, or yesterday's password."""

import contextlib
import os
import re
import signal
import subprocess
import time

import pytest

import config_files
import daemon
from kdb_realm import new_realm

# Known, and told in kdc-plugin/README.md ("Replicas"): `make test-long` says when it is mended.
pytestmark = [
    pytest.mark.skipif("MPCKDC_LONG" not in os.environ, reason="make test-long runs it"),
    pytest.mark.xfail(strict=True, reason="the update log is written when the servers have answered"),
]

IPROP = {"iprop_enable": True, "iprop_port": 1}
SHIM = config_files.CMAKE / "mpc-server/testing/libmpckdc_fault_shim.so"


def updates(r):
    """(name, text) of each entry of the update log."""
    entries = r.run("kproplog", "-v", "-v").stdout.split("Update principal : ")[1:]
    return [(entry.split("\n")[0].split("@")[0], entry) for entry in entries]


@contextlib.contextmanager
def frozen(servers):
    """The servers neither answer nor refuse, as behind a switch that is dead."""
    os.kill(servers.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(servers.process.pid, signal.SIGCONT)


def begin(r, query):
    return subprocess.Popen([config_files.krb5_program("kadmin.local"), "-q", query],
                            env={**os.environ, **r.env}, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)


def is_there(r, name):
    return "does not exist" not in r.local(f"getprinc {name}", check=False)


@pytest.mark.parametrize("wrapped", ["db2", "klmdb"])
def test_a_deletion_that_is_killed_while_servers_hang_is_logged(servers, wrapped):
    with new_realm(servers, wrapped, extra_realm=IPROP) as r:
        r.local("addprinc -pw secret alice")
        r.run("kproplog", "-R")
        with frozen(servers):
            command = begin(r, "delprinc -force alice")
            assert daemon.wait_until(lambda: not is_there(r, "alice"), 10)
            assert command.poll() is None, "the control: it is waiting for the servers"
            command.kill()
            command.wait()
        assert not is_there(r, "alice")
        assert [name for name, _ in updates(r)] == ["alice"], "replicas keep alice for ever"


def test_the_log_has_the_order_of_the_database(servers):
    """One deletes, and its servers hang; meanwhile another makes the principal again."""
    with new_realm(servers, extra_realm=IPROP) as r:
        r.local("addprinc -pw secret alice")
        r.run("kproplog", "-R")
        with frozen(servers):
            command = begin(r, "delprinc -force alice")
            assert daemon.wait_until(lambda: not is_there(r, "alice"), 10)
            r.local("addprinc -nokey alice")
            assert command.poll() is None, "the control: it is waiting for the servers"
        command.wait(timeout=60)
        assert is_there(r, "alice")
        told = re.findall("Update operation : (.+)", r.run("kproplog", "-v").stdout)
        assert told[-1] != "Delete", ("replicas delete alice", told)


def rename_killed_at(r, number):
    env = {"LD_PRELOAD": str(SHIM), "MPCKDC_SHIM_FILE": str(r.kdc_dir / "principal.mdb"),
           "MPCKDC_SHIM_AT": str(number), "MPCKDC_SHIM_DO": "kill"}
    result = r.run("kadmin.local", "-q", f"renprinc -force old{number} new{number}", check=False,
                   env=env)
    return result.returncode != 0


@pytest.mark.parametrize("ending", ["delete", "addprinc"])
def test_a_renaming_that_was_killed_reaches_replicas(servers, ending):
    """Killed when the new name is the principal already, and then what mpc-admin doctor says. A replica
    has the new name by the end of it, with its keys, or the user is locked out there."""
    with new_realm(servers, "klmdb", extra_realm=IPROP) as r:
        r.local("addprinc -pw new spare")
        seen = 0
        for number in range(1, 30):
            old, new = f"old{number}", f"new{number}"
            r.local(f"addprinc -pw secret {old}")
            r.run("kproplog", "-R")
            if not rename_killed_at(r, number):
                break
            if not is_there(r, new):
                continue
            seen += 1
            if ending == "delete":
                r.kdb("delete", old, check=False)
            else:
                r.local(f"addprinc -pw other {old}")
            r.local(f"modprinc -maxlife 1hour {new}")
            assert is_there(r, new)
            told = [text for name, text in updates(r) if name == new]
            assert any("Key data" in text for text in told), \
                (number, "replicas get no keys of the new name", [n for n, _ in updates(r)], told)
        assert seen > 0


def test_a_slow_change_does_not_divide_primary_and_replica(servers):
    """One changes a password, and the servers take their time; meanwhile another disables the user. Of
    the two the last one to write wins, at the primary and at replicas."""
    with new_realm(servers, extra_realm=IPROP) as r:
        r.local("addprinc -pw secret alice")
        r.run("kproplog", "-R")
        with frozen(servers):
            command = begin(r, "cpw -pw other alice")
            time.sleep(1.5)
            r.local("modprinc -allow_tix alice")
            assert command.poll() is None, "the control: it is waiting for the servers"
        assert command.wait(timeout=60) == 0
        disabled_here = "DISALLOW_ALL_TIX" in r.local("getprinc alice")
        told = [text for _, text in updates(r) if "Attribute flags" in text]
        disabled_there = "DISALLOW_ALL_TIX" in told[-1]
        assert len(updates(r)) == 2 and disabled_here == disabled_there, \
            (disabled_here, disabled_there, updates(r))
