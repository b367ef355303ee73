# SPDX-License-Identifier: Apache-2.0
"""For the tests beside this: realms of krb5's own programs with our KDB module and provider,
against three fake servers. Around kldap, on a slapd of their own, with MPCKDC_LONG alone.

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

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "integration-tests/realm"))

import config_files  # noqa: E402
import daemon  # noqa: E402
import long_tests  # noqa: E402
import realm as realms  # noqa: E402
import slapd  # noqa: E402

TAG_HEX = b"remote-key:".hex()
REALM = "EXAMPLE.COM"
STOCK = config_files.STOCK_ENCTYPES
WRAPPED = long_tests.some(["db2", "klmdb", "kldap"], ["db2", "klmdb"])
CREATE = ("kdb5_util", "create", "-s", "-P", "master")


class FakeServers:
    """Three servers in one process: mpckdc_fake_servers."""

    def __init__(self):
        program = config_files.CMAKE / "kdc-plugin/tests/mpckdc_fake_servers"
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
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
        assert self.process.wait(timeout=20) == 0


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

    def exists(self, name):
        """Of a program that crashed on the database neither is said."""
        said = self.local(f"getprinc {name}", check=False)
        there = f"Principal: {name}@" in said
        assert there != ("does not exist" in said), said
        return there

    def kdb(self, *arguments, stdin="", check=True):
        program = config_files.mpc_program("mpc-kdb")
        return self.run(program, *arguments, stdin=stdin, check=check)

    def handles(self, principal=None):
        lines = [json.loads(line) for line in self.kdb("list").stdout.splitlines()]
        return [h for h in lines if "handle" in h
                and (principal is None or h["principal"] == f"{principal}@{REALM}")]

    def keyless(self):
        lines = [json.loads(line) for line in self.kdb("list").stdout.splitlines()]
        return [h["principal"] for h in lines if h.get("keyless")]

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
def directory(wrapped):
    """(folder, LDAP server) if the entries are to lie there, else None."""
    if wrapped != "kldap":
        yield None
        return
    if slapd.missing():
        pytest.skip(slapd.missing())
    with tempfile.TemporaryDirectory(prefix="mpckdc-slapd-") as folder:
        server = slapd.Slapd(f"{folder}/slapd")
        server.start()
        try:
            server.fill()
            yield pathlib.Path(folder), server
        finally:
            server.stop()


@contextlib.contextmanager
def new_realm(servers, wrapped="db2", *, create=True, enctypes=config_files.GCM_ENCTYPES,
              extra_db=None, extra_realm=None, workers=0):
    with directory(wrapped) as where:
        relations = slapd.relations(where[1].uri, where[0] / "passwords") if where else {}
        r = KdbRealm(servers, wrapped, enctypes, {**relations, **(extra_db or {})},
                     extra_realm or {}, workers)
        try:
            r.write_files()
            if where:
                slapd.stash_passwords(r, where[0] / "passwords")
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


@pytest.fixture(params=WRAPPED)
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
