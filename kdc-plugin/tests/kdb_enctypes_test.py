# SPDX-License-Identifier: Apache-2.0
"""The KDB module in a realm whose users and services have keys of 17 to 20, too."""

import json

import pytest

import config_files
from kdb_realm import REALM, STOCK, new_realm


@pytest.fixture(scope="module")
def six(servers):
    """A realm whose users have keys for stock clients, too."""
    with new_realm(servers, "klmdb", enctypes=config_files.GCM_ENCTYPES + STOCK,
                   extra_db={"mpc_protect": "HTTP/*"}) as r:
        yield r


def test_one_password_all_its_enctypes(six, servers):
    six.local("addprinc -pw secret alice")
    handles = six.handles("alice")
    assert [h["enctype"] for h in handles] == [-24002, -24001, 18, 17, 20, 19]
    on_servers = {k["handle"]: k for k in servers.keys("alice")}
    assert {on_servers[h["handle"]]["enctype"] for h in handles} == {h["enctype"] for h in handles}
    # What any client computes from the password, by stock krb5's own code.
    keytab = six.dir / "alice.keytab"
    adds = "".join(f"addent -password -p alice -k 1 -e {name}\nsecret\n" for name in STOCK)
    six.run("ktutil", stdin=adds + f"wkt {keytab}\n")
    listing = six.run("klist", "-keK", keytab).stdout
    bases = {h["enctype"]: servers.tell("base " + h["handle"]) for h in handles}
    assert all(f"(0x{base})" in listing for base in bases.values())
    assert bases[-24002] == bases[18] and bases[-24001] == bases[17]
    assert len(set(bases.values())) == 4
    entry = six.dump_entry("alice")
    assert not any(base in entry for base in bases.values())


def test_new_passwords_and_random_keys_of_all_enctypes(six, servers):
    six.local("addprinc -pw secret bob")
    first = six.handles("bob")
    six.local("cpw -keepold -pw other bob")
    both = six.handles("bob")
    assert len(both) == 12 and {h["kvno"] for h in both} == {1, 2}
    six.local("cpw -randkey bob")
    drawn = six.handles("bob")
    assert len(drawn) == 6 and {h["kvno"] for h in drawn} == {3}
    assert {k["handle"] for k in servers.keys("bob")} == {h["handle"] for h in drawn}
    # Nothing of one random key is in another.
    assert len({servers.tell("base " + h["handle"]) for h in drawn}) == 6
    assert {h["handle"] for h in first}.isdisjoint({h["handle"] for h in drawn})
    assert "mpc-admin randkey" in six.local(f"ktadd -norandkey -k {six.dir}/no bob", check=False)
    six.local("addprinc -e aes256-sha2:normal,aes128-cts:normal -pw secret carol")
    assert [h["enctype"] for h in six.handles("carol")] == [20, 17]
    # What the servers do not hold is refused with all the rest.
    assert "mpc_local" in six.local("addprinc -e aes256-cts:normal,camellia128-cts:normal "
                                    "-pw secret dan", check=False)
    assert six.handles("dan") == [] and servers.keys("dan") == []


def test_outage_keeps_all_enctypes(six, servers, all_up):
    six.local("addprinc -pw secret erin")
    before = six.dump_entry("erin")
    servers.tell("stop 2")
    assert "nothing was changed" in six.local("cpw -pw other erin", check=False)
    assert six.dump_entry("erin") == before


def test_krbtgt_has_gcm_keys_alone(six, servers):
    """supported_enctypes is for everybody; no client ever uses krbtgt's key."""
    assert {h["enctype"] for h in six.handles(f"krbtgt/{REALM}")} == {-24002, -24001}
    six.local(f"cpw -randkey -keepold krbtgt/{REALM}")
    handles = six.handles(f"krbtgt/{REALM}")
    assert {h["enctype"] for h in handles} == {-24002, -24001} and len(handles) == 4
    text = six.local(f"cpw -randkey -e aes256-cts:normal krbtgt/{REALM}", check=False)
    assert "supported_enctypes" in text
    assert six.handles(f"krbtgt/{REALM}") == handles


def test_kadmin_has_gcm_keys_alone(six, servers):
    """Whatever is asked for: a ticket under another key would be good for ever."""
    def types():
        return {h["enctype"] for p in names for h in six.handles(p)}

    names = {h["principal"].split("@")[0] for h in six.handles()
             if h["principal"].startswith("kadmin/")}
    assert {"kadmin/admin", "kadmin/changepw"} <= names
    assert types() == {-24002, -24001}  # kdb5_util create
    six.local("cpw -randkey kadmin/admin")
    six.local("cpw -pw secret kadmin/changepw")
    six.local("cpw -randkey -keepold -e aes256-cts:normal,aes128-gcm:normal kadmin/admin")
    six.local("addprinc -randkey kadmin/new.example.com")
    names.add("kadmin/new.example.com")
    assert types() == {-24002, -24001}
    before = six.handles()
    for query in ("cpw -randkey -e aes256-cts:normal kadmin/admin",
                  "cpw -pw x -e aes256-sha2:normal,aes128-cts:normal kadmin/changepw",
                  "addprinc -pw x -e aes128-cts:normal kadmin/other.example.com"):
        assert "must have keys of aes256-gcm" in six.local(query, check=False), query
    assert six.handles() == before
    six.local("delprinc -force kadmin/new.example.com")


def test_protected_services_seal_tickets(six, servers):
    six.local("addprinc -pw secret HTTP/www.example.com")
    keys = servers.keys("HTTP/www.example.com")
    assert len(keys) == 6 and {k["class"] for k in keys} == {3}
    assert {k["class"] for k in servers.keys("kadmin/admin")} == {3}


def test_local_services_get_what_stock_services_read(six):
    """The KDC takes a service's first key for its tickets."""
    def types_of(service):
        entry = six.local(f"getprinc {service}")
        return [line.split(",")[1].strip() for line in entry.splitlines()
                if line.startswith("Key: vno")]

    six.local("addprinc -randkey host/db.example.com")
    assert types_of("host/db.example.com") == STOCK
    six.local("addprinc -randkey -e aes256-gcm:normal host/patched.example.com")
    assert types_of("host/patched.example.com") == ["aes256-gcm"]


def keytab_keys(realm, keytab):
    """(kvno, enctype, key) of each entry."""
    lines = realm.run("klist", "-keK", keytab).stdout.splitlines()
    return [(int(words[0]), words[-2].strip("()"), words[-1])
            for words in (line.split() for line in lines) if words and words[0].isdigit()]


def expect_keytab_of(realm, keytab, service, kvno, enctypes):
    """The keytab holds what the database has of a kvno, key for key, and nothing else."""
    written = keytab_keys(realm, keytab)
    assert [(kvno, enctype) for enctype in enctypes] == [key[:2] for key in written]
    stored = realm.dir / f"{kvno}.stored.keytab"
    realm.local(f"ktadd -norandkey -k {stored} {service}")
    assert written == keytab_keys(realm, stored)


def test_ktadd_writes_what_was_stored(six):
    service = "host/keytab.example.com"
    six.local(f"addprinc -randkey {service}")
    six.local("addprinc -pw root -e aes256-gcm:normal alice/admin")
    six.start_kdc()
    remote = ("kadmin", "-p", "alice/admin", "-w", "root", "-q")
    chosen = "-e aes256-gcm:normal,aes128-sha2:normal,aes256-cts:normal"
    changes = [("", STOCK), (chosen, ["aes128-cts-hmac-sha256-128", "aes256-cts-hmac-sha1-96"]),
               ("-e aes256-gcm:normal", ["aes256-gcm"])]
    kvno = 1
    for run in (six.local, lambda query: six.run(*remote, query)):
        for options, enctypes in changes:
            kvno += 1
            keytab = six.dir / f"{kvno}.keytab"
            run(f"ktadd {options} -k {keytab} {service}")
            expect_keytab_of(six, keytab, service, kvno, enctypes)


def test_mpc_kdb_plans_all_enctypes(six):
    plans = six.kdb("plan-many", "--create", stdin='"gus"\n"HTTP/x.org"\n').stdout.splitlines()
    for plan in map(json.loads, plans):
        assert [e["enctype"] for e in plan["enctypes"]] == [-24002, -24001, 18, 17, 20, 19]
    keys = [dict(e, handle=f"{i + 100:032x}") for i, e in enumerate(plan["enctypes"])]
    line = json.dumps({"principal": "gus", "kvno": 4, "keys": keys})
    assert json.loads(six.kdb("set-handles-many", stdin=line + "\n").stdout) == {}
    assert [h["handle"] for h in six.handles("gus")] == [k["handle"] for k in keys]
    six.kdb("delete", "gus")
