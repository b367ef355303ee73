# SPDX-License-Identifier: Apache-2.0
"""renprinc on db2, killed while the file is written. libdb2 writes the pages that were changed under one lock
in an order of its own, so each of the four writes of renaming.h has its own lock: then "one write decides" is
true of db2 as it is of klmdb. Where the pages of a single write were written in part the file is broken, as
after an addprinc of MIT's own that is killed there: the last test."""

import itertools
import shutil

import config_files
import long_tests
from kdb_realm import new_realm
from killed import LOST_NAMES, UNREADABLE, damaged, killed_at
from old_realm import OldRealm

SALTS = ",".join(f"{name}:normal" for name in config_files.STOCK_ENCTYPES)


def opened(r, names):
    r.start_kdc_alone()
    found = [name for name in names if r.kinit(name, "secret", check=False).returncode == 0]
    r.kdc.stop()
    return found


def test_there_is_one_name(servers):
    with new_realm(servers, "db2") as r:
        for i in range(12):  # so that the two names are on different pages
            r.local(f"addprinc -pw filler m{i}")
        seen, step = {}, 1 if long_tests.ENABLED else 2
        for number in itertools.count(1, step):
            old, new = f"a{number}", f"z{number}"
            r.local(f"addprinc -pw secret {old}")
            whole = r.dump(r.dir / "whole")
            if not killed_at(r, "db2", number, f"renprinc -force {old} {new}"):
                break
            if damaged(r):
                r.run("kdb5_util", "load", whole)
                continue
            names = seen[number] = [name for name in (old, new) if r.exists(name)]
            assert len(names) == 1 and opened(r, (old, new)) == names, (number, names)
            # Whoever does it again gets what he wanted, and no key is lost.
            if names == [old]:
                r.local(f"renprinc -force {old} {new}")
            assert opened(r, (old, new)) == [new]
        assert len({names[0][0] for names in seen.values()}) == 2, (number, seen)
        assert opened(r, (old, new)) == [new]


def test_the_control_stock_db2_is_damaged_by_an_addprinc_that_is_killed(servers):
    """No mpc.so, no servers: MIT's programs and db2 alone."""
    with new_realm(servers, "db2", create=False) as r:
        stock = OldRealm(r, name="stock")
        assert "db_library = db2\n" in stock.profile.read_text()
        profile = {"KRB5_KDC_PROFILE": str(stock.profile)}
        stock.run("kdb5_util", "create", "-s", "-P", "master")
        before, hurt = r.dir / "before", set()
        for count in range(40):
            shutil.copytree(r.kdc_dir, before, dirs_exist_ok=True)
            query = f"addprinc -e {SALTS} -pw secret a{count}"
            number = 1
            while killed_at(r, "db2", number, query, file=stock.database, **profile):
                hurt |= {damaged(r, stock.profile)} - {""}
                shutil.copytree(before, r.kdc_dir, dirs_exist_ok=True)
                assert not damaged(r, stock.profile), "the control: that one is whole"
                number += 1
            assert number > 1, "the shim does not see the database"
            if len(hurt) == (2 if long_tests.ENABLED else 1):
                break
        assert UNREADABLE in hurt and (LOST_NAMES in hurt or not long_tests.ENABLED)
