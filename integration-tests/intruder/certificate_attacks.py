# SPDX-License-Identifier: Apache-2.0
"""What an intruder in the KDC tries with logins by certificate (PKINIT). He hears what clients sign;
their keys he has not."""

import time

import pkinit_login
import wire
from attack import attack

DAY = 24 * 3600


def _sign(world, user, client=None, server=None, when=None):
    """What user's certificate signs: a request of `client`, himself unless told otherwise."""
    request = pkinit_login.Request((client or user).principal, server or world.krbtgt)
    return pkinit_login.sign(world.live.authority, user.name, request, when)


def _got_carols(world, proof, service=None, kdc=None):
    us = kdc or world.intruder
    answers = us.servers.ask(us.certificate_job(world.carol, proof, service))
    return wire.all_ok(answers) and answers[0].seals[0].header[1:17] == world.carol.id


@attack(drops='CertificateClient', trace='signed a request of mallory')
def a_ticket_for_carol_from_his_own_certificate(world):
    """mallory logs in, and his KDC says that it was carol."""
    return _got_carols(world, _sign(world, world.mallory))


@attack(drops='CertificateNames', trace='it is for mallory')
def a_request_in_carols_name_signed_by_himself(world):
    return _got_carols(world, _sign(world, world.mallory, client=world.carol))


@attack(drops='CertificateServer', trace='not for a ticket for kadmin/admin')
def an_administrators_ticket_from_an_ordinary_login(world):
    """carol asked for a TGT; he makes a ticket for kadmin of it."""
    us = world.intruder
    return _got_carols(world, _sign(world, world.carol), service=us.handle(world.kadmin))


@attack(drops='CertificateBody', trace='not about this request')
def an_administrators_ticket_from_another_body(world):
    """The same, with a request beside carol's signature that asks for kadmin."""
    us = world.intruder
    signed, _ = _sign(world, world.carol)
    _, body = _sign(world, world.carol, server=world.kadmin)
    return _got_carols(world, (signed, body), service=us.handle(world.kadmin))


@attack(drops='CertificateTime', trace='"CLOCK_SKEW"')
def what_carol_signed_yesterday(world):
    """He kept it, and the servers have forgotten what they saw yesterday."""
    return _got_carols(world, _sign(world, world.carol, when=time.time() - DAY))


@attack(drops='Replay', trace='from another KDC')
def what_carol_signed_just_now_at_another_kdc(world):
    proof = _sign(world, world.carol)
    assert _got_carols(world, proof)
    return _got_carols(world, proof, kdc=world.other_kdc)


@attack(drops='GrantBudget', trace='is used up')
def a_third_ticket_from_one_signature(world):
    """As with a pre-auth: one answer may have been lost, and no more."""
    proof = _sign(world, world.carol)
    tickets = sum(_got_carols(world, proof) for _ in range(4))
    assert tickets >= 2
    return tickets > 2


@attack(drops='Gate', trace='gate of carol')
def carols_ticket_on_the_kdcs_word(world):
    """No proof at all."""
    return _got_carols(world, (b'', b''))
