# SPDX-License-Identifier: Apache-2.0
"""How outcomes are judged, on outcomes made by hand."""

import pytest

import lab
import outcomes

REPEATED = -1765328350  # KRB5KRB_AP_ERR_REPEAT, "Request is a replay"
REVOKED = -1765328366   # KRB5KDC_ERR_CLIENT_REVOKED


def outcome(right=True, code=0, check_code=0, start=0.0, end=0.1, checked=False):
    return {'user': 'user0', 'right': right, 'code': code, 'check_code': check_code,
            'start': start, 'end': end, 'text': '', 'checked': checked or bool(check_code)}


@pytest.mark.parametrize('given, expected', [
    (outcome(), outcomes.OK),
    (outcome(right=False, code=outcomes.PREAUTH_FAILED), outcomes.REFUSED),
    (outcome(code=outcomes.SVC_UNAVAILABLE), outcomes.UNAVAILABLE),
    (outcome(right=False, code=outcomes.SVC_UNAVAILABLE), outcomes.UNAVAILABLE),
    (outcome(code=outcomes.KDC_UNREACH), outcomes.LOST),
    (outcome(check_code=outcomes.KDC_UNREACH), outcomes.OK),
    # A right password called wrong, a wrong one accepted, users blamed, tickets that do not work.
    (outcome(code=outcomes.PREAUTH_FAILED), outcomes.WRONG),
    (outcome(right=False), outcomes.WRONG),
    (outcome(code=REVOKED), outcomes.WRONG),
    (outcome(code=REPEATED), outcomes.WRONG),
    (outcome(right=False, code=REPEATED), outcomes.WRONG),
    (outcome(check_code=outcomes.BAD_INTEGRITY), outcomes.WRONG),
])
def test_classes(given, expected):
    assert outcomes.classify(given) == expected


def test_times_of_an_outage():
    """A fault from 10 to 20; the last answer at 9.9, the first at 21, one failure at 22."""
    found = [outcome(start=second, end=second + 0.9) for second in range(10)]
    found += [outcome(start=second, end=25, code=outcomes.KDC_UNREACH) for second in range(10, 20)]
    found += [outcome(start=20.5, end=21), outcome(start=22, end=24, code=outcomes.SVC_UNAVAILABLE),
              outcome(start=23, end=24)]
    assert outcomes.longest_silence(found, 10, 21) == 11
    assert outcomes.first_answer(found, 20) == 1
    assert outcomes.steady_answers(found, 20) == 3
    assert outcomes.steady_answers(found[:-1], 20) is None
    assert outcomes.count(found)['lost'] == 10


GOOD = {'wrong_answers': 0, 'wrong': [], 'users_with_failures': {}, 'before': {'ok': 5},
        'unavailable': 3, 'lost': 0, 'silence_seconds': 8, 'fault_seconds': 10,
        'first_answer_seconds': 1, 'steady_seconds': 2, 'tickets_checked': 1}


@pytest.mark.parametrize('change, named', [
    ({'wrong_answers': 1, 'wrong': ['user0']}, '1 wrong answers'),
    ({'users_with_failures': {'user0': (1, 'today')}}, 'counted'),
    ({'before': {'ok': 0}}, 'before the fault'),
    ({'unavailable': 0, 'silence_seconds': 1}, 'not felt'),
    ({'steady_seconds': None}, 'steady'),
    ({'tickets_checked': 0}, 'ticket'),
])
def test_complaints(change, named):
    assert lab.complaints(GOOD) == []
    assert [text for text in lab.complaints({**GOOD, **change}) if named in text]
