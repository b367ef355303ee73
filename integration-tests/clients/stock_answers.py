# SPDX-License-Identifier: Apache-2.0
"""What is asked of both KDCs, ours and MIT's own, by hand: a table of requests that decent and less
decent clients send. stock_answers_test.py sends each to both and compares the answers."""

import dataclasses

from raw_request import AsRequest, PA_ENC_TIMESTAMP, NT_UNKNOWN, encrypted_data, padata

PLAIN, EXPIRED, PASSWORD_EXPIRED, DISABLED, LOCKED = (
    'personplain', 'personold', 'personstale', 'personoff', 'personlocked')
LOCKOUT_FAILURES = 2


def make_users(lab):
    """The same in both realms."""
    for name in (PLAIN, EXPIRED, PASSWORD_EXPIRED, DISABLED, LOCKED):
        lab.add_user(name=name)
    live = lab.realm
    live.kadmin_local(f'addpol -maxfailure {LOCKOUT_FAILURES} -failurecountinterval 1h '
                      '-lockoutduration 1h lockout')
    live.kadmin_local(f'modprinc -policy lockout {LOCKED}')
    live.kadmin_local(f'modprinc -expire yesterday {EXPIRED}')
    live.kadmin_local(f'modprinc -pwexpire yesterday {PASSWORD_EXPIRED}')
    live.kadmin_local(f'modprinc -allow_tix {DISABLED}')


def request(lab, user=PLAIN, **more):
    return AsRequest(user, lab.realm.name, **more)


def with_timestamp(lab, user=PLAIN, enctype=18, before=(), after=(), password=None, skew=0, **more):
    made = request(lab, user, **more)
    stamp = made.timestamp(enctype, password, skew)
    return dataclasses.replace(made, padata=(*before, stamp, *after))


def garbage(enctype=18, size=60):
    return padata(PA_ENC_TIMESTAMP, encrypted_data(enctype, bytes(size)))


UNKNOWN = padata(9999, b'what nobody knows')
PAC_REQUEST = padata(128, bytes.fromhex('3005a0030101ff'))

# name: a function from a lab to the request
REQUESTS = {
    'no pre-authentication': request,
    'no pre-authentication, enctype 17 alone': lambda lab: request(lab, etypes=(17,)),
    'no pre-authentication, all four in our order':
        lambda lab: request(lab, etypes=(20, 19, 18, 17)),
    'a timestamp without error 25 before it': with_timestamp,
    'a timestamp of enctype 17': lambda lab: with_timestamp(lab, enctype=17, etypes=(17,)),
    'a timestamp of 17 where 18 is preferred': lambda lab: with_timestamp(lab, enctype=17),
    'a timestamp of 17, the list has 18 alone':
        lambda lab: with_timestamp(lab, enctype=17, etypes=(18,)),
    'unknown padata before it': lambda lab: with_timestamp(lab, before=(UNKNOWN,)),
    'unknown padata after it': lambda lab: with_timestamp(lab, after=(UNKNOWN, UNKNOWN)),
    'unknown padata alone': lambda lab: request(lab, padata=(UNKNOWN,)),
    'a PAC request, as Windows sends it': lambda lab: with_timestamp(lab, before=(PAC_REQUEST,)),
    'negative enctypes among others':
        lambda lab: with_timestamp(lab, etypes=(-135, -133, 18, -128, 17)),
    'negative enctypes among others, no timestamp':
        lambda lab: request(lab, etypes=(-135, 18, -128)),
    'negative enctypes alone': lambda lab: request(lab, etypes=(-135, -133, -128)),
    'each enctype twice': lambda lab: with_timestamp(lab, etypes=(18, 18, 17, 18, 17)),
    'name type 0': lambda lab: with_timestamp(lab, name_type=NT_UNKNOWN),
    'name type 0, no timestamp': lambda lab: request(lab, name_type=NT_UNKNOWN),
    'no common enctype': lambda lab: request(lab, etypes=(1, 3)),
    'no common enctype, with a timestamp': lambda lab: with_timestamp(lab, etypes=(23,)),
    'no enctype at all': lambda lab: request(lab, etypes=()),
    'RC4 first': lambda lab: with_timestamp(lab, etypes=(23, 18)),
    'a clock that is ten minutes late': lambda lab: with_timestamp(lab, skew=-600),
    'a clock that is ten minutes early': lambda lab: with_timestamp(lab, skew=600),
    'a wrong password': lambda lab: with_timestamp(lab, password='no'),
    'a wrong password under 17':
        lambda lab: with_timestamp(lab, enctype=17, etypes=(17,), password='no'),
    'a timestamp of zeros': lambda lab: request(lab, padata=(garbage(),)),
    'a timestamp that is too short': lambda lab: request(lab, padata=(garbage(size=12),)),
    'a timestamp of no bytes': lambda lab: request(lab, padata=(garbage(size=0),)),
    'a timestamp of an enctype that nobody knows': lambda lab: request(lab, padata=(garbage(99),)),
    'a timestamp that is no DER':
        lambda lab: request(lab, padata=(padata(PA_ENC_TIMESTAMP, b'no'),)),
    'an unknown principal': lambda lab: request(lab, 'personnobody'),
    'an unknown principal with a timestamp': lambda lab: with_timestamp(lab, 'personnobody'),
    'an unknown service': lambda lab: with_timestamp(lab, service=('host', 'nowhere.example.com')),
    'an expired principal': lambda lab: with_timestamp(lab, EXPIRED),
    'an expired password': lambda lab: with_timestamp(lab, PASSWORD_EXPIRED),
    'an expired password, no timestamp': lambda lab: request(lab, PASSWORD_EXPIRED),
    'a disabled principal': lambda lab: with_timestamp(lab, DISABLED),
    'a disabled principal and a wrong password':
        lambda lab: with_timestamp(lab, DISABLED, password='no'),
    'a request for a lifetime in the past': lambda lab: with_timestamp(lab, lifetime=-3600),
    'two right timestamps': lambda lab: with_timestamp(lab, before=(request(lab).timestamp(),)),
    'a right timestamp, then a wrong one': lambda lab: with_timestamp(
        lab, after=(request(lab).timestamp(password='no'),)),
}
# Where we mean to differ when the user's key is remote: the request and why. The test asserts that
# the answers do differ.
DIFFERENT = {
    'a wrong timestamp, then a right one': (
        lambda lab: with_timestamp(lab, before=(request(lab).timestamp(password='no'),)),
        'of each kind of pre-authentication one is tried: a request is one guess'),
}
