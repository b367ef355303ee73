# SPDX-License-Identifier: Apache-2.0
"""renprinc of principals whose keys are on the servers: whose keys they are afterwards, who may get
which name, and what a crash at any write of the database leaves."""

import pytest

import config_files
import long_tests
from kdb_realm import REALM, new_realm
from killed import killed_at

ENCTYPES = config_files.GCM_ENCTYPES + config_files.STOCK_ENCTYPES


@pytest.fixture(scope="module", params=["db2", "klmdb"])
def live(request, servers):
    with new_realm(servers, request.param, enctypes=ENCTYPES,
                   extra_db={"mpc_protect": ["HTTP/protected*"]}) as r:
        r.local("addpol -history 3 three")
        r.start_kdc_alone()
        yield r


def rename(live, old, new, check=True, **options):
    return live.run("kadmin.local", "-q", f"renprinc -force {old} {new}", check=check,
                    **options).stdout


def logs_in(live, name, password):
    result = live.kinit(name, password, check=False)
    if result.returncode == 0:
        return True
    assert "not found in Kerberos database" in result.stdout or \
        "Password incorrect" in result.stdout, result.stdout
    return False


def test_all_of_a_user_goes_along(live, servers):
    """Keys, version, salts, policy, history, attributes; the old name is nobody's."""
    live.local("addprinc -policy three -pw one alice")
    live.local("cpw -pw two alice")
    live.local("cpw -keepold -pw three alice")
    live.local("setstr alice note hello")
    before = live.local("getprinc alice")
    old = live.handles("alice")
    assert f'Principal "alice@{REALM}" renamed' in rename(live, "alice", "alice.smith")
    new = live.handles("alice.smith")
    assert not live.exists("alice") and live.handles("alice") == []
    assert [(h["kvno"], h["enctype"], h.get("history")) for h in new] == \
        [(h["kvno"], h["enctype"], h.get("history")) for h in old]
    assert not {h["handle"] for h in new} & {h["handle"] for h in old}
    assert all("renamed_from" not in h for h in new)
    for one, other in zip(old, new):
        assert servers.tell(f"base {one['handle']}") == "", "the old key is still there"
        assert servers.tell(f"base {other['handle']}") != ""
    assert {h["handle"] for h in new if not h.get("history")} <= \
        {k["handle"] for k in servers.keys("alice.smith")}
    after = live.local("getprinc alice.smith")
    kept = [line for line in before.splitlines() if line.startswith(("Policy", "Last password"))]
    assert kept and all(line in after for line in kept)
    assert after.count(":special") == after.count("\nKey: vno ") == 2 * len(ENCTYPES)
    assert "note: hello" in live.local("getstrs alice.smith")
    assert "mpc_" not in live.local("getstrs alice.smith")
    assert logs_in(live, "alice.smith", "three") and not logs_in(live, "alice", "three")
    # As in stock: an old password makes another key with the new name's salt. With the old one's it is
    # the key that the history has.
    rename(live, "alice.smith", "alice")
    for password in ("three", "two", "one"):
        assert "Cannot reuse" in live.local(f"cpw -pw {password} alice", check=False)
    rename(live, "alice", "alice.smith")
    live.local("cpw -pw four alice.smith")
    assert "Cannot reuse" in live.local("cpw -pw four alice.smith", check=False)
    assert logs_in(live, "alice.smith", "four")
    # There and back, and somebody else of the old name.
    live.local("addprinc -pw other alice")
    assert logs_in(live, "alice", "other")
    assert "already exists" in rename(live, "alice.smith", "alice", check=False)
    rename(live, "alice", "alice2")
    rename(live, "alice.smith", "alice")
    assert logs_in(live, "alice", "four") and logs_in(live, "alice2", "other")


def test_a_protected_service_and_who_has_no_keys(live, servers):
    live.local("addprinc -pw secret HTTP/protected.example.com")
    rename(live, "HTTP/protected.example.com", "HTTP/protected2.example.com")
    handles = {h["handle"] for h in live.handles("HTTP/protected2.example.com")}
    assert len(handles) == len(ENCTYPES)
    assert handles <= {k["handle"] for k in servers.keys("HTTP/protected2.example.com")}
    live.local("addprinc -nokey empty")
    rename(live, "empty", "void")
    assert live.exists("void") and not live.exists("empty")


@pytest.mark.parametrize("old,new,why", [
    ("ursel", "kadmin/ursel", "neither given to another name nor taken"),
    ("ursel", "krbtgt/OTHER.ORG", "neither given to another name nor taken"),
    ("ursel", "K/N", "neither given to another name nor taken"),
    ("kadmin/admin", "ursel2", "neither given to another name nor taken"),
    (f"krbtgt/{REALM}", "ursel2", "neither given to another name nor taken"),
    ("ursel", "host/www.example.com", "would be in the database"),
    ("ursel", "HTTP/protected9.example.com", "one is the name of a user"),
    ("ursel", "ursel@OTHER.ORG", "another realm"),
    ("host/local.example.com", "ursel2", "its keys are in the database"),
])
def test_names_that_would_change_what_a_key_does(live, servers, old, new, why):
    for name in ("ursel", "host/local.example.com"):
        if not live.exists(name):
            live.local(f"addprinc -pw secret {name}")
    before = servers.keys(), live.handles()
    said = rename(live, old, new, check=False)
    assert why in said, said
    assert (servers.keys(), live.handles()) == before
    assert logs_in(live, "ursel", "secret")


def test_without_a_server_nothing_is_renamed(live, servers, all_up):
    live.local("addprinc -pw secret waiting")
    before = servers.keys("waiting"), live.handles()
    servers.tell("stop 2")
    said = rename(live, "waiting", "waited", check=False)
    assert "could not be given to waited" in said and "nothing was changed" in said, said
    servers.tell("start 2")
    assert (servers.keys("waiting"), live.handles()) == before
    assert logs_in(live, "waiting", "secret")


def test_what_says_so_is_set_by_nobody(live):
    live.local("addprinc -pw secret vera")
    for name in ("mpc_renamed_from", "mpc_renamed_to"):
        assert "module's own" in live.local(f'setstr vera {name} "ab alice@{REALM}"', check=False)
    assert logs_in(live, "vera", "secret")


# ---- crashes ----

def renamings(live):
    return sorted((h["principal"].split("@")[0], h.get("renamed_from"), h.get("renamed_to"))
                  for h in live.handles() if "renamed_from" in h or "renamed_to" in h)


def test_killed_at_each_write_of_the_database(servers):
    """There is one name that the password opens, and whatever is done next works."""
    with new_realm(servers, "klmdb") as r:
        r.local("addprinc -pw new spare")  # the pages that an entry needs
        r.start_kdc_alone()
        seen, number, step = set(), 0, 1 if long_tests.ENABLED else 2
        while True:
            number += step
            old, new = f"old{number}", f"new{number}"
            r.local(f"addprinc -pw secret {old}")
            if not killed_at(r, "klmdb", number, f"renprinc -force {old} {new}"):
                break
            dump = r.dump_text()
            names = [name for name in (old, new) if logs_in(r, name, "secret")]
            assert len(names) == 1, (number, names)
            assert [name for name in (old, new) if r.exists(name)] == names
            seen.add((names[0] == new, bool(renamings(r))))
            # A copy of the database says the same.
            (r.dir / "loaded").write_text(dump)
            r.run("kdb5_util", "load", r.dir / "loaded")
            assert [name for name in (old, new) if logs_in(r, name, "secret")] == names
            after_the_crash(r, number, old, new, names[0])
            assert renamings(r) == [], number
        assert number > 8, "the shim does not see the database"
        assert {(False, False), (False, True), (True, True)} <= seen, seen


def after_the_crash(live, number, old, new, name):
    """Something else each time, and at last neither entry is left."""
    what = number // 2 % 4
    if what == 0 and name == old:
        rename(live, old, new)  # the same again
        name = new
    elif what == 1:
        live.local(f"cpw -pw changed {name}")  # it goes on as before
        assert logs_in(live, name, "changed")
    elif what == 2:
        third = f"third{number}"
        rename(live, name, third)
        name = third
    other = old if name != old else new
    live.local(f"addprinc -pw another {other}")  # somebody else of the other name
    assert logs_in(live, other, "another")
    assert logs_in(live, name, "changed" if what == 1 else "secret")
    for each in (other, name):
        live.local(f"delprinc -force {each}")
        assert not live.exists(each)
    if new not in (other, name):
        assert not live.exists(new)
    live.kdb("delete", new, check=False)
