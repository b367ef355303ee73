# SPDX-License-Identifier: Apache-2.0
"""What an intruder tries while he is in the KDC: everything that its certificate lets him say."""

import time

import gcm
import grpc
import intruder
import ticket
import wire
from attack import attack

HOUR = 3600


@attack(drops='ClientsKey', trace="is not one of the client's")
def a_ticket_for_another_user_from_his_own_login(world):
    """A TGT whose header names alice, paid for with mallory's own pre-auth."""
    job = world.intruder.login_job(world.alice, world.mallory.preauth(), preauth_of=world.mallory)
    return _got_header_of(world.alice, world.intruder.servers.ask(job))


def _got_header_of(user, answers):
    return wire.all_ok(answers) and answers[0].seals[0].header[1:17] == user.id


@attack(drops='Replay', trace='from another KDC')
def a_recorded_preauth_at_another_kdc(world):
    """alice logged in through one KDC a moment ago; he has another, and what he heard on the way."""
    preauth = world.alice.preauth()
    world.intruder.login(world.alice, preauth=preauth)
    return wire.all_ok(world.other_kdc.servers.ask(
        world.other_kdc.login_job(world.alice, preauth)))


@attack(drops='Replay', trace='from another KDC')
def a_recorded_preauth_at_another_kdc_after_the_servers_restarted(world):
    """The same when nothing is in their memory any more."""
    preauth = world.alice.preauth()
    world.intruder.login(world.alice, preauth=preauth)
    world.restart_servers()
    return wire.all_ok(world.other_kdc.servers.ask(
        world.other_kdc.login_job(world.alice, preauth)))


def _tickets_of(world, preauth, tries):
    """How many tickets he gets for it, when he says each time that an answer was lost."""
    us = world.intruder
    return sum(wire.all_ok(us.servers.ask(us.login_job(world.alice, preauth)))
               for _ in range(tries))


@attack(drops='GrantBudget', trace='is used up')
def a_third_ticket_from_one_preauth(world):
    """alice logged in once. A KDC may present her pre-auth again, as if the answer was lost: he does
    so again and again. Two tickets are what one grant is worth anyway; he wants a third."""
    preauth = world.alice.preauth()
    tickets = _tickets_of(world, preauth, 5)
    assert tickets >= 2, 'a lost answer is given again'
    return tickets > 2


@attack(drops='GrantBudget', trace='is used up')
def a_third_ticket_from_one_preauth_when_servers_restart(world):
    """The same, and the servers forget what is not on their disks."""
    preauth = world.alice.preauth()
    tickets = _tickets_of(world, preauth, 1)
    for _ in range(2):
        world.restart_servers()
        tickets += _tickets_of(world, preauth, 1)
    assert tickets >= 2
    return tickets > 2


@attack(drops='GrantBudget', trace='is used up')
def a_third_ticket_from_a_grant_and_its_preauth(world):
    """One from the login, one from its grant, as for a ticket that came out too short; then the
    pre-auth again, for a grant that is new."""
    us = world.intruder
    preauth = world.alice.preauth()
    login = us.login(world.alice, preauth=preauth)
    assert wire.all_ok(_granted(world, world.alice, login.job.id))
    return _tickets_of(world, preauth, 1) > 0


@attack(drops='Freshness', trace='"CLOCK_SKEW"')
def a_preauth_that_was_kept_for_later(world):
    """alice sent it an hour ago and he never passed it on."""
    preauth = world.alice.preauth(time.time() - HOUR)
    return wire.all_ok(world.intruder.servers.ask(
        world.intruder.login_job(world.alice, preauth)))


@attack(drops='Gate', trace='is timestamp and the job has no pre-auth')
def a_ticket_without_any_preauth(world):
    """Keystream for a ticket and a reply for alice, who is asleep."""
    return _got_header_of(world.alice, world.intruder.servers.ask(
        world.intruder.login_job(world.alice, None)))


def _granted(world, client, grant):
    us = world.intruder
    return us.servers.ask(us.job('SEAL_GRANTED', client=us.handle(client.principal), grant=grant,
                                 seals=[us.seal_part(us.krbtgt, intruder.USAGE_TICKET, 200)]))


@attack(drops='GrantPrincipal', trace="is another principal's")
def a_ticket_for_another_user_under_his_own_grant(world):
    """mallory's login may be finished in a later job; he finishes it as alice."""
    login = world.intruder.login(world.mallory)
    return _got_header_of(world.alice, _granted(world, world.alice, login.job.id))


@attack(drops='GrantBudget', trace='is used up')
def tickets_without_end_from_one_login(world):
    """alice logged in once: a ticket of hers for each day to come."""
    login = world.intruder.login(world.alice)
    return all(wire.all_ok(_granted(world, world.alice, login.job.id)) for _ in range(4))


@attack(drops='SameJob', trace='"INCONSISTENT"')
def three_stories_to_three_servers(world):
    """Each server computes the checksum of other data."""
    us = world.intruder
    number = us.servers.new_id()
    jobs = []
    for party in range(3):
        job = us.job('MAKE_CHECKSUM', make_macs=[
            us.mac_part(us.krbtgt, intruder.USAGE_PAC, bytes([party]) * 32)])
        job.id = number
        jobs.append(job)
    return wire.all_ok(us.servers.ask(jobs))


@attack(drops='OneTag', trace='was already given')
def the_key_of_all_tags_from_two_tags_of_one_nonce(world):
    """Two ciphertexts under one nonce differ in one block: their tags give H, and with H the tag of
    any ticket under a keystream that he knows. He makes alice a ticket of his own."""
    us = world.intruder
    answers = us.servers.ask(us.login_job(world.alice, world.alice.preauth(), sizes=(384, 200)))
    assert wire.all_ok(answers), answers
    sealed = answers[0].seals[0]
    keystream = wire.keystream_of_seal(answers, 0)
    ciphertexts = keystream, keystream[:-1] + bytes([keystream[-1] ^ 1])
    tags = []
    for number, ciphertext in enumerate(ciphertexts):
        request = us.messages.TagRequest(job=answers[0].id, seal=0, ciphertext=ciphertext)
        shares = us.servers.ask_tags(request, number)
        if not wire.all_ok(shares):
            return False
        tags.append(wire.tag_of(shares))
    h, mask = gcm.recover_tag_key(sealed.header, ciphertexts[0], tags[0], ciphertexts[1], tags[1])
    golden = ticket.Inside(world.alice.principal)
    forged = gcm.xor(gcm.ZERO_BLOCK + golden.encode(), keystream)
    message = gcm.join(sealed.nonce, sealed.header, forged,
                       gcm.xor(gcm.ghash(h, sealed.header, forged), mask))
    return us.open_ticket(message)[1] == golden.encode()


@attack(drops='Table', trace='is not in the table')
def a_recorded_reply_opened(world):
    """alice's AS-REP, recorded long ago, holds a session key. Opening is for tickets alone."""
    us = world.intruder
    login = us.login(world.alice)
    answers = us.servers.ask(us.job('OPEN_TICKET', opens=[us.open_part(
        us.handle(world.alice.principal), intruder.USAGE_REPLY, login.reply_message)]))
    if not wire.all_ok(answers):
        return False
    stream = wire.keystream_of_open(answers)
    return login.reply_keystream[16:].startswith(stream)


@attack(drops='Tag', trace='"BAD_TAG"')
def the_keystream_of_a_chosen_nonce(world):
    """Opening gives keystream: he asks for that of a nonce and a header that he picked, with a tag
    that he cannot know. AES under a chosen nonce would be an oracle for any ticket."""
    login = world.intruder.login(world.alice)
    nonce, header, ciphertext, _ = gcm.split(login.tgt.message)
    probe = gcm.join(nonce, header, bytes(len(ciphertext)), bytes(16))
    _, stream = world.intruder.open_ticket(probe)
    return stream is not None and login.tgt.keystream[16:].startswith(stream)


@attack(drops='JobIds', trace='ids must rise')
def one_job_id_twice(world):
    """Two jobs under one id: what one of them earned would go to the other."""
    us = world.intruder
    job = us.job('MAKE_CHECKSUM',
                 make_macs=[us.mac_part(us.krbtgt, intruder.USAGE_PAC, b'once')])
    assert wire.all_ok(us.servers.ask(job))
    # A server that hears of it from the others first believes that it has answered.
    return any(wire.all_ok(us.servers.ask(job, number)) for number in range(1, 6))


@attack(drops='Role', trace='needs the role')
def the_rights_of_an_administrator(world):
    """With the KDC's certificate he tells the servers to ask alice for no pre-auth any more."""
    us = world.intruder
    request = us.admin_messages.SetPolicyRequest(
        principal=world.alice.principal, handles=[us.handle(world.alice.principal)],
        gate=us.admin_messages.GATE_NONE)
    try:
        for party in range(3):
            us.servers.call_admin(party, 'SetPolicy', request, us.admin_messages.SetPolicyReply)
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.PERMISSION_DENIED, error
        for other in range(party + 1, 3):  # the others say the same
            _expect_denied(us, other, request)
        return False
    return wire.all_ok(us.servers.ask(us.login_job(world.alice, None)))


def _expect_denied(us, party, request):
    try:
        us.servers.call_admin(party, 'SetPolicy', request, us.admin_messages.SetPolicyReply)
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.PERMISSION_DENIED, error
    else:
        raise AssertionError(f'P{party} lets a KDC set policy')
