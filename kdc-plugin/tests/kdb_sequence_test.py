# SPDX-License-Identifier: Apache-2.0
"""What the module guesses about libkadm5 from the order of its calls (state.h): hooks that read and
write other entries, orders of calls that libkadm5 never has, and puts that fail."""

import resource
import signal
import subprocess

import pytest

import config_files
from kdb_realm import REALM, TAG_HEX, WRAPPED, new_realm

HTTP = "HTTP/www.example.com"
GCM, AES256 = "-24002", "18"


def program(name):
    return config_files.CMAKE / "kdc-plugin/tests" / name


@pytest.fixture(scope="module", params=WRAPPED)
def hooked(request, servers):
    """A realm with the hook of kadm5_hook.c, which does nothing without an order."""
    with new_realm(servers, request.param) as r:
        conf = r.dir / "krb5.conf"
        hook = {"plugins": {"kadm5_hook": {"module": f"test:{program('mpckdc_kadm5_hook.so')}"}}}
        conf.write_text(conf.read_text() + config_files.profile(hook))
        r.local("addpol -history 3 three")
        r.local("addprinc -pw secret alice")
        r.local("addprinc -pw secret bob")
        r.local(f"addprinc -policy three -pw secret {HTTP}")
        r.start_kdc_alone()
        yield r


def hook(realm, query, check=True, **orders):
    text = realm.run("kadmin.local", "-q", query, check=False, env=orders).stdout
    assert not check or " while " not in text, text
    return text


def state_of(realm, servers):
    """All that an operation may change."""
    entries = [line for line in realm.dump_text().splitlines() if line.startswith("princ")]
    return sorted(entries), sorted(key["handle"] for key in servers.keys())


def every_handle_is_held(realm, servers):
    held = {key["handle"]: key["principal"] for key in servers.keys()}
    return all(held.get(h["handle"]) == h["principal"] for h in realm.handles())


# ---- hooks ----

@pytest.mark.parametrize("order", ["HOOK_GET", "HOOK_SET", "HOOK_CPW"])
@pytest.mark.parametrize("name", ["bob", HTTP, "alice"])
def test_hook_between_encrypt_and_put(hooked, servers, order, name):
    """The new password is the password then, and the old one is not."""
    if order == "HOOK_CPW" and name == "alice":
        pytest.skip("two changes of one password: see test_changed_meanwhile")
    password = f"{order} {name}"
    hook(hooked, f'cpw -pw "{password}" alice', **{order: name})
    assert every_handle_is_held(hooked, servers)
    hooked.kinit("alice", password)
    assert "Password incorrect" in hooked.kinit("alice", "secret", check=False).stdout
    if (order, name) == ("HOOK_CPW", "bob"):
        hooked.kinit("bob", "hooked")


def test_hook_at_a_new_principal_and_a_local_key(hooked, servers):
    hook(hooked, "addprinc -pw hello carol", HOOK_GET="bob")
    hooked.kinit("carol", "hello")
    hook(hooked, f"cpw -pw local {HTTP}", HOOK_CPW="bob")
    hooked.local(f"ktadd -norandkey -k {hooked.dir}/http.keytab {HTTP}")
    assert TAG_HEX not in hooked.dump_entry(HTTP)
    keytab = hooked.run("klist", "-keK", hooked.dir / "http.keytab").stdout
    made = hooked.dir / "made.keytab"
    hooked.run("ktutil", stdin=f"addent -password -p {HTTP} -k 1 -e aes256-gcm\nlocal\n"
                               f"wkt {made}\n")
    key = hooked.run("klist", "-keK", made).stdout.split("(0x")[1].split(")")[0]
    assert key in keytab
    assert every_handle_is_held(hooked, servers)


def test_hook_at_new_keys_of_a_keytab(hooked):
    """libkadm5 has decrypted them already when the hook reads another entry."""
    files = [hooked.dir / name for name in ("new.keytab", "again.keytab")]
    hook(hooked, f"ktadd -k {files[0]} {HTTP}", HOOK_GET="alice", HOOK_CPW="bob")
    hooked.local(f"ktadd -norandkey -k {files[1]} {HTTP}")
    new, again = (hooked.run("klist", "-keK", file).stdout.splitlines()[1:] for file in files)
    assert sorted(new) == sorted(again) and len(new) == 4


def test_operation_that_is_given_up_changes_nothing(hooked, servers):
    before = state_of(hooked, servers)
    for query in ("cpw -pw other alice", "addprinc -pw other dora", f"cpw -pw other {HTTP}",
                  "modprinc -expire 2037-01-01 alice"):
        assert " while " in hook(hooked, query, check=False, HOOK_FAIL="1")
    assert state_of(hooked, servers) == before


def test_many_operations_that_are_given_up(hooked, servers):
    """More keys than may be staged, in one process; the one that is not given up counts."""
    hooked.local(f"cpw -pw reused {HTTP}")
    lines = [f"cpw -pw reused {HTTP}"] * 150 + ["cpw -pw after alice", f"cpw -pw after {HTTP}"]
    text = hooked.run("kadmin.local", stdin="\n".join(lines) + "\n").stdout
    assert text.count("Cannot reuse password") == 150 and text.count("changed.") == 2, text[-500:]
    hooked.kinit("alice", "after")
    assert every_handle_is_held(hooked, servers)


def test_changed_meanwhile(hooked, servers):
    """The entry that libkadm5 has read is not the stored one any more: its old handle, whose key is
    deleted, does not come back."""
    inner = "env -u HOOK_RUN kadmin.local -q 'cpw -pw inner alice' >/dev/null 2>&1"
    text = hook(hooked, "modprinc -expire 2037-01-01 alice", check=False, HOOK_RUN=inner)
    assert "nothing was changed" in text and "try again" in text
    assert every_handle_is_held(hooked, servers)
    hooked.kinit("alice", "inner")
    assert "[never]" in hooked.local("getprinc alice").split("Expiration date:")[1].split("\n")[0]


# ---- orders of calls ----

@pytest.fixture(scope="module")
def plain(servers):
    with new_realm(servers, "klmdb") as r:
        for name in ("alice", "bob", HTTP):
            r.local(f"addprinc -pw secret {name}")
        yield r


def sequence(realm, *commands):
    words = [word for command in commands for word in command.split()]
    lines = realm.run(program("mpckdc_kdb_sequence"), *words).stdout.splitlines()
    assert len(lines) == len(commands), lines
    return lines


def test_random_key_of_a_protected_principal_taken_for_a_local_one(plain, servers):
    """It is given, but then nobody has it."""
    before = state_of(plain, servers)
    said = sequence(plain, "get alice", f"random alice {GCM}", f"look {HTTP}", "decrypt alice",
                    "put alice")
    assert said[3] == "key" and "thrown away" in said[4], said
    assert state_of(plain, servers) == before


def test_random_key_of_a_local_principal_taken_for_a_protected_one(plain):
    said = sequence(plain, f"get {HTTP}", f"random {HTTP} {GCM}", "look alice", f"decrypt {HTTP}")
    assert "cannot be taken out" in said[3], said


def test_password_needs_no_guess(plain, servers):
    for other in (HTTP, "bob"):
        assert sequence(plain, "get alice", f"look {other}", f"password alice {GCM}",
                        f"look {other}", "decrypt alice", "put alice", "put alice") == \
            ["ok", "ok", "ok", "ok", "key", "ok", "ok"]
    assert every_handle_is_held(plain, servers)


def test_stored_handle_never_gives_a_key(plain):
    said = sequence(plain, "get alice", "extract alice", "look kadmin/history", "extract alice",
                    "decrypt alice")
    assert "cannot be taken out" in said[1] and said[3:] == ["reference", "reference"], said


def test_handle_of_another_principal_is_not_put(plain, servers):
    before = state_of(plain, servers)
    for target in ("bob", HTTP):
        for source in ("alice", f"krbtgt/{REALM}"):
            said = sequence(plain, f"get {target}", f"get {source}", f"move {source} {target}",
                            f"put {target}")
            assert "not its own" in said[3], said
            # The reference is of the entry in hand, and goes into another.
            said = sequence(plain, f"get {target}", f"get {source}", f"encrypt {source} {target}",
                            f"put {target}")
            assert said[2] == "ok" and "not its own" in said[3], said
            said = sequence(plain, f"get {source}", f"get {target}", f"encrypt {source} {target}")
            assert "key reference" in said[2], said
    assert state_of(plain, servers) == before


def test_own_handle_under_another_enctype_is_not_put(plain, servers):
    before = state_of(plain, servers)
    said = sequence(plain, "get alice", f"retype alice {AES256}", "put alice")
    assert "not its own" in said[2], said
    assert state_of(plain, servers) == before


def test_staged_key_belongs_to_the_entry_that_is_put(plain, servers):
    """Whatever was read or meant: the servers hold it under the name of that entry."""
    said = sequence(plain, "get alice", f"password alice {GCM}", "get bob", "move alice bob",
                    "put bob", "put alice")
    assert said[4] == "ok" and "nothing was changed" in said[5], said
    assert every_handle_is_held(plain, servers)


def test_local_key_is_not_put_for_a_protected_principal(plain, servers):
    before = state_of(plain, servers)
    said = sequence(plain, f"get {HTTP}", "get alice", f"move {HTTP} alice", "put alice")
    assert "would be in the database" in said[3], said
    assert state_of(plain, servers) == before


@pytest.mark.parametrize("others, succeeds", [(8, True), (9, False)])
def test_keys_that_wait_for_long_are_wiped(plain, servers, others, succeeds):
    before = plain.handles("alice")
    said = sequence(plain, "get alice", f"password alice {GCM}", "get bob",
                    *["put bob"] * others, "put alice")
    assert (said[-1] == "ok") == succeeds
    assert succeeds or "nothing was changed" in said[-1]
    assert (plain.handles("alice") == before) != succeeds
    assert every_handle_is_held(plain, servers)


# ---- puts that fail ----

def without_room(realm, queries):
    """Runs them where no file of the database may grow."""
    size = max(path.stat().st_size for path in realm.kdc_dir.iterdir())

    def prepare():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    result = subprocess.run([config_files.krb5_program("kadmin.local")], env=realm.env,
                            input="\n".join(queries) + "\n", preexec_fn=prepare,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return result.stdout


@pytest.mark.parametrize("name", ["user{}", "HTTP/{}.example.com"])
def test_full_database(servers, name):
    """With klmdb. (db2 writes a part of the change in such a case, and damages its file, in any
    realm.) Nothing is left on the servers, nor a service's login key."""
    with new_realm(servers, "klmdb", extra_db={"mpc_service_logins": True}) as r:
        names = [name.format(number) for number in range(40)]
        without_room(r, [f"addprinc -pw secret {one}" for one in names])
        stored = r.dump_text()
        created = [one for one in names if f"\t{one}@{REALM}\t" in stored]
        assert 0 < len(created) < len(names), "never full: nothing was tested"
        on_servers = {key["principal"] for key in servers.keys()}
        assert not on_servers & {f"{one}@{REALM}" for one in names if one not in created}
        assert every_handle_is_held(r, servers)


@pytest.mark.parametrize("name", ["dave", "HTTP/dave.example.com"])
@pytest.mark.parametrize("wrapped", WRAPPED)
def test_database_that_refuses_an_entry(servers, wrapped, name):
    with new_realm(servers, wrapped, extra_db={"mpc_service_logins": True}) as r:
        before = state_of(r, servers)
        text = r.local(f"addprinc -x nonsense=1 -pw secret {name}", check=False)
        assert "nsupported argument" in text or "unknown option" in text, text
        assert state_of(r, servers) == before


def test_outage_of_any_server_changes_nothing(servers, all_up):
    with new_realm(servers, "klmdb") as r:
        r.local("addprinc -pw secret alice")
        for party in range(3):
            before = state_of(r, servers)
            servers.tell(f"stop {party}")
            for query in ("cpw -pw other alice", "addprinc -pw other erin", "cpw -randkey alice"):
                assert "nothing was changed" in r.local(query, check=False)
            servers.tell(f"start {party}")
            assert state_of(r, servers) == before
        r.local("cpw -pw other alice")
