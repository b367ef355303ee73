# SPDX-License-Identifier: Apache-2.0
"""The database side fails closed: no handle is believed that somebody else brings, and none is
stored that nobody holds."""

import pytest

import config_files
from kdb_realm import REALM, TAG_HEX, new_realm

HTTP = "HTTP/www.example.com"
KRBTGT = f"krbtgt/{REALM}"
AES256, AES256_GCM = 18, -24002


def program(name):
    return config_files.CMAKE / "kdc-plugin/tests" / name


def reference_to(handle):
    """What a key reference has as its contents."""
    return TAG_HEX + handle


def krbtgt_key(realm):
    return realm.handles(KRBTGT)[0]


@pytest.fixture(scope="module")
def delegated(servers):
    """A realm whose user "web" may do everything with HTTP services, by kadmind."""
    with new_realm(servers, "klmdb", extra_db={"mpc_service_logins": True},
                   enctypes=config_files.GCM_ENCTYPES + config_files.STOCK_ENCTYPES) as r:
        (r.kdc_dir / "kadm5.acl").write_text("*/admin *\nweb admcisdp HTTP/*\n")
        r.local("addprinc -pw secret web")
        r.local(f"addprinc -randkey {HTTP}")
        r.start_kdc()
        yield r


def as_web(realm, query):
    return realm.run("kadmin", "-p", "web", "-w", "secret", "-q", query, check=False).stdout


def set_key(realm, how, function, principal, enctype, contents):
    return realm.run(program(f"mpckdc_kadm5_{how}"), "web", "secret", function, principal, enctype,
                     contents, check=False)


# ---- references from outside ----

@pytest.mark.parametrize("function", ["setkey", "setkey3", "setkey4"])
@pytest.mark.parametrize("how", ["remote", "local"])
def test_setkey_takes_no_reference(delegated, servers, how, function):
    """Deleting a service that had krbtgt's handle would take krbtgt's key from the servers."""
    key, name = krbtgt_key(delegated), f"HTTP/{how}-{function}.example.com"
    as_web(delegated, f"addprinc -randkey {name}")
    before = delegated.dump_entry(name)
    result = set_key(delegated, how, function, name, key["enctype"], reference_to(key["handle"]))
    assert result.returncode == 1, result.stdout
    # kadmind does not even decode it; from there on, as in a program on the KDC's host, the module
    # refuses it.
    refusal = "cannot be given a key reference" if how == "local" else "Communication failure"
    assert refusal in result.stdout, result.stdout
    assert delegated.dump_entry(name) == before
    assert "deleted" in as_web(delegated, f"delprinc -force {name}")
    assert key["handle"] in {k["handle"] for k in servers.keys(KRBTGT)}


def test_setkey_takes_an_ordinary_key(delegated):
    """So the calls above fail because of what they bring."""
    as_web(delegated, "addprinc -randkey HTTP/key.example.com")
    for function in ("setkey", "setkey3", "setkey4"):
        done = set_key(delegated, "remote", function, "HTTP/key.example.com", AES256, "5a" * 32)
        assert done.returncode == 0, done.stdout
    keytab = delegated.dir / "key.keytab"
    delegated.local(f"ktadd -norandkey -k {keytab} HTTP/key.example.com")
    assert "(0x" + "5a" * 32 + ")" in delegated.run("klist", "-keK", keytab).stdout


def test_a_reference_is_no_key_of_another_kind(delegated):
    """Not under an enctype of its own service either, nor to a handle that nobody has."""
    for enctype, handle in ((AES256_GCM, "ab" * 16), (AES256, krbtgt_key(delegated)["handle"])):
        for how in ("remote", "local"):
            result = set_key(delegated, how, "setkey4", HTTP, enctype, reference_to(handle))
            assert result.returncode == 1, result.stdout
    assert TAG_HEX not in delegated.dump_entry(HTTP)


def test_setstr_binds_no_login_key(delegated, servers):
    login = delegated.handles(HTTP)[0]["handle"]
    key = krbtgt_key(delegated)["handle"]
    for handle in (key, "cd" * 16):
        assert "protected" in as_web(delegated, f"setstr {HTTP} mpc_login {handle}")
        assert "mpc_login" in delegated.local(f"setstr {HTTP} mpc_login {handle}", check=False)
    assert [h["handle"] for h in delegated.handles(HTTP)] == [login]
    as_web(delegated, f"setstr {HTTP} note hello")
    as_web(delegated, f"setstr {HTTP} mpc_login {login}")
    assert "note: hello" in delegated.local(f"getstrs {HTTP}")
    assert "deleted" in as_web(delegated, f"delprinc -force {HTTP}")
    assert servers.keys(HTTP) == [] and key in {k["handle"] for k in servers.keys(KRBTGT)}
    delegated.local(f"addprinc -randkey {HTTP}")
