# SPDX-License-Identifier: Apache-2.0
"""The KDB module under kadmin.local and kdb5_util: keys, outages, dumps, configuration."""

import json

import pytest

from kdb_realm import CREATE, REALM, TAG_HEX, new_realm


def test_create_draws_krbtgt_and_protects_kadmin(realm, servers):
    principals = {h["principal"] for h in realm.handles()}
    assert f"krbtgt/{REALM}@{REALM}" in principals
    # kadmin/HOST is there too when kdb5_util finds the host's full name.
    assert {p.split("/")[0] for p in principals} == {"krbtgt", "kadmin"}
    keys = {k["handle"]: k for k in servers.keys(f"krbtgt/{REALM}")}
    for handle in realm.handles(f"krbtgt/{REALM}"):
        assert keys[handle["handle"]]["class"] == 2
        assert handle["enctype"] in (-24001, -24002)
    assert TAG_HEX not in realm.dump_entry("K/M")
    for protected in ("kadmin/admin", "kadmin/changepw"):
        assert TAG_HEX in realm.dump_entry(protected)


def test_password_key_is_split_and_not_stored(realm, servers):
    realm.local("addprinc -pw secret alice")
    handles = realm.handles("alice")
    assert [h["enctype"] for h in handles] == [-24002, -24001]
    assert TAG_HEX in realm.dump_entry("alice")
    # The base key is that of aes256-cts: what any client computes.
    keytab = realm.dir / "alice.keytab"
    realm.run("ktutil", stdin="addent -password -p alice -k 1 -e aes256-cts-hmac-sha1-96\nsecret\n"
                              f"wkt {keytab}\n")
    listing = realm.run("klist", "-keK", keytab).stdout
    assert f"(0x{servers.tell('base ' + handles[0]['handle'])})" in listing
    # In a directory the flags are those of its ticket policy: the servers ask in any case.
    asks = "REQUIRES_PRE_AUTH" in realm.local("getprinc alice")
    assert asks == (realm.options.wrapped != "kldap")


def test_service_keys_leave_as_keytabs(realm):
    realm.local("addprinc -randkey host/www.example.com")
    keytab = realm.dir / "host.keytab"
    realm.local(f"ktadd -k {keytab} host/www.example.com")
    realm.local(f"ktadd -norandkey -k {keytab} host/www.example.com")
    listing = realm.run("klist", "-keK", keytab).stdout
    assert "aes256-gcm" in listing and TAG_HEX not in listing
    assert realm.handles("host/www.example.com") == []
    assert TAG_HEX not in realm.dump_entry("host/www.example.com")


def test_login_keys_of_services(servers, all_up):
    name = "host/www.example.com"
    with new_realm(servers, "klmdb", extra_db={"mpc_service_logins": True}) as r:
        servers.tell("stop 1")
        assert "gets no login key" in r.local(f"addprinc -randkey {name}")
        assert r.handles(name) == []
        servers.tell("start 1")
        r.local(f"ktadd -k {r.dir}/keytab {name}")
        login = r.handles(name)
        on_servers = {k["handle"]: k for k in servers.keys(name)}
        assert len(login) == 1 and on_servers[login[0]["handle"]]["gate"] == 2
        r.local(f"cpw -randkey {name}")
        assert r.handles(name) == login
        r.local(f"renprinc -force {name} host/web.example.com")
        assert servers.keys(name) == [] and len(servers.keys("host/web.example.com")) == 1
        r.local("delprinc -force host/web.example.com")
        assert servers.keys("host/web.example.com") == []


def test_taking_protected_keys_out_is_refused(realm):
    realm.local("addprinc -pw secret alice")
    before = realm.handles("alice")
    keytab = realm.dir / "alice.keytab"
    for query in (f"ktadd -k {keytab} alice", f"ktadd -norandkey -k {keytab} alice"):
        assert "mpc-admin randkey" in realm.local(query, check=False)
    assert not keytab.exists()
    assert realm.handles("alice") == before


def test_new_random_keys_and_old_ones(realm, servers):
    realm.local("addprinc -pw secret alice")
    first = realm.handles("alice")
    realm.local("cpw -randkey -keepold alice")
    both = realm.handles("alice")
    assert {h["kvno"] for h in both} == {1, 2}
    assert {h["handle"] for h in first} < {h["handle"] for h in both}
    realm.local("cpw -pw other alice")
    on_servers = {k["handle"] for k in servers.keys("alice")}
    assert {h["handle"] for h in realm.handles("alice")} <= on_servers
    assert on_servers.isdisjoint({h["handle"] for h in both})


def test_purgekeys_and_delete_take_keys_from_the_servers(realm, servers):
    realm.local("addprinc -pw secret bob")
    realm.local("cpw -keepold -pw other bob")
    old = {h["handle"] for h in realm.handles("bob") if h["kvno"] == 1}
    realm.local("purgekeys bob")
    assert old.isdisjoint({k["handle"] for k in servers.keys("bob")})
    left = {h["handle"] for h in realm.handles("bob")}
    realm.local("delprinc -force bob")
    assert left.isdisjoint({k["handle"] for k in servers.keys("bob")})


def test_outage_changes_nothing(realm, servers, all_up):
    realm.local("addprinc -pw secret alice")
    before = realm.dump_entry("alice")
    servers.tell("stop 1")
    text = realm.local("cpw -pw other alice", check=False)
    assert "nothing was changed" in text and servers.info["servers"][1] in text
    assert realm.dump_entry("alice") == before
    assert "nothing was changed" in realm.local("addprinc -pw secret carol", check=False)
    assert "does not exist" in realm.local("getprinc carol", check=False)
    # Local keys need nobody.
    realm.local("addprinc -randkey host/db.example.com")


def test_enctypes_the_servers_cannot_hold_are_refused(realm):
    text = realm.local("addprinc -e camellia256-cts:normal -pw secret dave", check=False)
    assert "supported_enctypes = aes256-gcm:normal" in text
    realm.local("addprinc -e aes256-cts:normal -randkey host/old.example.com")
    assert "does not exist" in realm.local("getprinc dave", check=False)
    assert "drawn by the MPC servers" in realm.local(f"cpw -pw secret krbtgt/{REALM}", check=False)


def test_cross_realm_keys_follow_their_enctype(realm):
    realm.local(f"addprinc -e aes256-cts:normal -pw shared krbtgt/OTHER.ORG@{REALM}")
    assert len(realm.handles("krbtgt/OTHER.ORG")) == 1
    realm.local(f"addprinc -pw shared krbtgt/GCM.ORG@{REALM}")
    assert len(realm.handles("krbtgt/GCM.ORG")) == 2
    # With a realm that knows none of the servers' types: all of them local, since a KDC of ours takes
    # whichever comes first.
    realm.local("addprinc -e aes256-cts:normal,camellia256-cts:normal -pw shared "
                f"krbtgt/OLD.ORG@{REALM}")
    assert realm.handles("krbtgt/OLD.ORG") == []
    # A random one is known to nobody: it cannot be given to the other realm.
    realm.local(f"addprinc -e aes256-cts:normal -randkey krbtgt/RANDOM.ORG@{REALM}")
    assert len(realm.handles("krbtgt/RANDOM.ORG")) == 1
    assert "cannot be taken out" in realm.local(
        f"ktadd -norandkey -k {realm.dir}/between krbtgt/RANDOM.ORG@{REALM}", check=False)


def test_rename(realm):
    realm.local("addprinc -pw secret host/a.example.com")
    realm.local("renprinc -force host/a.example.com host/b.example.com")
    realm.local(f"ktadd -norandkey -k {realm.dir}/k host/b.example.com")


@pytest.mark.parametrize("realm", ["db2", "klmdb"], indirect=True)  # kldap takes load -update alone
def test_dump_and_load_need_no_server(realm, servers, all_up):
    realm.local("addprinc -pw secret alice")
    realm.local("addprinc -randkey host/www.example.com")
    before = realm.dump_text()
    for i in range(3):
        servers.tell(f"stop {i}")
    for flags in ((), ("-update",)):
        realm.run("kdb5_util", "load", *flags, realm.dir / "dump")
        assert sorted(realm.dump_text().splitlines()) == sorted(before.splitlines())


def test_master_key_rollover(realm):
    realm.local("addprinc -pw secret alice")
    realm.local("addprinc -randkey host/www.example.com")
    first, second = realm.dir / "1.keytab", realm.dir / "2.keytab"
    realm.local(f"ktadd -norandkey -k {first} host/www.example.com")
    before = realm.handles()
    realm.run("kdb5_util", "add_mkey", "-s", stdin="new\nnew\n")
    realm.run("kdb5_util", "use_mkey", "2")
    realm.run("kdb5_util", "update_princ_encryption", "-f")
    realm.run("kdb5_util", "purge_mkeys", "-f")
    realm.local(f"ktadd -norandkey -k {second} host/www.example.com")

    def keys(keytab):
        lines = realm.run("klist", "-kK", keytab).stdout.splitlines()
        return [line.split()[-1] for line in lines if "(0x" in line]

    assert keys(first) == keys(second) and len(keys(first)) == 2
    assert sorted(map(str, realm.handles())) == sorted(map(str, before))
    realm.local("cpw -pw other alice")


def test_password_policy_with_history(realm):
    realm.local("addpol -history 3 -minlength 3 strict")
    realm.local("addprinc -policy strict -pw first alice")
    realm.local("addprinc -policy strict -pw first host/www.example.com")
    realm.local("cpw -pw second alice")
    realm.local("cpw -pw second host/www.example.com")
    realm.local("cpw -pw third host/www.example.com")
    assert "Cannot reuse password" in realm.local("cpw -pw first host/www.example.com", check=False)
    assert "too short" in realm.local("cpw -pw x alice", check=False)
    realm.local("cpw -pw third alice")
    # A protected one's: the servers compare, the present password and two before it.
    for password in ("third", "second", "first"):
        assert "Cannot reuse password" in realm.local(f"cpw -pw {password} alice", check=False)
    realm.local("cpw -pw fourth alice")
    realm.local("cpw -pw first alice")
    past = [h for h in realm.handles("alice") if h.get("history")]
    assert len(past) == 2 * 2, "two passwords, each with keys of two types"


def test_the_servers_answer_is_what_refuses(realm, servers):
    """The control: servers that call everything different have reuse accepted."""
    realm.local("addpol -history 3 strict")
    realm.local("addprinc -policy strict -pw first alice")
    servers.tell("blind 1")
    realm.local("cpw -pw first alice")
    servers.tell("blind 0")
    assert "Cannot reuse password" in realm.local("cpw -pw first alice", check=False)


def test_history_beside_old_keys_that_are_kept(realm):
    """-keepold reads the present keys too, to move them: that is no comparison."""
    realm.local("addpol -history 3 strict")
    realm.local("addprinc -policy strict -pw first alice")
    realm.local("cpw -keepold -pw second alice")
    for password in ("first", "second"):
        assert "Cannot reuse password" in realm.local(f"cpw -keepold -pw {password} alice", check=False)
    realm.local("cpw -keepold -pw third alice")


def test_no_new_password_without_a_comparison(realm, servers, all_up):
    """One server less: what cannot be compared is not taken, nor taken for different."""
    realm.local("addpol -history 3 strict")
    realm.local("addprinc -policy strict -pw first alice")
    before = realm.dump_entry("alice")
    servers.tell("stop 1")
    for password in ("first", "second"):
        said = realm.local(f"cpw -pw {password} alice", check=False)
        assert "could not be compared" in said and "nothing was changed" in said, said
    assert realm.dump_entry("alice") == before
    servers.tell("start 1")
    assert "Cannot reuse password" in realm.local("cpw -pw first alice", check=False)
    realm.local("cpw -pw second alice")


def test_overrides(servers):
    with new_realm(servers, extra_db={"mpc_local": "robot/* kiosk",
                                      "mpc_protect": "host/vault*"}) as r:
        for name in ("robot/1", "kiosk", "host/vault.example.com", "host/x.example.com", "zoe"):
            r.local(f"addprinc -pw secret {name}")
        protected = {h["principal"].split("@")[0] for h in r.handles()
                     if not h["principal"].startswith("kadmin/")}
        assert protected == {f"krbtgt/{REALM}", "host/vault.example.com", "zoe"}


@pytest.mark.parametrize("wrong, text", [
    ({"mpc_servers": "127.0.0.1:1 127.0.0.1:2"}, "mpc_servers must name three servers"),
    ({"mpc_servers": ["127.0.0.1:1 127.0.0.1:2 127.0.0.1:3", "127.0.0.1:4"]},
     "mpc_servers must name three servers as host:port, on one line"),
    ({"mpc_servers": ["127.0.0.1:1 127.0.0.1:2 127.0.0.1:3"] * 17},
     "mpc_servers is there for more than 16 triples"),
    ({"mpc_servers": "127.0.0.1 127.0.0.1:2 127.0.0.1:3"},
     "mpc_servers must name each server as host:port"),
    ({"mpc_wrapped": "test"}, "mpc_wrapped must be db2, klmdb or kldap"),
    ({"mpc_cluster": "one"}, "mpc_cluster is not a number"),
    ({"mpc_ca": []}, "mpc_ca is missing"),
    ({"mpc_service_logins": "maybe"}, "mpc_service_logins must be true or false"),
    ({"mpc_allow_core_dumps": "1 GB"}, "mpc_allow_core_dumps must be true or false"),
    ({"mpc_timeout": "soon"}, "mpc_timeout is not a duration"),
])
def test_config_errors_name_the_relation(servers, wrong, text):
    with new_realm(servers, create=False, extra_db=wrong) as r:
        result = r.run(*CREATE, check=False)
        assert result.returncode != 0 and text in result.stdout


@pytest.mark.parametrize("wrapped", ["db2", "klmdb"])
def test_the_update_log_has_what_was_stored(servers, wrapped):
    iprop = {"iprop_enable": True, "iprop_port": 1}
    with new_realm(servers, wrapped, extra_realm=iprop) as r:
        r.run("kproplog", "-R")
        r.local("addprinc -pw secret alice")
        stored = {handle["handle"] for handle in r.handles("alice")}
        r.local("addprinc -randkey host/a.example.com")
        r.local("renprinc -force host/a.example.com host/b.example.com")
        r.kdb("set-handles", "bob", stdin=json.dumps({"kvno": 1, "keep_old": False, "keys": [
            {"enctype": -24002, "salt_type": 0, "salt": "", "handle": 32 * "a"}]}))
        r.local("delprinc -force alice")
        updates = r.run("kproplog", "-v", "-v").stdout.split("Update principal : ")[1:]
        host, renamed = f"host/a.example.com@{REALM}", f"host/b.example.com@{REALM}"
        assert [update.split("\n")[0] for update in updates] == [
            f"alice@{REALM}", host, renamed, host, renamed,
            f"bob@{REALM}", f"bob@{REALM}",  # made, then given keys
            f"alice@{REALM}"]
        assert "REQUIRES_PRE_AUTH" in updates[0]  # the module's own doing
        logged = updates[0].lower().split(TAG_HEX)[1:]
        assert {key[:32] for key in logged} == stored and len(stored) == 2
        assert TAG_HEX not in updates[1].lower()
        assert TAG_HEX + 32 * "a" in updates[6].lower()
