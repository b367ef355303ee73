# SPDX-License-Identifier: Apache-2.0
"""The whole way with krb5kdc and kadmind: logins, outages, and what changes while one waits."""

import contextlib
import re
import signal
import subprocess
import time

import pytest

import config_files
import daemon
from kdb_realm import WRAPPED, new_realm


@pytest.fixture(params=[0, 2], ids=["one-process", "workers"])
def live(request, servers):
    with new_realm(servers, workers=request.param) as r:
        r.local("addprinc -pw secret alice")
        r.local("addprinc -randkey host/www.example.com")
        r.start_kdc_alone()
        yield r


def test_login_ticket_renewal_and_wrong_password(live):
    live.kinit("alice", "secret", "-r", "2d")
    assert "(skey, tkt): aes256-cts-hmac-sha1-96" in live.run("klist", "-e").stdout
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


def test_nobody_logs_in_by_a_key_of_its_own(servers):
    """WELLKNOWN/ANONYMOUS alone gets a login key where services get none."""
    with new_realm(servers) as r:
        for name in ("WELLKNOWN/ANONYMOUS", "WELLKNOWN/OTHER", "ANONYMOUS/WELLKNOWN.x"):
            r.local(f"addprinc -randkey {name}")
            has = "mpc_login" in r.local(f"getstrs {name}")
            assert has == (name == "WELLKNOWN/ANONYMOUS")
        r.local("cpw -randkey WELLKNOWN/ANONYMOUS")
        assert "mpc_login" in r.local("getstrs WELLKNOWN/ANONYMOUS")


def test_outage_is_no_wrong_password(live, servers, all_up):
    live.kinit("alice", "secret")
    servers.tell("stop 2")
    result = live.kinit("alice", "secret", check=False)
    assert result.returncode != 0 and "Password incorrect" not in result.stdout
    assert servers.info["servers"][2] in live.log()
    # A worker that never had its streams up does not wait, and so does not say that it does.
    begun = "(Error): MPC servers: no triple serves" in live.log()
    assert begun or "(Error): remote keys: " in live.log()
    assert "Failed password attempts: 0" in live.local("getprinc alice")
    servers.tell("start 2")
    def logs_in():
        return live.kinit("alice", "secret", check=False).returncode == 0
    assert daemon.wait_until(logs_in, 20, pause=0.2), live.log()
    # (Of each process for itself.)
    assert not begun or daemon.wait_until(
        lambda: "(Notice): MPC servers: a triple serves again" in live.log(), 20), live.log()


def test_the_servers_ask_for_preauth_whatever_the_entry_says(live):
    """Such users come from old databases; their logins count as any other."""
    live.local("modprinc -requires_preauth alice")
    assert live.kinit("alice", "wrong", check=False).returncode
    assert "Failed password attempts: 1" in live.local("getprinc alice")
    live.kinit("alice", "secret")
    assert "Failed password attempts: 0" in live.local("getprinc alice")
    assert "KEY_NEEDS_PREAUTH: alice@" in live.log()
    assert "remote keys: " not in live.log(), "that is no failure"


def test_a_triple_that_is_not_there_costs_no_login(servers):
    """Two triples: nobody listens where the first is. Keys are enrolled, changed and used."""
    absent = " ".join(f"127.0.0.1:{port}" for port in daemon.free_ports(3))
    both = [absent, " ".join(servers.info["servers"])]
    # The fake servers are of cluster 1, which is the second triple's.
    with new_realm(servers, extra_db={"mpc_servers": both, "mpc_cluster": 0}) as r:
        r.local("addprinc -pw secret alice")
        r.start_kdc_alone()
        for _ in range(3):
            began = time.monotonic()
            r.kinit("alice", "secret")
            assert time.monotonic() - began < 3
        r.local("cpw -pw other alice")
        r.kinit("alice", "other")
        assert "Password incorrect" in r.kinit("alice", "secret", check=False).stdout
        assert "Failed password attempts: 1" in r.local("getprinc alice")
        assert r.log().count("MPC triple 0 (" + absent.replace(" ", ", ") + "): taken out") == 1
        assert "in use; 1 of 2 triples serve" in r.log()


@pytest.fixture(params=WRAPPED)
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


@pytest.mark.parametrize("slow", ["klmdb"], indirect=True)
def test_request_repeated_after_a_restart_logs_in(slow, servers):
    """The servers have verified it for the krb5kdc that was killed; the client asks the new one."""
    jobs = servers.tell("jobs")
    login = begin_login(slow, "secret")
    servers.wait_for_jobs(jobs + 1)
    slow.kdc.kill()
    slow.start_kdc_alone()
    servers.tell("delay 0")
    login.wait()
    said = login.stdout.read()
    assert login.returncode == 0, said
    assert "verified this request before" not in slow.log()
    slow.kinit("alice", "secret")


def test_every_failure_is_counted_when_many_wait_at_once(slow):
    """A first one alone: klmdb resets its count at whatever seems the first failure of all."""
    assert slow.kinit("alice", "wrong", check=False).returncode
    guesses = [begin_login(slow, "wrong", number) for number in range(6)]
    assert all(guess.wait() for guess in guesses)
    assert "Failed password attempts: 7" in slow.local("getprinc alice")


@pytest.fixture(params=WRAPPED)
def patient(request, servers):
    """A realm whose KDC waits long for its servers; alice is locked by three wrong passwords."""
    with new_realm(servers, request.param, extra_db={"mpc_timeout": "15s"}) as r:
        r.local("addpol -maxfailure 3 -failurecountinterval 1h -lockoutduration 1h three")
        # In a directory the flag is not given by itself; without it servers that wait are asked twice.
        r.local("addprinc +requires_preauth -pw secret -policy three alice")
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


@contextlib.contextmanager
def second_kdc(live):
    """Another krb5kdc of the same database, and how to ask it."""
    port = daemon.free_ports(1)[0]
    conf = config_files.replace(live.kdc_dir / "kdc.conf", str(live.ports.kdc), str(port),
                                into=live.kdc_dir / "kdc-2.conf")
    other = daemon.Daemon("kdc2", live.kdc.argv, {**live.env, "KRB5_KDC_PROFILE": str(conf)},
                          live.run_dir, live.log_dir)
    other.start()
    try:
        assert daemon.wait_until(lambda: other.listens_on(port), 10)
        yield live.krb5_conf_through(port)
    finally:
        other.stop()


def last_failure(live):
    return re.search("Last failed authentication: (.*)", live.local("getprinc alice")).group(1)


def test_a_failure_that_is_judged_late_does_not_set_the_clock_back(patient, servers):
    with second_kdc(patient) as second:
        patient.kinit("alice", "secret", env=second)  # its streams are up
        servers.tell("delay 4000")
        jobs = servers.tell("jobs")
        late = begin_login(patient, "wrong")
        servers.wait_for_jobs(jobs + 1)
        servers.tell("delay 0")
        time.sleep(1.5)
        assert patient.kinit("alice", "wrong", env=second, check=False).returncode
        newer = last_failure(patient)
        assert late.poll() is None, "the first was judged first: nothing was tested"
        assert late.wait()
        assert "Failed password attempts: 2" in patient.local("getprinc alice")
        assert last_failure(patient) == newer


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
            assert "Principal keys are remote" in r.run(*kadmin, query, check=False).stdout
        assert r.handles("heidi") == before
        assert "mpc-admin randkey" in r.log("kadmind-requests")
        r.run(*kadmin, "addprinc -randkey host/new.example.com")
        r.run(*kadmin, f"ktadd -k {r.dir}/new.keytab host/new.example.com")
        assert "host/new.example.com" in r.run("klist", "-k", r.dir / "new.keytab").stdout
