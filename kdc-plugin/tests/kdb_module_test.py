# SPDX-License-Identifier: Apache-2.0
"""The KDB module and the provider under krb5's own programs, against three fake servers.

Environment: MPCKDC_KRB5 (where the patched krb5 is installed), MPCKDC_CMAKE (the build directory).
ctest sets both.
"""

import contextlib
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "integration-tests/realm"))

import config_files  # noqa: E402
import daemon  # noqa: E402
import realm as realms  # noqa: E402

TAG_HEX = b"remote-key:".hex()
REALM = "EXAMPLE.COM"
STOCK = config_files.STOCK_ENCTYPES
CREATE = ("kdb5_util", "create", "-s", "-P", "master")


class FakeServers:
    """Three servers in one process: mpckdc_fake_servers."""

    def __init__(self):
        program = config_files.CMAKE / "kdc-plugin/tests/mpckdc_fake_servers"
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.info = json.loads(self.process.stdout.readline())

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def keys(self, principal=None):
        keys = self.tell("keys")
        return [k for k in keys if principal is None or k["principal"] == f"{principal}@{REALM}"]

    def wait_for_jobs(self, count):
        assert daemon.wait_until(lambda: self.tell("jobs") >= count, 20, pause=0.01), \
            "the login does not reach the servers"

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=20)


class KdbRealm(realms.Realm):
    """A realm in a temporary directory, with the module around db2 or klmdb and fake servers."""

    def __init__(self, servers, wrapped, enctypes, extra_db, extra_realm, workers):
        info = servers.info
        keysalts = " ".join(f"{name}:normal" for name in enctypes)
        super().__init__(
            tempfile.mkdtemp(prefix="mpckdc-kdb-"),
            realms.Options(
                realm=REALM, wrapped=wrapped, workers=workers,
                extra_realm={"supported_enctypes": keysalts, "default_principal_flags": "-preauth",
                             **extra_realm},
                extra_database={
                    "mpc_servers": " ".join(info["servers"]), "mpc_ca": info["ca"],
                    "mpc_certificate": info["kdc"]["certificate"], "mpc_key": info["kdc"]["key"],
                    "mpc_admin_certificate": info["admin"]["certificate"],
                    "mpc_admin_key": info["admin"]["key"], "mpc_timeout": [], **extra_db}))

    def _server_daemons(self):
        return []

    def write_files(self):
        for folder in (self.log_dir, self.run_dir, self.kdc_dir):
            folder.mkdir()
        config_files.write_krb5(self)

    def local(self, query, check=True):
        """A kadmin.local query. Its exit status says nothing in 1.20, so look at the text."""
        result = self.run("kadmin.local", "-q", query, check=check)
        for word in ("Unable", "while ", "Cannot"):
            assert not check or word not in result.stdout, result.stdout
        return result.stdout

    def kdb(self, *arguments, stdin="", check=True):
        program = config_files.mpc_program("mpc-kdb")
        return self.run(program, *arguments, stdin=stdin, check=check)

    def handles(self, principal=None):
        lines = [json.loads(line) for line in self.kdb("list").stdout.splitlines()]
        return [h for h in lines if principal is None or h["principal"] == f"{principal}@{REALM}"]

    def dump_text(self):
        return self.dump(self.dir / "dump").read_text()

    def dump_entry(self, principal):
        return [line for line in self.dump_text().splitlines()
                if f"\t{principal}@{REALM}\t" in line][0]

    def log(self, name="kdc"):
        return (self.log_dir / f"{name}.log").read_text()

    def start_kdc_alone(self):
        self.kdc.start()
        self._wait_for_port(self.kdc, self.ports.kdc)

    def destroy(self):
        super().destroy()
        for process in (self.kdc, self.kadmind):
            assert process.exit_status() in (None, 0, -signal.SIGTERM)


@contextlib.contextmanager
def new_realm(servers, wrapped="db2", *, create=True, enctypes=config_files.GCM_ENCTYPES,
              extra_db=None, extra_realm=None, workers=0):
    r = KdbRealm(servers, wrapped, enctypes, extra_db or {}, extra_realm or {}, workers)
    try:
        r.write_files()
        if create:
            r.run(*CREATE)
        yield r
    finally:
        r.destroy()


@pytest.fixture(scope="module")
def servers():
    s = FakeServers()
    yield s
    s.close()


@pytest.fixture(params=["db2", "klmdb"])
def realm(request, servers):
    with new_realm(servers, request.param) as r:
        yield r


@pytest.fixture
def all_up(servers):
    """For tests that stop servers."""
    yield
    for i in range(3):
        servers.tell(f"stop {i}")
        servers.tell(f"start {i}")


# ---- the database ----

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
    assert "REQUIRES_PRE_AUTH" in realm.local("getprinc alice")


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


def test_cross_realm_keys_follow_their_enctype(realm):
    realm.local(f"addprinc -e aes256-cts:normal -pw shared krbtgt/OTHER.ORG@{REALM}")
    assert realm.handles("krbtgt/OTHER.ORG") == []
    realm.local(f"addprinc -pw shared krbtgt/GCM.ORG@{REALM}")
    assert len(realm.handles("krbtgt/GCM.ORG")) == 2


def test_rename(realm):
    realm.local("addprinc -pw secret alice")
    assert "cannot be renamed" in realm.local("renprinc -force alice eve", check=False)
    assert "does not exist" in realm.local("getprinc eve", check=False)
    realm.local("addprinc -pw secret host/a.example.com")
    realm.local("renprinc -force host/a.example.com host/b.example.com")
    realm.local(f"ktadd -norandkey -k {realm.dir}/k host/b.example.com")


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
    ({"mpc_wrapped": "kldap"}, "mpc_wrapped must be db2 or klmdb"),
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


def test_iprop_is_refused(servers):
    iprop = {"iprop_enable": True, "iprop_port": 1}
    with new_realm(servers, create=False, extra_realm=iprop) as r:
        assert "iprop_enable" in r.run(*CREATE, check=False).stdout


# ---- mpc-kdb ----

def test_mpc_kdb_plan_set_list_delete(realm):
    assert realm.kdb("plan", "frank", check=False).returncode == 4
    plan = json.loads(realm.kdb("plan", "frank", "--create").stdout)
    assert plan["principal"] == f"frank@{REALM}"
    assert not plan["exists"] and plan["kvno_next"] == 1
    assert [e["enctype"] for e in plan["enctypes"]] == [-24002, -24001]
    assert bytes.fromhex(plan["enctypes"][0]["salt"]) == b"EXAMPLE.COMfrank"
    keys = [dict(e, handle=f"{i:032x}") for i, e in enumerate(plan["enctypes"])]
    realm.kdb("set-handles", "frank", stdin=json.dumps({"kvno": 1, "keys": keys}))
    assert [h["handle"] for h in realm.handles("frank")] == [k["handle"] for k in keys]
    plan = json.loads(realm.kdb("plan", "frank").stdout)
    assert plan["exists"] and plan["kvno_next"] == 2
    more = [dict(k, handle="f" * 32) for k in keys[:1]]
    realm.kdb("set-handles", "frank",
              stdin=json.dumps({"kvno": 2, "keep_old": True, "keys": more}))
    assert len(realm.handles("frank")) == 3
    realm.kdb("delete", "frank")
    assert realm.kdb("delete", "frank", check=False).returncode == 4


@pytest.mark.parametrize("text", ["", "{", "[]", '{"kvno":1,"keys":[]}',
                                  '{"kvno":0,"keys":[{}]}', '{"kvno":1,"keys":[{"enctype":1}]}'])
@pytest.mark.parametrize("realm", ["db2"], indirect=True)
def test_mpc_kdb_rejects_bad_input(realm, text):
    result = realm.kdb("set-handles", "gina", stdin=text, check=False)
    assert result.returncode == 1 and "mpc-kdb: " in result.stdout
    assert "does not exist" in realm.local("getprinc gina", check=False)


@pytest.mark.parametrize("realm", ["db2"], indirect=True)
def test_mpc_kdb_usage(realm):
    assert realm.kdb("frobnicate", check=False).returncode == 2
    assert realm.kdb("plan", check=False).returncode == 2


# ---- the whole way with krb5kdc and kadmind ----

@pytest.fixture(params=[0, 2], ids=["one-process", "workers"])
def live(request, servers):
    with new_realm(servers, workers=request.param) as r:
        r.local("addprinc -pw secret alice")
        r.local("addprinc -randkey host/www.example.com")
        r.start_kdc_alone()
        yield r


def test_login_ticket_renewal_and_wrong_password(live):
    live.kinit("alice", "secret", "-r", "2d")
    assert "aes256-gcm" in live.run("klist", "-e").stdout
    live.run("kvno", "host/www.example.com")
    live.run("kinit", "-R")
    live.run("kvno", "host/www.example.com")
    result = live.kinit("alice", "wrong", check=False)
    assert result.returncode != 0 and "Password incorrect" in result.stdout


@pytest.mark.parametrize("allowed", ["true", "false"])
def test_services_log_in_only_if_allowed(servers, allowed):
    name = "host/www.example.com"
    with new_realm(servers, extra_db={"mpc_service_logins": allowed}) as r:
        r.local(f"addprinc -randkey {name}")
        r.local(f"ktadd -k {r.dir}/keytab {name}")
        r.start_kdc_alone()
        result = r.run("kinit", "-k", "-t", r.dir / "keytab", name, check=False)
        assert (result.returncode == 0) == (allowed == "true"), result.stdout
        if allowed == "true":
            r.run("kvno", name)
        else:
            assert "policy rejects" in result.stdout
            assert "mpc_service_logins" in r.log()


def test_outage_is_no_wrong_password(live, servers, all_up):
    live.kinit("alice", "secret")
    servers.tell("stop 2")
    result = live.kinit("alice", "secret", check=False)
    assert result.returncode != 0 and "Password incorrect" not in result.stdout
    assert servers.info["servers"][2] in live.log()
    assert "Failed password attempts: 0" in live.local("getprinc alice")
    servers.tell("start 2")
    def logs_in():
        return live.kinit("alice", "secret", check=False).returncode == 0
    assert daemon.wait_until(logs_in, 20, pause=0.2), live.log()


@pytest.fixture(params=["db2", "klmdb"])
def slow(request, servers):
    """A realm whose servers take half a second, so that things happen during a login."""
    with new_realm(servers, request.param) as r:
        r.local("addprinc -pw secret alice")
        r.start_kdc_alone()
        r.kinit("alice", "secret")  # the streams are up
        servers.tell("delay 500")
        yield r
        servers.tell("delay 0")


def begin_login(live, password, number=0):
    """alice's kinit, which goes on while the test does."""
    login = subprocess.Popen(
        ["kinit", "-c", f"FILE:{live.dir}/ccache{number}", "alice"], text=True,
        env=dict(live.env, KRB5_TRACE=str(live.dir / f"trace{number}")), stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    login.stdin.write(password + "\n")
    login.stdin.close()
    return login


def test_login_does_not_undo_a_change_made_meanwhile(slow, servers):
    """Both logins end after the change: one succeeds, one is counted; neither writes it away."""
    for number, password in enumerate(("secret", "wrong")):
        slow.local("modprinc -expire never alice")
        jobs = servers.tell("jobs")
        login = begin_login(slow, password, number)
        servers.wait_for_jobs(jobs + 1)
        slow.local("modprinc -expire 2037-01-01 alice")
        assert login.poll() is None, "the login was faster than the change: nothing was tested"
        assert (login.wait() == 0) == (password == "secret")
        assert "Expiration date: Thu Jan 01" in slow.local("getprinc alice"), password


@pytest.mark.parametrize("slow", ["klmdb"], indirect=True)  # kinit repeats for 19 s
def test_request_repeated_after_a_restart_is_no_replay(slow, servers):
    """The servers have verified it for the krb5kdc that was killed; the client asks the new one."""
    jobs = servers.tell("jobs")
    login = begin_login(slow, "secret")
    servers.wait_for_jobs(jobs + 1)
    slow.kdc.kill()
    slow.start_kdc_alone()
    servers.tell("delay 0")
    login.wait()
    said = login.stdout.read()
    assert "replay" not in said, said
    assert login.returncode == 0 or "service is not available" in said, said
    assert "verified this request before" in slow.log()
    slow.kinit("alice", "secret")


def test_every_failure_is_counted_when_many_wait_at_once(slow):
    """A first one alone: klmdb resets its count at whatever seems the first failure of all."""
    assert slow.kinit("alice", "wrong", check=False).returncode
    guesses = [begin_login(slow, "wrong", number) for number in range(6)]
    assert all(guess.wait() for guess in guesses)
    assert "Failed password attempts: 7" in slow.local("getprinc alice")


@pytest.fixture(params=["db2", "klmdb"])
def patient(request, servers):
    """A realm whose KDC waits long for its servers; alice is locked by three wrong passwords."""
    with new_realm(servers, request.param, extra_db={"mpc_timeout": "15s"}) as r:
        r.local("addpol -maxfailure 3 -failurecountinterval 1h -lockoutduration 1h three")
        r.local("addprinc -pw secret -policy three alice")
        r.start_kdc_alone()
        r.kinit("alice", "secret")  # the streams are up
        yield r
        servers.tell("delay 0")


@contextlib.contextmanager
def paused(servers):
    servers.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        servers.process.send_signal(signal.SIGCONT)


def wait_until_sent(live, numbers):
    """Until each login has sent its pre-authentication; it ends, or servers wait, after that."""
    def sent(number):
        trace = live.dir / f"trace{number}"
        return (trace.exists() and
                "Sending " in trace.read_text().partition("encrypted_timestamp (2)")[2])
    assert daemon.wait_until(lambda: all(map(sent, numbers)), 12, pause=0.01), \
        "the logins do not reach the KDC in time"
    time.sleep(0.3)


def test_guesses_that_wait_together_are_locked_out(patient, servers):
    """All are judged by the servers, but after three failures no answer says what they found."""
    jobs = servers.tell("jobs")
    with paused(servers):
        logins = [begin_login(patient, f"guess {number}", number) for number in range(10)]
        wait_until_sent(patient, range(10))
        logins.append(begin_login(patient, "secret", 10))
        wait_until_sent(patient, [10])
    said = [login.stdout.read() for login in logins]
    assert all(login.wait() for login in logins), said
    assert servers.tell("jobs") == jobs + 11, "they did not wait together: nothing was tested"
    assert "have been revoked" in said[-1], said[-1]
    assert sum("Password incorrect" in text for text in said) == 3, said
    assert sum("have been revoked" in text for text in said) == 8, said
    assert patient.log().count("LOCKED_OUT") == 8
    assert "Failed password attempts: 3" in patient.local("getprinc alice")
    patient.local("modprinc -unlock alice")
    patient.kinit("alice", "secret")


@pytest.mark.parametrize("patient", ["db2"], indirect=True)
@pytest.mark.parametrize("change, error, log", [
    ("modprinc -allow_tix alice", "have been revoked", "CLIENT LOCKED OUT"),
    ("modprinc -expire yesterday alice", "has expired", "CLIENT EXPIRED"),
    ("delprinc -force alice", "not found in Kerberos database", "CLIENT_NOT_FOUND"),
    ("cpw -pw another alice", "Password incorrect", "Client key changed"),
    ("cpw -keepold -pw another alice", "Password incorrect", "Client key changed"),
])
def test_change_while_a_login_waits_holds_for_it(patient, servers, change, error, log):
    """The servers have found the password right, and their answers are on their way."""
    servers.tell("delay 2500")
    jobs = servers.tell("jobs")
    login = begin_login(patient, "secret")
    servers.wait_for_jobs(jobs + 1)
    assert log not in patient.log()
    patient.local(change)
    said = login.stdout.read()
    assert login.wait() and error in said, said
    assert log in patient.log()


def test_kadmin_and_kpasswd(servers):
    with new_realm(servers) as r:
        r.local("addprinc -pw secret alice")
        r.local("addprinc -pw root alice/admin")
        r.start_kdc()
        r.run("kpasswd", "alice", stdin="secret\nbetter\nbetter\n")
        r.kinit("alice", "better")
        kadmin = ("kadmin", "-p", "alice/admin", "-w", "root", "-q")
        r.run(*kadmin, "addprinc -pw hello heidi")
        assert len(r.handles("heidi")) == 2
        r.kinit("heidi", "hello")
        before = r.handles("heidi")
        for query in ("cpw -randkey heidi", f"ktadd -k {r.dir}/h.keytab heidi"):
            assert "mpc-admin randkey" in r.run(*kadmin, query, check=False).stdout
        assert r.handles("heidi") == before
        assert "mpc-admin randkey" in r.log("kadmind-requests")
        r.run(*kadmin, "addprinc -randkey host/new.example.com")
        r.run(*kadmin, f"ktadd -k {r.dir}/new.keytab host/new.example.com")
        assert "host/new.example.com" in r.run("klist", "-k", r.dir / "new.keytab").stdout
