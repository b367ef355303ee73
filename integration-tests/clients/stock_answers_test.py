# SPDX-License-Identifier: Apache-2.0
"""Our KDC and MIT's own are asked the same by hand: error code, e-text, e-data and what a reply
holds must be the same. What differs by its nature is left out of the comparison: times, keys, the
FAST cookie."""

import dataclasses

import pytest

import raw_request
import stock_answers


def ask(lab, make):
    """The answer that a KDC gives to one request of the table, taken apart; None when there is
    none."""
    made = make(lab)
    data = raw_request.exchange(lab.realm.ports.kdc, made.encode())
    return raw_request.read_reply(data, made) if data else None


@pytest.fixture(scope='module')
def labs(ours, stock):
    for lab in (ours, stock):
        stock_answers.make_users(lab)
    return ours, stock


@pytest.mark.parametrize('name', stock_answers.REQUESTS)
def test_same_answer(labs, name):
    ours, stock = (ask(lab, stock_answers.REQUESTS[name]) for lab in labs)
    assert stock == ours


@pytest.mark.parametrize('name', stock_answers.DIFFERENT)
def test_different_answer(labs, name):
    make, reason = stock_answers.DIFFERENT[name]
    ours, stock = (ask(lab, make) for lab in labs)
    if labs[0].protected:
        assert ours != stock, f'{name}: no longer different; {reason}'
    else:
        assert ours == stock, 'a local key is handled as stock handles it'


def test_lockout_says_the_same(labs):
    """Wrong passwords until the lock, then the right one: each answer, in order."""
    user = stock_answers.LOCKED
    for password in ['no'] * stock_answers.LOCKOUT_FAILURES + ['no', None]:
        def attempt(lab):
            return stock_answers.with_timestamp(lab, user, password=password)
        ours, stock = (ask(lab, attempt) for lab in labs)
        assert stock == ours
    assert ours.code == 18  # KDC_ERR_CLIENT_REVOKED


def test_garbage_is_not_answered(labs):
    good = stock_answers.request(labs[0]).encode()
    for data in (b'', b'\x6a', b'no kerberos at all', good[:-1], good[:20], b'\x6a\x80' + good[2:]):
        ours, stock = (raw_request.exchange(lab.realm.ports.kdc, data, patience=1)
                       for lab in labs)
        assert (ours is None) == (stock is None), data
    assert ask(labs[0], stock_answers.with_timestamp).opened, 'and the KDC still serves'


def test_the_comparison_sees(labs):
    """Answers to different requests do differ, and a reply is really opened and read."""
    ours = labs[0]
    reply = ask(ours, stock_answers.with_timestamp)
    assert reply.opened and reply.nonce == 0x11223344 and reply.session_enctype == 18
    assert reply.current and reply.lifetime == 3600
    error = ask(ours, stock_answers.request)
    assert error.code == 25 and raw_request.PA_ETYPE_INFO2 in dict(error.data)
    assert error != ask(ours, stock_answers.REQUESTS['no pre-authentication, enctype 17 alone'])
    for change in (dict(code=24), dict(text='x'), dict(data=[])):
        assert dataclasses.replace(error, **change) != error
