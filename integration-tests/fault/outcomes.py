# SPDX-License-Identifier: Apache-2.0
"""What a login's outcome means, and what all outcomes of a case say about an outage.

An outage may cost a user time or the login. It may never give a wrong answer: a right password
called wrong, a wrong one accepted, a ticket that does not work, or any error that says something
about the user, the password or the request instead of the outage.
"""

import collections

# error_table krb5, as <krb5/krb5.h> numbers it.
PREAUTH_FAILED = -1765328360
SVC_UNAVAILABLE = -1765328355
BAD_INTEGRITY = -1765328353
KDC_UNREACH = -1765328228

OK, REFUSED, UNAVAILABLE, LOST, WRONG = (
    'ok', 'refused', 'unavailable', 'lost', 'WRONG ANSWER')
LATE = 1.0  # seconds
_OUTAGE = {SVC_UNAVAILABLE: UNAVAILABLE, KDC_UNREACH: LOST}
_WRONG_PASSWORD = (PREAUTH_FAILED, BAD_INTEGRITY)


def classify(outcome):
    """The class of one line of the load's file."""
    code = outcome['code']
    if code in _OUTAGE:
        return _OUTAGE[code]
    if not outcome['right']:
        return REFUSED if code in _WRONG_PASSWORD else WRONG
    if code:
        return WRONG
    return OK if outcome['check_code'] in (0, *_OUTAGE) else WRONG


def is_answered(outcome):
    """Whether the KDC did what it is there for: let in, or refused for good reason."""
    return classify(outcome) in (OK, REFUSED)


def is_late(outcome):
    """Answered, but not at the client's first try: MIT's tries again after one second."""
    return is_answered(outcome) and outcome['end'] - outcome['start'] > LATE


def count(outcomes):
    classes = collections.Counter(classify(outcome) for outcome in outcomes)
    checked = [outcome for outcome in outcomes if outcome['checked']]
    return {
        'logins': len(outcomes),
        'ok': classes[OK],
        'late': sum(1 for outcome in outcomes if is_late(outcome)),
        'wrong_password_refused': classes[REFUSED],
        'unavailable': classes[UNAVAILABLE],
        'lost': classes[LOST],
        'wrong_answers': classes[WRONG],
        'tickets_checked': len(checked),
        'service_tickets_lost': sum(1 for outcome in checked if outcome['check_code'] in _OUTAGE),
    }


def wrong_answers(outcomes):
    """What was wrong, for the report."""
    return [f'{outcome["user"]}, {"right" if outcome["right"] else "wrong"} password: '
            f'{outcome["text"] or "let in"} ({outcome["check_code"] or outcome["code"]})'
            for outcome in outcomes if classify(outcome) == WRONG]


def longest_silence(outcomes, begin, end):
    """Seconds: the longest time between begin and end in which nobody got an answer."""
    answers = sorted(outcome['end'] for outcome in outcomes
                     if is_answered(outcome) and begin < outcome['end'] < end)
    times = [begin, *answers, end]
    return max(later - earlier for earlier, later in zip(times, times[1:]))


def first_answer(outcomes, end):
    """Seconds from the fault's end to the first answer, or None."""
    return min((outcome['end'] - end for outcome in outcomes
                if is_answered(outcome) and outcome['end'] >= end), default=None)


def steady_answers(outcomes, end):
    """Seconds from the fault's end to the login from which on no login failed, or None."""
    after = sorted((outcome for outcome in outcomes if outcome['start'] >= end),
                   key=lambda outcome: outcome['start'])
    steady = None
    for outcome in after:
        if not is_answered(outcome):
            steady = None
        elif steady is None:
            steady = outcome['start'] - end
    return steady
