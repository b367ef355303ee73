# SPDX-License-Identifier: Apache-2.0
"""renprinc on db2, killed while the file is written. libdb2 writes the pages that were changed under one lock
in an order of its own, so each of the four writes of renaming.h has its own lock: then "one write decides" is
true of db2 as it is of klmdb. Where the pages of a single write were written in part nobody can read the file, as
after an addprinc of MIT's own that is killed there: the last test."""

import os
import shutil

import long_tests
from kdb_realm import new_realm
from killed import damaged, killed_at
from old_realm import OldRealm


def exists(r, name):
    return "does not exist" not in r.local(f"getprinc {name}")


def opened(r, names):
    r.start_kdc_alone()
    found = [name for name in names if r.kinit(name, "secret", check=False).returncode == 0]
    r.kdc.stop()
    return found


def test_there_is_one_name(servers):
    with new_realm(servers, "db2") as r:
        for i in range(12):  # so that the two names are on different pages
            r.local(f"addprinc -pw filler m{i}")
        seen, number, step = {}, 0, 1 if long_tests.ENABLED else 2
        while True:
            number += step
            old, new = f"a{number}", f"z{number}"
            r.local(f"addprinc -pw secret {old}")
            whole = r.dump(r.dir / "whole")
            if not killed_at(r, "db2", number, f"renprinc -force {old} {new}"):
                break
            if damaged(r):
                r.run("kdb5_util", "load", whole)
                continue
            names = seen[number] = [name for name in (old, new) if exists(r, name)]
            assert len(names) == 1 and opened(r, (old, new)) == names, (number, names)
            # Whoever does it again gets what he wanted, and no key is lost.
            if names == [old]:
                r.local(f"renprinc -force {old} {new}")
            assert opened(r, (old, new)) == [new]
        assert len({names[0][0] for names in seen.values()}) == 2, (number, seen)
        assert opened(r, (old, new)) == [new]


def test_the_control_stock_db2_is_damaged_by_an_addprinc_that_is_killed(servers):
    with new_realm(servers, "db2", create=False) as r:
        stock = OldRealm(r, name="stock")
        profile = {"KRB5_KDC_PROFILE": str(stock.profile)}
        stock.run("kdb5_util", "create", "-s", "-P", "master")
        hurt = []
        for number in range(1, 20):
            before = r.dir / f"before{number}"
            shutil.copytree(r.kdc_dir, before)
            if not killed_at(r, "db2", number, f"addprinc -pw secret a{number}",
                             file=stock.database, **profile):
                break
            if damaged(r, **profile):
                hurt.append(number)
                shutil.copytree(before, r.kdc_dir, dirs_exist_ok=True)
        assert hurt, (number, os.listdir(r.kdc_dir))
