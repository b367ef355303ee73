# SPDX-License-Identifier: Apache-2.0
"""What the intruder holds in the end: every byte that passed through him, and krb5kdc's memory."""

import intruder as intruder_module
import keys
import keysearch
import storefile
import wire


def test_no_key_is_in_what_he_holds(world):
    world.intruder.servers.reconnect_if_broken()
    for user in (world.alice, world.mallory):
        recording = world.intruder.login(user)
        assert world.intruder.open_ticket(recording.tgt.message)[1] is not None
        world.live.kinit(user.name, user.password)
    secrets = keys.secrets_of_password(world.alice.principal, world.alice.password)
    secrets += storefile.secrets_of_krbtgt(world.live, storefile.open_stores(world.live))
    assert len(secrets) > 100
    needles = keysearch.KeySearch(secrets)
    loot = world.intruder.loot
    assert len(loot) > 10000
    assert needles.find(loot) == []
    assert needles.search_memory(world.live.kdc.pid())[0] == []
    # The same search sees a key that did pass through him.
    leaked = keys.string_to_key(keys.AES256_GCM, world.alice.password, world.live.name + 'alice')
    assert needles.find(loot + b'..' + leaked.hex().encode() + b'..')


def _sealed_parts(transcript):
    """(job, part, nonce) of each answer in the order in which it came."""
    messages = wire.messages()[0]
    for data in transcript:
        try:
            answers = messages.ServerMessage.FromString(data).jobs
        except Exception:  # what he sent himself need not parse as an answer
            continue
        for answer in answers:
            parts = list(answer.seals) + list(answer.make_macs)
            for number, part in enumerate(parts):
                if len(part.nonce) == 12:
                    yield answer.id, number, part.nonce


def test_no_nonce_came_twice_and_all_only_rose(world):
    """Also across a restart of all three. (The control is the simulation's: forget_marks.)"""
    us = intruder_module.Intruder(world.live)
    us.login(world.mallory)
    for server in world.live.servers:
        server.stop()
    world.live.start_servers()
    us.servers.reconnect()
    us.login(world.mallory)
    us.login(world.alice)
    uses = {}
    for job, number, nonce in _sealed_parts(us.servers.transcript):
        uses.setdefault(nonce, set()).add((job, number))
    assert len(uses) == 6
    assert all(len(use) == 1 for use in uses.values())
    in_order = sorted(uses, key=lambda nonce: min(uses[nonce]))
    assert in_order == sorted(uses)
    us.close()


def test_three_tag_requests_that_differ_combine_to_noise(world):
    """Without the mask: equivocation_control_test (mpc-server/agree)."""
    us = world.intruder
    us.servers.reconnect_if_broken()
    answers = us.servers.ask(us.login_job(world.mallory, world.mallory.preauth()))
    assert wire.all_ok(answers)
    sealed = answers[0].seals[0]
    requests = [us.messages.TagRequest(job=answers[0].id, seal=0, ciphertext=bytes([party]) * 64)
                for party in range(3)]
    shares = us.servers.ask_tags(requests)
    assert wire.all_ok(shares)
    tag = wire.tag_of(shares)
    for request in requests:
        message = (sealed.nonce + bytes([len(sealed.header)]) + sealed.header + request.ciphertext
                   + tag)
        verdicts = {wire.verdict(answer) for answer in us.servers.ask(us.open_ticket_job(message))}
        assert verdicts == {'BAD_TAG'}
