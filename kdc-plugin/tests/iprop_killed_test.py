# SPDX-License-Identifier: Apache-2.0
"""Incremental propagation, and a command that is killed or slow after it wrote the database. A replica has
every change, or is told to take everything: otherwise it keeps a deleted user, or yesterday's password."""

import contextlib
import os
import signal
import subprocess
import time

import pytest

import config_files
import daemon
import long_tests
from kdb_realm import new_realm
from killed import damaged, killed_at
from update_log import FULL, UpdateLog, entries, not_told

IPROP = {"iprop_enable": True, "iprop_port": 1}


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


@pytest.mark.parametrize("wrapped", ["db2", "klmdb"])
def test_a_deletion_that_is_killed_while_servers_hang_is_logged(servers, wrapped):
    with new_realm(servers, wrapped, extra_realm=IPROP) as r:
        log = UpdateLog(r)
        r.local("addprinc -pw secret alice")
        remembered = log.now()
        with frozen(servers):
            command = begin(r, "delprinc -force alice")
            assert daemon.wait_until(lambda: not r.exists("alice"), 10)
            assert command.poll() is None, "the control: it is waiting for the servers"
            command.kill()
            command.wait()
        assert not r.exists("alice")
        [(name, text)] = log.since(remembered)
        assert name == "alice" and "Update operation : Delete" in text


def test_the_log_has_the_order_of_the_database(servers):
    """One deletes, and its servers hang; meanwhile another makes the principal again."""
    with new_realm(servers, extra_realm=IPROP) as r:
        log = UpdateLog(r)
        r.local("addprinc -pw secret alice")
        remembered = log.now()
        with frozen(servers):
            command = begin(r, "delprinc -force alice")
            assert daemon.wait_until(lambda: not r.exists("alice"), 10)
            r.local("addprinc -nokey alice")
            assert command.poll() is None, "the control: it is waiting for the servers"
        command.wait(timeout=60)
        assert r.exists("alice")
        told = ["Update operation : Delete" in text for _, text in log.since(remembered)]
        assert told == [True, False], "replicas delete alice"


def test_a_slow_change_does_not_divide_primary_and_replica(servers):
    """One changes a password, and the servers take their time; meanwhile another disables the user. Of
    the two the last one to write wins, at the primary and at replicas."""
    with new_realm(servers, extra_realm=IPROP) as r:
        log = UpdateLog(r)
        r.local("addprinc -pw secret alice")
        remembered = log.now()
        with frozen(servers):
            command = begin(r, "cpw -pw other alice")
            time.sleep(1.5)
            r.local("modprinc -allow_tix alice")
            assert command.poll() is None, "the control: it is waiting for the servers"
        assert command.wait(timeout=60) == 0
        disabled_here = "DISALLOW_ALL_TIX" in r.local("getprinc alice")
        updates = log.since(remembered)
        told = [text for _, text in updates if "Attribute flags" in text]
        disabled_there = "DISALLOW_ALL_TIX" in told[-1]
        assert len(updates) == 2 and disabled_here == disabled_there, \
            (disabled_here, disabled_there, updates)


CHANGES = {
    "add": "addprinc -pw secret x{0}",
    "password": "cpw -pw other old{0}",
    "modify": "modprinc -maxlife 1hour old{0}",
    "delete": "delprinc -force old{0}",
    "rename": "renprinc -force old{0} new{0}",
}


@pytest.mark.parametrize("change", CHANGES if long_tests.ENABLED else ["rename"])
@pytest.mark.parametrize("wrapped", ["db2", "klmdb"])
def test_killed_at_each_write_of_the_database(servers, wrapped, change):
    """Whatever is in the database then replicas are told of, at once and after others went on."""
    with new_realm(servers, wrapped, extra_realm=IPROP) as r:
        log = UpdateLog(r)
        r.local("addprinc -pw new spare")
        fulls, number, step = 0, 0, 1 if long_tests.ENABLED else 2
        while True:
            number += step
            r.local(f"addprinc -pw secret old{number}")
            before, remembered = r.dump_text(), log.now()
            killed = killed_at(r, wrapped, number, CHANGES[change].format(number))
            told = log.since(remembered)
            fulls += told == FULL
            assert killed or told != FULL
            if killed and damaged(r):
                assert wrapped == "db2" and told == FULL
                (r.dir / "before").write_text(before)
                r.run("kdb5_util", "load", r.dir / "before")
                continue
            after = r.dump_text()
            assert not_told(before, after, told) == [], (number, told)
            r.local("modprinc -maxlife 2hours spare")
            assert not_told(before, r.dump_text(), log.since(remembered)) == [], number
            if told == FULL:
                assert log.since(remembered) == FULL, "the next change hides what was not logged"
            if not killed:
                assert not_told(before, after, []) != [], "the control: something has changed"
                keyless = [(name, "Update operation : Add") for name in entries(after)]
                assert change in ("modify", "delete") or not_told(before, after, keyless) != [], \
                    "the control: and keys have"
                break
        assert number > step, "the shim does not see the database"
        assert fulls > 0


@pytest.mark.parametrize("ending", ["delete", "addprinc"])
@pytest.mark.parametrize("wrapped", ["db2", "klmdb"])
def test_what_ends_a_renaming_that_was_killed_reaches_replicas(servers, wrapped, ending):
    """Killed when the new name is the principal already, and then what mpc-admin doctor says. Who took
    everything after the kill has the new name by the end of it, with its keys."""
    with new_realm(servers, wrapped, extra_realm=IPROP) as r:
        log = UpdateLog(r)
        r.local("addprinc -pw new spare")
        seen = 0
        for number in range(1, 40, 1 if long_tests.ENABLED else 3):
            old, new = f"old{number}", f"new{number}"
            r.local(f"addprinc -pw secret {old}")
            whole = r.dump(r.dir / "whole")
            if not killed_at(r, wrapped, number, f"renprinc -force {old} {new}"):
                break
            if damaged(r):
                assert wrapped == "db2"
                r.run("kdb5_util", "load", whole)
                continue
            if not r.exists(new):
                continue
            seen += 1
            r.local("modprinc -maxlife 2hours spare")  # makes the log anew if it is unstable
            remembered, before = log.now(), r.dump_text()
            if ending == "delete":
                r.kdb("delete", old, check=False)
            else:
                r.local(f"addprinc -pw other {old}")
            r.local(f"modprinc -maxlife 1hour {new}")
            assert r.exists(new)
            updates = log.since(remembered)
            assert updates != FULL
            assert not_told(before, r.dump_text(), updates) == [], (number, updates)
        assert seen > 0
