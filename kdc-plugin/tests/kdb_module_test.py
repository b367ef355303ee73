# SPDX-License-Identifier: Apache-2.0
"""The KDB module and the provider under krb5's own programs, against three fake servers.

Environment: MPCKDC_KRB5 (where the patched krb5 is installed), MPCKDC_PLUGIN_BUILD (the build
directory of kdc-plugin). ctest sets both.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import pytest

KRB5 = pathlib.Path(os.environ["MPCKDC_KRB5"])
BUILD = pathlib.Path(os.environ["MPCKDC_PLUGIN_BUILD"])
TAG_HEX = b"remote-key:".hex()
REALM = "EXAMPLE.COM"


_ports = iter(range(30000 + os.getpid() % 20 * 130, 32768))


def free_port():
    """Below the ephemeral range, where no outgoing connection takes it, and never the same again."""
    for port in _ports:
        with socket.socket() as s, socket.socket(type=socket.SOCK_DGRAM) as u:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("127.0.0.1", port))
                u.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no free ports on the loopback interface")


GCM = ("aes256-gcm", "aes128-gcm")
STOCK = ("aes256-cts-hmac-sha1-96", "aes128-cts-hmac-sha1-96", "aes256-cts-hmac-sha384-192",
         "aes128-cts-hmac-sha256-128")
SIX = GCM + STOCK


class FakeServers:
    """Three servers in one process: mpckdc_fake_servers."""

    def __init__(self):
        self.process = subprocess.Popen([BUILD / "tests" / "mpckdc_fake_servers"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.info = json.loads(self.process.stdout.readline())

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def keys(self, principal=None):
        keys = self.tell("keys")
        return [k for k in keys if principal is None or k["principal"] == f"{principal}@{REALM}"]

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=20)


class Realm:
    """A realm in a temporary directory, with the module around db2 or klmdb."""

    def __init__(self, servers, wrapped, extra_kdc_conf="", extra_db="", enctypes=GCM):
        self.servers = servers
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="mpckdc-kdb-"))
        self.kdc_port, self.kadmin_port, self.kpasswd_port = (free_port() for _ in range(3))
        self.daemons = []
        info = servers.info
        modules = self.dir / "modules"
        modules.mkdir()
        (modules / "mpc.so").symlink_to(BUILD / "kdb-module" / "mpc.so")
        self.write("kadm5.acl", f"*/admin@{REALM} *\n")
        self.write("krb5.conf", f"""
[libdefaults]
    default_realm = {REALM}
    dns_lookup_kdc = false
    dns_canonicalize_hostname = false
    permitted_enctypes = aes256-gcm aes128-gcm DEFAULT
    rdns = false
[realms]
    {REALM} = {{
        kdc = 127.0.0.1:{self.kdc_port}
        admin_server = 127.0.0.1:{self.kadmin_port}
        kpasswd_server = 127.0.0.1:{self.kpasswd_port}
    }}
""")
        self.write("kdc.conf", f"""
[kdcdefaults]
    kdc_listen = 127.0.0.1:{self.kdc_port}
    kdc_tcp_listen = 127.0.0.1:{self.kdc_port}
[realms]
    {REALM} = {{
        database_module = split
        key_stash_file = {self.dir}/stash
        acl_file = {self.dir}/kadm5.acl
        master_key_type = aes256-cts
        supported_enctypes = {" ".join(f"{name}:normal" for name in enctypes)}
        kadmind_listen = 127.0.0.1:{self.kadmin_port}
        kpasswd_listen = 127.0.0.1:{self.kpasswd_port}
        max_renewable_life = 7d
        disable_pac = true
        {extra_kdc_conf}
    }}
[dbmodules]
    db_module_dir = {modules}
    db_module_dir = {KRB5}/lib/krb5/plugins/kdb
    split = {{
        db_library = mpc
        mpc_wrapped = {wrapped}
        database_name = {self.dir}/principal
        mapsize = 64
        mpc_servers = {" ".join(info["servers"])}
        mpc_ca = {info["ca"]}
        mpc_certificate = {info["kdc"]["certificate"]}
        mpc_key = {info["kdc"]["key"]}
        mpc_admin_certificate = {info["admin"]["certificate"]}
        mpc_admin_key = {info["admin"]["key"]}
        mpc_cluster = 1
        {extra_db}
    }}
[logging]
    kdc = FILE:{self.dir}/kdc.log
    admin_server = FILE:{self.dir}/kadmind.log
    default = FILE:{self.dir}/default.log
""")
        self.env = dict(os.environ, KRB5_CONFIG=str(self.dir / "krb5.conf"),
                        KRB5_KDC_PROFILE=str(self.dir / "kdc.conf"),
                        KRB5CCNAME=f"FILE:{self.dir}/ccache",
                        LD_LIBRARY_PATH=str(KRB5 / "lib"),
                        PATH=f"{KRB5}/bin:{KRB5}/sbin:{os.environ['PATH']}")

    def write(self, name, text):
        (self.dir / name).write_text(text)

    def run(self, *command, input=None, ok=True, env=None):
        command = [str(c) for c in command]
        result = subprocess.run(command, input=input, text=True, timeout=120,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                env=dict(self.env, **(env or {})))
        if ok:
            assert result.returncode == 0, f"{command}: {result.stdout}"
        return result.stdout if ok else result

    def create(self):
        self.run("kdb5_util", "create", "-s", "-P", "master")

    def local(self, query, ok=True):
        """A kadmin.local query. Its exit status says nothing in 1.20, so look at the text."""
        result = self.run("kadmin.local", "-q", query, ok=False)
        if ok:
            assert result.returncode == 0, result.stdout
            for word in ("Unable", "while ", "Cannot"):
                assert word not in result.stdout, result.stdout
        return result.stdout

    def kdb(self, *arguments, input=None, ok=True):
        return self.run(BUILD / "kdb-tool" / "mpc-kdb", *arguments, input=input, ok=ok)

    def handles(self, principal=None):
        lines = [json.loads(line) for line in self.kdb("list").splitlines()]
        return [h for h in lines if principal is None or h["principal"] == f"{principal}@{REALM}"]

    def dump_text(self):
        self.run("kdb5_util", "dump", self.dir / "dump")
        return (self.dir / "dump").read_text()

    def dump_entry(self, principal):
        return [line for line in self.dump_text().splitlines()
                if f"\t{principal}@{REALM}\t" in line][0]

    def start(self, *command):
        log = open(self.dir / "daemons.out", "a")
        process = subprocess.Popen([str(c) for c in command], env=self.env, stdout=log, stderr=log,
                                   start_new_session=True)
        self.daemons.append(process)
        return process

    def start_kdc(self, *options):
        process = self.start("krb5kdc", "-n", *options)
        self.wait_port(self.kdc_port)
        return process

    def start_kadmind(self):
        process = self.start("kadmind", "-nofork")
        self.wait_port(self.kadmin_port)
        return process

    def wait_port(self, port):
        end = time.time() + 20
        while time.time() < end:
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError("no listener: " + (self.dir / "daemons.out").read_text())

    def kinit(self, principal, password, *options, ok=True):
        return self.run("kinit", *options, principal, input=password + "\n", ok=ok)

    def close(self):
        for process in self.daemons:
            os.killpg(process.pid, signal.SIGTERM)
        for process in self.daemons:
            assert process.wait(timeout=20) in (0, -signal.SIGTERM)
        shutil.rmtree(self.dir)


@pytest.fixture(scope="module")
def servers():
    s = FakeServers()
    yield s
    s.close()


@pytest.fixture(params=["db2", "klmdb"])
def realm(request, servers):
    r = Realm(servers, request.param)
    r.create()
    yield r
    r.close()


@pytest.fixture
def db2_realm(servers):
    r = Realm(servers, "db2")
    r.create()
    yield r
    r.close()


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
    realm.run("ktutil", input="addent -password -p alice -k 1 -e aes256-cts-hmac-sha1-96\nsecret\n"
                              f"wkt {keytab}\n")
    listing = realm.run("klist", "-keK", keytab)
    assert f"(0x{servers.tell('base ' + handles[0]['handle'])})" in listing
    assert "REQUIRES_PRE_AUTH" in realm.local("getprinc alice")


def test_service_keys_leave_as_keytabs(realm):
    realm.local("addprinc -randkey host/www.example.com")
    keytab = realm.dir / "host.keytab"
    realm.local(f"ktadd -k {keytab} host/www.example.com")
    realm.local(f"ktadd -norandkey -k {keytab} host/www.example.com")
    listing = realm.run("klist", "-keK", keytab)
    assert "aes256-gcm" in listing and TAG_HEX not in listing
    assert realm.handles("host/www.example.com") == []
    assert TAG_HEX not in realm.dump_entry("host/www.example.com")


def test_login_keys_of_services(servers, all_up):
    r = Realm(servers, "klmdb", extra_db="mpc_service_logins = true")
    name = "host/www.example.com"
    try:
        r.create()
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
    finally:
        r.close()


def test_taking_protected_keys_out_is_refused(realm):
    realm.local("addprinc -pw secret alice")
    before = realm.handles("alice")
    keytab = realm.dir / "alice.keytab"
    for query in (f"ktadd -k {keytab} alice", f"ktadd -norandkey -k {keytab} alice"):
        assert "mpc-admin randkey" in realm.local(query, ok=False)
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
    third = {h["handle"] for h in realm.handles("alice")}
    on_servers = {k["handle"] for k in servers.keys("alice")}
    assert third <= on_servers
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
    text = realm.local("cpw -pw other alice", ok=False)
    assert "nothing was changed" in text and servers.info["servers"][1] in text
    assert realm.dump_entry("alice") == before
    assert "nothing was changed" in realm.local("addprinc -pw secret carol", ok=False)
    assert "does not exist" in realm.local("getprinc carol", ok=False)
    # Local keys need nobody.
    realm.local("addprinc -randkey host/db.example.com")


def test_enctypes_the_servers_cannot_hold_are_refused(realm):
    text = realm.local("addprinc -e camellia256-cts:normal -pw secret dave", ok=False)
    assert "supported_enctypes = aes256-gcm:normal" in text
    realm.local("addprinc -e aes256-cts:normal -randkey host/old.example.com")
    assert "does not exist" in realm.local("getprinc dave", ok=False)
    text = realm.local(f"cpw -pw secret krbtgt/{REALM}", ok=False)
    assert "drawn by the MPC servers" in text


@pytest.fixture(scope="module")
def six(servers):
    """A realm whose users have keys for stock clients, too."""
    r = Realm(servers, "klmdb", enctypes=SIX, extra_db="mpc_protect = HTTP/*")
    r.create()
    yield r
    r.close()


def test_one_password_all_its_enctypes(six, servers):
    six.local("addprinc -pw secret alice")
    handles = six.handles("alice")
    assert [h["enctype"] for h in handles] == [-24002, -24001, 18, 17, 20, 19]
    on_servers = {k["handle"]: k for k in servers.keys("alice")}
    assert {on_servers[h["handle"]]["enctype"] for h in handles} == {h["enctype"] for h in handles}
    # What any client computes from the password, by stock krb5's own code.
    keytab = six.dir / "alice.keytab"
    adds = "".join(f"addent -password -p alice -k 1 -e {name}\nsecret\n" for name in STOCK)
    six.run("ktutil", input=adds + f"wkt {keytab}\n")
    listing = six.run("klist", "-keK", keytab)
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
    assert "mpc-admin randkey" in six.local(f"ktadd -norandkey -k {six.dir}/no bob", ok=False)
    six.local("addprinc -e aes256-sha2:normal,aes128-cts:normal -pw secret carol")
    assert [h["enctype"] for h in six.handles("carol")] == [20, 17]
    # What the servers do not hold is refused with all the rest.
    assert "mpc_local" in six.local("addprinc -e aes256-cts:normal,camellia128-cts:normal "
                                    "-pw secret dan", ok=False)
    assert six.handles("dan") == [] and servers.keys("dan") == []


def test_outage_keeps_all_enctypes(six, servers, all_up):
    six.local("addprinc -pw secret erin")
    before = six.dump_entry("erin")
    servers.tell("stop 2")
    assert "nothing was changed" in six.local("cpw -pw other erin", ok=False)
    assert six.dump_entry("erin") == before


def test_krbtgt_has_gcm_keys_alone(six, servers):
    """supported_enctypes is for everybody; no client ever uses krbtgt's key."""
    assert {h["enctype"] for h in six.handles(f"krbtgt/{REALM}")} == {-24002, -24001}
    six.local(f"cpw -randkey -keepold krbtgt/{REALM}")
    handles = six.handles(f"krbtgt/{REALM}")
    assert {h["enctype"] for h in handles} == {-24002, -24001} and len(handles) == 4
    text = six.local(f"cpw -randkey -e aes256-cts:normal krbtgt/{REALM}", ok=False)
    assert "supported_enctypes" in text
    assert six.handles(f"krbtgt/{REALM}") == handles


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

    standard = ["aes256-cts-hmac-sha1-96", "aes128-cts-hmac-sha1-96",
                "aes256-cts-hmac-sha384-192", "aes128-cts-hmac-sha256-128"]
    six.local("addprinc -randkey host/db.example.com")
    assert types_of("host/db.example.com") == standard
    six.local(f"ktadd -k {six.dir}/new.keytab host/db.example.com")
    assert types_of("host/db.example.com") == standard
    keytab = six.dir / "db.keytab"
    six.local(f"ktadd -norandkey -k {keytab} host/db.example.com")
    listing = six.run("klist", "-ekK", keytab)
    assert listing.count("host/db.example.com") == 4 and "gcm" not in listing
    six.local("addprinc -randkey -e aes256-gcm:normal host/patched.example.com")
    assert types_of("host/patched.example.com") == ["aes256-gcm"]


def test_mpc_kdb_plans_all_enctypes(six):
    plans = six.kdb("plan-many", "--create", input='"gus"\n"HTTP/x.org"\n').splitlines()
    for plan in map(json.loads, plans):
        assert [e["enctype"] for e in plan["enctypes"]] == [-24002, -24001, 18, 17, 20, 19]
    keys = [dict(e, handle=f"{i + 100:032x}") for i, e in enumerate(plan["enctypes"])]
    line = json.dumps({"principal": "gus", "kvno": 4, "keys": keys})
    assert json.loads(six.kdb("set-handles-many", input=line + "\n")) == {}
    assert [h["handle"] for h in six.handles("gus")] == [k["handle"] for k in keys]
    six.kdb("delete", "gus")


def test_cross_realm_keys_follow_their_enctype(realm):
    realm.local(f"addprinc -e aes256-cts:normal -pw shared krbtgt/OTHER.ORG@{REALM}")
    assert realm.handles("krbtgt/OTHER.ORG") == []
    realm.local(f"addprinc -pw shared krbtgt/GCM.ORG@{REALM}")
    assert len(realm.handles("krbtgt/GCM.ORG")) == 2


def test_rename(realm):
    realm.local("addprinc -pw secret alice")
    assert "cannot be renamed" in realm.local("renprinc -force alice eve", ok=False)
    assert "does not exist" in realm.local("getprinc eve", ok=False)
    realm.local("addprinc -pw secret host/a.example.com")
    realm.local("renprinc -force host/a.example.com host/b.example.com")
    keytab = realm.dir / "k"
    realm.local(f"ktadd -norandkey -k {keytab} host/b.example.com")


def test_dump_and_load_need_no_server(realm, servers, all_up):
    realm.local("addprinc -pw secret alice")
    realm.local("addprinc -randkey host/www.example.com")
    before = realm.dump_text()
    for i in range(3):
        servers.tell(f"stop {i}")
    realm.run("kdb5_util", "load", realm.dir / "dump")
    assert sorted(realm.dump_text().splitlines()) == sorted(before.splitlines())
    realm.run("kdb5_util", "load", "-update", realm.dir / "dump")
    assert sorted(realm.dump_text().splitlines()) == sorted(before.splitlines())


def test_master_key_rollover(realm):
    realm.local("addprinc -pw secret alice")
    realm.local("addprinc -randkey host/www.example.com")
    first, second = realm.dir / "1.keytab", realm.dir / "2.keytab"
    realm.local(f"ktadd -norandkey -k {first} host/www.example.com")
    before = realm.handles()
    realm.run("kdb5_util", "add_mkey", "-s", input="new\nnew\n")
    realm.run("kdb5_util", "use_mkey", "2")
    realm.run("kdb5_util", "update_princ_encryption", "-f")
    realm.run("kdb5_util", "purge_mkeys", "-f")
    realm.local(f"ktadd -norandkey -k {second} host/www.example.com")

    def keys(keytab):
        lines = realm.run("klist", "-kK", keytab).splitlines()
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
    text = realm.local("cpw -pw first host/www.example.com", ok=False)
    assert "Cannot reuse password" in text
    assert "too short" in realm.local("cpw -pw x alice", ok=False)
    realm.local("cpw -pw third alice")


def test_overrides(servers):
    r = Realm(servers, "db2",
              extra_db="mpc_local = robot/* kiosk\n        mpc_protect = host/vault*")
    try:
        r.create()
        for name in ("robot/1", "kiosk", "host/vault.example.com", "host/x.example.com", "zoe"):
            r.local(f"addprinc -pw secret {name}")
        protected = {h["principal"].split("@")[0] for h in r.handles()
                     if not h["principal"].startswith("kadmin/")}
        assert protected == {f"krbtgt/{REALM}", "host/vault.example.com", "zoe"}
    finally:
        r.close()


@pytest.mark.parametrize("relation, wrong, text", [
    ("mpc_servers", "mpc_servers = 127.0.0.1:1 127.0.0.1:2", "must name three servers"),
    ("mpc_wrapped", "mpc_wrapped = kldap", "must be db2 or klmdb"),
    ("mpc_cluster", "mpc_cluster = one", "is not a number"),
    ("mpc_ca", "", "mpc_ca is missing"),
    ("mpc_cluster", "mpc_service_logins = maybe", "must be true or false"),
    ("mpc_cluster", "mpc_allow_core_dumps = 1 GB", "must be true or false"),
    ("mpc_cluster", "mpc_timeout = soon", "is not a duration"),
])
def test_config_errors_name_the_relation(servers, relation, wrong, text):
    r = Realm(servers, "db2")
    try:
        conf = (r.dir / "kdc.conf").read_text().splitlines()
        r.write("kdc.conf", "\n".join(wrong if line.strip().startswith(relation + " ") else line
                                      for line in conf))
        result = r.run("kdb5_util", "create", "-s", "-P", "master", ok=False)
        assert result.returncode != 0 and text in result.stdout
    finally:
        r.close()


def test_iprop_is_refused(servers):
    r = Realm(servers, "db2", extra_kdc_conf="iprop_enable = true\n        iprop_port = 1")
    try:
        result = r.run("kdb5_util", "create", "-s", "-P", "master", ok=False)
        assert "iprop_enable" in result.stdout
    finally:
        r.close()


# ---- mpc-kdb ----

def test_mpc_kdb_plan_set_list_delete(realm):
    assert realm.kdb("plan", "frank", ok=False).returncode == 4
    plan = json.loads(realm.kdb("plan", "frank", "--create"))
    assert plan["principal"] == f"frank@{REALM}"
    assert not plan["exists"] and plan["kvno_next"] == 1
    assert [e["enctype"] for e in plan["enctypes"]] == [-24002, -24001]
    assert bytes.fromhex(plan["enctypes"][0]["salt"]) == b"EXAMPLE.COMfrank"
    keys = [dict(e, handle=f"{i:032x}") for i, e in enumerate(plan["enctypes"])]
    realm.kdb("set-handles", "frank", input=json.dumps({"kvno": 1, "keys": keys}))
    assert [h["handle"] for h in realm.handles("frank")] == [k["handle"] for k in keys]
    plan = json.loads(realm.kdb("plan", "frank"))
    assert plan["exists"] and plan["kvno_next"] == 2
    more = [dict(k, handle="f" * 32) for k in keys[:1]]
    realm.kdb("set-handles", "frank",
              input=json.dumps({"kvno": 2, "keep_old": True, "keys": more}))
    assert len(realm.handles("frank")) == 3
    realm.kdb("delete", "frank")
    assert realm.kdb("delete", "frank", ok=False).returncode == 4


@pytest.mark.parametrize("text", ["", "{", "[]", '{"kvno":1,"keys":[]}',
                                  '{"kvno":0,"keys":[{}]}', '{"kvno":1,"keys":[{"enctype":1}]}'])
def test_mpc_kdb_rejects_bad_input(db2_realm, text):
    result = db2_realm.kdb("set-handles", "gina", input=text, ok=False)
    assert result.returncode == 1 and "mpc-kdb: " in result.stdout
    assert "does not exist" in db2_realm.local("getprinc gina", ok=False)


def test_mpc_kdb_usage(db2_realm):
    assert db2_realm.kdb("frobnicate", ok=False).returncode == 2
    assert db2_realm.kdb("plan", ok=False).returncode == 2


# ---- the whole way with krb5kdc and kadmind ----

@pytest.fixture(params=[(), ("-w", "2")], ids=["one-process", "workers"])
def live(request, servers):
    r = Realm(servers, "db2")
    r.create()
    r.local("addprinc -pw secret alice")
    r.local("addprinc -randkey host/www.example.com")
    r.start_kdc(*request.param)
    yield r
    r.close()


def test_login_ticket_renewal_and_wrong_password(live):
    live.kinit("alice", "secret", "-r", "2d")
    listing = live.run("klist", "-e")
    assert "tkt) aes256-gcm" in listing or "aes256-gcm" in listing
    live.run("kvno", "host/www.example.com")
    live.run("kinit", "-R")
    live.run("kvno", "host/www.example.com")
    result = live.kinit("alice", "wrong", ok=False)
    assert result.returncode != 0 and "Password incorrect" in result.stdout


@pytest.mark.parametrize("allowed", ["true", "false"])
def test_services_log_in_only_if_allowed(servers, allowed):
    r = Realm(servers, "db2", extra_db=f"mpc_service_logins = {allowed}")
    name, keytab = "host/www.example.com", r.dir / "keytab"
    kinit = ("kinit", "-k", "-t", keytab, name)
    try:
        r.create()
        r.local(f"addprinc -randkey {name}")
        r.local(f"ktadd -k {keytab} {name}")
        r.start_kdc()
        result = r.run(*kinit, ok=False)
        assert (result.returncode == 0) == (allowed == "true"), result.stdout
        if allowed == "true":
            r.run("kvno", name)
        else:
            assert "policy rejects" in result.stdout
            assert "mpc_service_logins" in (r.dir / "kdc.log").read_text()
    finally:
        r.close()


def test_outage_is_no_wrong_password(live, servers, all_up):
    live.kinit("alice", "secret")
    servers.tell("stop 2")
    result = live.kinit("alice", "secret", ok=False)
    assert result.returncode != 0 and "Password incorrect" not in result.stdout
    log = (live.dir / "kdc.log").read_text()
    assert servers.info["servers"][2] in log
    assert "Failed password attempts: 0" in live.local("getprinc alice")
    servers.tell("start 2")
    end = time.time() + 20
    while live.kinit("alice", "secret", ok=False).returncode != 0:
        assert time.time() < end, (live.dir / "kdc.log").read_text()
        time.sleep(0.2)


@pytest.fixture(params=["db2", "klmdb"])
def slow(request, servers):
    """A realm whose servers take half a second, so that things happen during a login."""
    r = Realm(servers, request.param)
    r.create()
    r.local("addprinc -pw secret alice")
    r.start_kdc()
    r.kinit("alice", "secret")  # the streams are up
    servers.tell("delay 500")
    yield r
    servers.tell("delay 0")
    r.close()


def begin_kinit(live, principal, password, number=0):
    process = subprocess.Popen(["kinit", "-c", f"FILE:{live.dir}/ccache{number}", principal],
                               env=live.env, text=True, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    process.stdin.write(password + "\n")
    process.stdin.close()
    return process


def wait_for_jobs(servers, count):
    end = time.time() + 20
    while servers.tell("jobs") < count:
        assert time.time() < end, "the login does not reach the servers"
        time.sleep(0.01)


def test_login_does_not_undo_a_change_made_meanwhile(slow, servers):
    """Both logins end after the change: one succeeds, one is counted; neither writes it away."""
    for number, password in enumerate(("secret", "wrong")):
        slow.local("modprinc -expire never alice")
        jobs = servers.tell("jobs")
        login = begin_kinit(slow, "alice", password, number)
        wait_for_jobs(servers, jobs + 1)
        slow.local("modprinc -expire 2037-01-01 alice")
        assert login.poll() is None, "the login was faster than the change: nothing was tested"
        assert (login.wait() == 0) == (password == "secret")
        assert "Expiration date: Thu Jan 01" in slow.local("getprinc alice"), password


@pytest.mark.parametrize("slow", ["klmdb"], indirect=True)  # kinit repeats for 19 s
def test_request_repeated_after_a_restart_is_no_replay(slow, servers):
    """The servers have verified it for the krb5kdc that was killed; the client asks the new one."""
    jobs = servers.tell("jobs")
    login = begin_kinit(slow, "alice", "secret")
    wait_for_jobs(servers, jobs + 1)
    killed = slow.daemons.pop()
    killed.kill()
    killed.wait()
    slow.start_kdc()
    servers.tell("delay 0")
    login.wait()
    said = login.stdout.read()
    assert "replay" not in said, said
    assert login.returncode == 0 or "service is not available" in said, said
    assert "verified this request before" in (slow.dir / "kdc.log").read_text()
    slow.kinit("alice", "secret")


def test_every_failure_is_counted_when_many_wait_at_once(slow):
    """A first one alone: klmdb resets its count at whatever seems the first failure of all."""
    assert slow.kinit("alice", "wrong", ok=False).returncode
    guesses = [begin_kinit(slow, "alice", "wrong", number) for number in range(6)]
    assert all(guess.wait() for guess in guesses)
    assert "Failed password attempts: 7" in slow.local("getprinc alice")


@pytest.fixture(params=["db2", "klmdb"])
def patient(request, servers):
    """A realm whose KDC waits long for its servers; alice is locked by three wrong passwords."""
    r = Realm(servers, request.param, extra_db="mpc_timeout = 15s")
    r.create()
    r.local("addpol -maxfailure 3 -failurecountinterval 1h -lockoutduration 1h three")
    r.local("addprinc -pw secret -policy three alice")
    r.start_kdc()
    r.kinit("alice", "secret")  # the streams are up
    yield r
    servers.tell("delay 0")
    r.close()


@contextlib.contextmanager
def paused(servers):
    servers.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        servers.process.send_signal(signal.SIGCONT)


def begin_login(live, password, number):
    trace = live.dir / f"trace{number}"
    process = subprocess.Popen(["kinit", "-c", f"FILE:{live.dir}/ccache{number}", "alice"],
                               env=dict(live.env, KRB5_TRACE=str(trace)), text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
    process.stdin.write(password + "\n")
    process.stdin.close()
    return process, trace


def wait_until_sent(logins):
    """Until each login has sent its pre-authentication; it ends, or servers wait, after that."""
    end = time.time() + 12
    for _, trace in logins:
        while not (trace.exists() and
                   "Sending " in trace.read_text().partition("encrypted_timestamp (2)")[2]):
            assert time.time() < end, "the logins do not reach the KDC in time"
            time.sleep(0.01)
    time.sleep(0.3)


def test_guesses_that_wait_together_are_locked_out(patient, servers):
    """All are judged by the servers, but after three failures no answer says what they found."""
    jobs = servers.tell("jobs")
    with paused(servers):
        logins = [begin_login(patient, f"guess {number}", number) for number in range(10)]
        wait_until_sent(logins)
        logins.append(begin_login(patient, "secret", 10))
        wait_until_sent(logins)
    said = [login.stdout.read() for login, _ in logins]
    assert all(login.wait() for login, _ in logins), said
    assert servers.tell("jobs") == jobs + 11, "they did not wait together: nothing was tested"
    assert "have been revoked" in said[-1], said[-1]
    assert sum("Password incorrect" in text for text in said) == 3, said
    assert sum("have been revoked" in text for text in said) == 8, said
    assert (patient.dir / "kdc.log").read_text().count("LOCKED_OUT") == 8
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
    login, _ = begin_login(patient, "secret", 0)
    wait_for_jobs(servers, jobs + 1)
    assert log not in (patient.dir / "kdc.log").read_text()
    patient.local(change)
    said = login.stdout.read()
    assert login.wait() and error in said, said
    assert log in (patient.dir / "kdc.log").read_text()


def test_kadmin_and_kpasswd(servers):
    r = Realm(servers, "db2")
    try:
        r.create()
        r.local("addprinc -pw secret alice")
        r.local("addprinc -pw root alice/admin")
        r.start_kdc()
        r.start_kadmind()
        r.run("kpasswd", "alice", input="secret\nbetter\nbetter\n")
        r.kinit("alice", "better")
        kadmin = ("kadmin", "-p", "alice/admin", "-w", "root", "-q")
        r.run(*kadmin, "addprinc -pw hello heidi")
        assert len(r.handles("heidi")) == 2
        r.kinit("heidi", "hello")
        before = r.handles("heidi")
        refused = r.run(*kadmin, "cpw -randkey heidi", ok=False).stdout
        assert "mpc-admin randkey" in refused
        refused = r.run(*kadmin, f"ktadd -k {r.dir}/h.keytab heidi", ok=False).stdout
        assert "mpc-admin randkey" in refused
        assert r.handles("heidi") == before
        assert "mpc-admin randkey" in (r.dir / "kadmind.log").read_text()
        r.run(*kadmin, "addprinc -randkey host/new.example.com")
        r.run(*kadmin, f"ktadd -k {r.dir}/new.keytab host/new.example.com")
        assert "host/new.example.com" in r.run("klist", "-k", r.dir / "new.keytab")
    finally:
        r.close()
