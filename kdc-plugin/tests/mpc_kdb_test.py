# SPDX-License-Identifier: Apache-2.0
"""The program mpc-kdb."""

import json
import time

import pytest

from kdb_realm import REALM


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
    for kvno in (1, 2):
        for keep in (False, True):
            again = json.dumps({"kvno": kvno, "keep_old": keep, "keys": more})
            refused = realm.kdb("set-handles", "frank", stdin=again, check=False)
            assert refused.returncode == 1 and "already" in refused.stdout
    assert len(realm.handles("frank")) == 3
    realm.kdb("purge", "frank", stdin='{"keep_from": 2}')
    assert [h["handle"] for h in realm.handles("frank")] == ["f" * 32]
    assert realm.kdb("purge", "frank", stdin="{}", check=False).returncode == 1
    realm.kdb("delete", "frank")
    assert realm.kdb("delete", "frank", check=False).returncode == 4


def test_mpc_kdb_writes_on_what_was_seen_alone(realm):
    """Who planned on what somebody changed meanwhile, deleted or made anew is refused."""
    entry = json.loads(realm.kdb("plan", "henry", "--create").stdout)["enctypes"][0]

    def put(kvno, handle, *handles, exists=True, seen=0, many=False):
        request = {"kvno": kvno, "keys": [dict(entry, handle=handle * 32)],
                   "expected": {"exists": exists, "kvno": seen,
                                "handles": [h * 32 for h in handles]}}
        if not many:
            return realm.kdb("set-handles", "henry", stdin=json.dumps(request), check=False)
        request["principal"] = "henry"
        return realm.kdb("set-handles-many", stdin=json.dumps(request))

    def has(*handles):
        return [h["handle"] for h in realm.handles("henry")] == [h * 32 for h in handles]

    assert put(1, "a", "f", seen=1).returncode == 4  # deleted meanwhile: not made again
    assert "does not exist" in realm.local("getprinc henry", check=False)
    assert put(1, "a", exists=False).returncode == 0 and has("a")
    for refused in (put(9, "b", exists=False), put(9, "b"), put(9, "b", "c", seen=1),
                    put(9, "b", "a", "c", seen=1), put(9, "b", "a", seen=2)):
        assert refused.returncode == 1 and "changed meanwhile" in refused.stdout
    assert "changed meanwhile" in put(9, "b", "c", seen=1, many=True).stdout and has("a")
    assert put(2, "b", "a", seen=1).returncode == 0 and has("b")
    assert put(3, "c", "b", seen=2, many=True).stdout.strip() == "{}" and has("c")
    realm.kdb("delete", "henry")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"kvno":1,"keys":[]}',
                                  '{"kvno":0,"keys":[{}]}',
                                  '{"kvno":1,"keys":[{"enctype":17,"salt_type":0,"salt":"",'
                                  '"handle":"00112233445566778899aabbccddeeff"}],"expected":{}}',
                                  '{"kvno":1,"keys":[{"enctype":1}]}'])
@pytest.mark.parametrize("realm", ["db2"], indirect=True)
def test_mpc_kdb_rejects_bad_input(realm, text):
    result = realm.kdb("set-handles", "gina", stdin=text, check=False)
    assert result.returncode == 1 and "mpc-kdb: " in result.stdout
    assert "does not exist" in realm.local("getprinc gina", check=False)


@pytest.mark.parametrize("realm", ["db2"], indirect=True)
def test_mpc_kdb_usage(realm):
    assert realm.kdb("frobnicate", check=False).returncode == 2
    assert realm.kdb("plan", check=False).returncode == 2


def test_mpc_kdb_tickets(realm):
    """The least of what the service, kdc.conf and the longest of all clients allow."""
    service = f"krbtgt/{REALM}"

    def longest():
        return json.loads(realm.kdb("tickets", service).stdout)["longest"]
    before = json.loads(realm.kdb("tickets", service).stdout)
    assert before["principal"] == f"{service}@{REALM}"
    assert abs(before["changed"] - time.time()) < 600
    realm.local(f"modprinc -maxlife 5hours -maxrenewlife 0 {service}")
    assert longest() == 5 * 3600
    realm.local(f"modprinc -maxrenewlife 6hours {service}")
    assert longest() in (5 * 3600, 6 * 3600), "clients' and kdc.conf's renewable life count too"
    realm.local(f"modprinc -maxlife 10minutes -maxrenewlife 0 {service}")
    assert longest() == 600
    assert realm.kdb("tickets", "nobody", check=False).returncode == 4
