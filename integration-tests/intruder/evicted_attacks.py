# SPDX-License-Identifier: Apache-2.0
"""What an intruder tries with what he took along, when an honest KDC runs again: tickets recorded,
keystreams known, tickets that he had the servers seal with contents of his own."""

import time

import ticket
from attack import INDICATOR, STRICT, attack

YEAR = 365 * 24 * 3600


@attack(drops='Tag', trace='"BAD_TAG"')
def a_known_keystream_with_another_inside(world):
    """He knows the keystream of alice's ticket, so he can put anything under its nonce."""
    recorded = world.intruder.login(world.alice).tgt
    forged = recorded.with_inside(ticket.Inside(world.alice.principal))
    return world.use_ticket(forged)[0]


@attack(drops='Tag', trace='"BAD_TAG"')
def a_ticket_with_one_bit_changed(world):
    """The first bit of the flags in his own ticket."""
    own = world.intruder.login(world.mallory).tgt
    at = 16 + own.inside.encode().index(b'\x03\x05\x00') + 6  # the flags' last byte: reserved bits
    return world.use_ticket(own.with_bit_flipped(at))[0]


@attack(drops='Tag', trace='"BAD_TAG"')
def a_header_with_another_name(world):
    """His own login, a ticket that says alice, and her name written into the header."""
    minted = world.intruder.login(world.mallory, ticket.Inside(world.alice.principal)).tgt
    header = minted.header[:1] + world.alice.id + minted.header[17:]
    return world.use_ticket(minted.with_header(header))[0]


@attack(drops='Header', trace='"OPEN_TICKET"')
def a_minted_ticket_for_another_user(world):
    """His own login, a ticket that says alice, sealed by the servers: all tags are good."""
    return world.use_ticket(
        world.intruder.login(world.mallory, ticket.Inside(world.alice.principal)).tgt)[0]


@attack(drops='Header', trace='"OPEN_TICKET"')
def a_minted_ticket_for_ten_years(world):
    """His own login, in his own name, valid until he retires."""
    inside = ticket.Inside(world.mallory.principal, life=10 * YEAR, renewable=10 * YEAR)
    return world.use_ticket(world.intruder.login(world.mallory, inside).tgt)[0]


@attack(drops='Header', trace='"OPEN_TICKET"')
def a_minted_ticket_that_renews_for_ten_years(world):
    """The same with an ordinary life that can be renewed for ever."""
    inside = ticket.Inside(world.mallory.principal, renewable=10 * YEAR)
    return world.use_ticket(world.intruder.login(world.mallory, inside).tgt)[0]


@attack(drops='Header', trace='"REISSUE_TICKET"')
def a_ticket_for_another_user_made_from_his_own(world):
    """A renewal of his own TGT, whose new inside says alice."""
    parent = world.intruder.login(world.mallory).tgt
    return world.use_ticket(
        world.intruder.reissue(parent, ticket.Inside(world.alice.principal)))[0]


@attack(drops='Header', trace='"OPEN_TICKET"')
def a_users_ticket_out_of_nobodys(world):
    """An anonymous login, which takes no pre-auth at all; the ticket says alice."""
    return world.use_ticket(
        world.intruder.login_as_nobody(ticket.Inside(world.alice.principal)))[0]


@attack(drops='Header', trace='"REISSUE_TICKET"')
def a_users_ticket_made_from_nobodys(world):
    """The same, and the servers make another ticket from it first."""
    inside = ticket.Inside(world.alice.principal)
    parent = world.intruder.login_as_nobody(inside)
    return world.use_ticket(world.intruder.reissue(parent, inside))[0]


@attack(drops='Tag', trace='"BAD_TAG"')
def an_indicator_that_no_server_signed(world):
    """His own login by password; the ticket says that he had a token. Now he has no KDC that would
    have the servers sign it."""
    elements = ticket.indicators(INDICATOR)
    mac = int(time.time()).to_bytes(4, 'big') + bytes(24)  # of a nonce that is not too old
    inside = ticket.Inside(world.mallory.principal, authdata=ticket.cammac(elements, mac, mac))
    made = world.intruder.login(world.mallory, inside).tgt
    assert world.use_ticket(made)[0], 'without its indicator it is an ordinary ticket'
    return world.use_ticket(made, STRICT)[0]


# kadmind: its tickets have headers, too ----------------------------------------------------------

def _administer(world, kadmin_ticket):
    """Whether kadmind takes the bearer for the administrator of the realm."""
    return f'Principal: {world.alice.principal}' in world.ask_kadmind(kadmin_ticket,
                                                                      'getprinc alice')


def _as_administrator(world, **times):
    return ticket.Inside(f'root/admin@{world.live.name}', **times)


@attack(drops='Header', trace='"OPEN_TICKET"')
def an_administrators_ticket_out_of_his_own_login(world):
    """His own login for kadmin/admin, a ticket that says root/admin: he administers the realm."""
    us = world.intruder
    made = us.login(world.mallory, _as_administrator(world), service=us.handle(world.kadmin)).tgt
    return _administer(world, made)


@attack(drops='Header', trace='"OPEN_TICKET"')
def an_administrators_ticket_out_of_nobodys_login(world):
    """The same without a password."""
    us = world.intruder
    return _administer(world, us.login_as_nobody(_as_administrator(world), us.handle(world.kadmin)))


@attack(drops='Header', trace='"OPEN_TICKET"')
def an_administrators_ticket_made_from_his_own(world):
    """The same out of his own TGT by one REISSUE_TICKET."""
    us = world.intruder
    return _administer(world, us.reissue(us.login(world.mallory).tgt, _as_administrator(world),
                                         us.handle(world.kadmin)))


@attack(drops='Header', trace='"OPEN_TICKET"')
def a_ticket_for_kadmin_that_outlives_its_login(world):
    """alice is no administrator, but may look at herself; until 2036."""
    us = world.intruder
    made = us.login(world.alice, ticket.Inside(world.alice.principal, life=10 * YEAR),
                    service=us.handle(world.kadmin)).tgt
    return _administer(world, made)


@attack(drops='Header', trace='"OPEN_TICKET"')
def a_new_password_without_the_old_one(world):
    """kadmind lets alice change her password if her ticket is INITIAL: if she has just typed the old
    one. He makes such a ticket out of a TGT of hers that he has."""
    us = world.intruder
    made = us.reissue(us.login(world.alice).tgt, ticket.Inside(world.alice.principal),
                      us.handle(world.kadmin))
    said = world.ask_kadmind(made, f'cpw -pw "{world.alice.password}" alice')
    return 'Password for "alice' in said and 'changed' in said
