# SPDX-License-Identifier: Apache-2.0
"""A KDC that was broken into, and what its intruder can do later. Each attack fails and leaves its
trace in the audit logs; against a control without the one defence that stops it, it succeeds."""

import dataclasses
import pathlib

import certificate_attacks
import evicted_attacks
import inside_attacks
import intruder
import pkinit_login
import pytest
import ticket
import wire
from attack import ATTACKS, INDICATOR, STRICT

assert inside_attacks and evicted_attacks and certificate_attacks  # importing them fills ATTACKS

EVERY_DEFENCE = sorted({name for attack in ATTACKS for name in attack.drops})
names = pytest.mark.parametrize('attack', ATTACKS, ids=lambda attack: attack.name)


# Dropped elsewhere: in short_life_test.py, in equivocation_control_test, in sim_refresh_control_test, in lying_server_test.py; those
# of proofs in proof_control_test, those of garbled circuits in garbled_attack_control_test and
# garble_view_control_test.
ELSEWHERE = {'OriginAge', 'Inheritance', 'TagMask', 'Honesty', 'OwnEpoch', 'Prepared', 'TrueMessages'} | {
    'CoinCommitment', 'ProofDraws', 'ProofFirst', 'ProofMask', 'ProofProduct', 'ProofSalt', 'ProofSeen',
    'ProofState', 'ProofSums', 'ProofView', 'Recorded'} | {
    'GarbledAgreed', 'GarbledColours', 'GarbledFirst', 'GarbledLabelU', 'GarbledLabelW', 'GarbledMac', 'GarbledOrder',
    'GarbledShares', 'GarbledSum', 'GarbledVerdict'}


def test_each_mutant_is_dropped_by_a_test():
    """A defence whose mutant nobody uses may be gone, and nobody would see it. 'Header' is krb5kdc's
    and kadmind's (control_krb5.py)."""
    mutants = {path.stem for path in (pathlib.Path(__file__).parent / 'mutants').glob('*.patch')}
    assert mutants == (set(EVERY_DEFENCE) - {'Header'}) | ELSEWHERE


@names
def test_fails_and_leaves_a_trace(world, attack):
    world.drop(EVERY_DEFENCE)  # what is installed has no such switch
    world.intruder.servers.reconnect_if_broken()
    before = world.audit_lines()
    assert not attack.run(world)
    assert world.wait_for_traces(before, attack.trace)


@names
def test_succeeds_without_the_defence(request, attack):
    without = request.getfixturevalue('gullible' if 'Header' in attack.drops else 'control')
    without.drop(attack.drops)
    without.intruder.servers.reconnect_if_broken()
    try:
        assert attack.run(without)
    finally:
        without.drop([])


def test_what_a_kdc_says_while_he_is_in_it(world):
    """Nobody's ticket is nobody's, and an indicator is the KDC's word as long as it is his: the
    servers sign it, as they do PACs. It ends with max_renewable_life."""
    us = world.intruder
    nobody = ticket.Inside('WELLKNOWN/ANONYMOUS@WELLKNOWN:ANONYMOUS',
                           flags=ticket.LOGIN_FLAGS | ticket.ANONYMOUS)
    assert world.use_ticket(us.login_as_nobody(nobody))[0]
    unmarked = dataclasses.replace(nobody, flags=ticket.LOGIN_FLAGS)
    assert not world.use_ticket(us.login_as_nobody(unmarked))[0]
    assert not world.use_ticket(us.login(world.mallory, nobody).tgt)[0], 'the flag hides nobody'
    elements = ticket.indicators(INDICATOR)
    inside = ticket.Inside(world.mallory.principal, authdata=elements)
    macs = [us.checksum(us.krbtgt, intruder.USAGE_CAMMAC, data)
            for data in (inside.encode(), elements)]
    inside.authdata = ticket.cammac(elements, *macs)
    assert world.use_ticket(us.login(world.mallory, inside).tgt, STRICT)[0]


def test_a_certificate_is_believed(world):
    """What the attacks alter is good as it is."""
    us = world.intruder
    request = pkinit_login.Request(world.carol.principal, world.krbtgt)
    answers = us.servers.ask(us.certificate_job(
        world.carol, pkinit_login.sign(world.live.authority, 'carol', request)))
    assert wire.all_ok(answers), answers
    assert answers[0].seals[0].header[1:17] == world.carol.id


def test_kadmind_believes_what_the_header_says(world):
    """The tickets that attacks on kadmind alter are good as they are; INITIAL means what it says."""
    us, query = world.intruder, f'cpw -pw "{world.alice.password}" alice'
    kadmin = us.handle(world.kadmin)
    assert 'changed' in world.ask_kadmind(us.login(world.alice, service=kadmin).tgt, query)
    plain = ticket.Inside(world.alice.principal, flags=ticket.FORWARDABLE)
    made = us.reissue(us.login(world.alice).tgt, plain, kadmin)
    assert f'Principal: {world.alice.principal}' in world.ask_kadmind(made, 'getprinc alice')
    assert 'initial ticket' in world.ask_kadmind(made, query)
