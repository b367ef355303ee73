# SPDX-License-Identifier: Apache-2.0
"""Logins by certificate (PKINIT) that nobody signed: with nothing in them, or keys that OpenSSL takes long
to decode.

    own_curve()             a key with a curve of its own, over the prime 8073 * 2^648 + 1, and a compressed
                            point: 2.4 s for 641 bytes of certificate
    compressed()            a compressed point of P-224: 10 ms for 122 bytes
    certificate(key)        DER
    signed_data(keys, content)     CMS with a certificate for each, and no signature; None: without content
    unsigned(content)              CMS of content that is not said to be signed; None: without
    login(realm, user, cms)        AS-REQ
    anonymous_login(realm, key)    AS-REQ of nobody, whose DH value is this key"""

import hashlib
import time

import datagrams
from datagrams import der

PA_PK_AS_REQ, ANONYMOUS = 16, 'WELLKNOWN/ANONYMOUS'
BITS, SET, UTC_TIME, OBJECT = 0x03, 0x31, 0x17, 0x06
ELEMENT = 83  # bytes
PRIME = 8073 * 2**648 + 1
REQUEST_ANONYMOUS = 0x00008000
NT_WELLKNOWN = 11


def _object(text):
    return der.wrap(OBJECT, bytes.fromhex(text))


AUTH_DATA = _object('2b060105020301')
EC_KEY, ECDSA_SHA256 = _object('2a8648ce3d0201'), _object('2a8648ce3d040302')


def _element(value):
    return der.octets(value.to_bytes(ELEMENT, 'big'))


def _key(parameters, point):
    return der.sequence(der.sequence(EC_KEY, parameters), der.wrap(BITS, b'\0' + point))


def own_curve():
    point = b'\x02' + bytes(ELEMENT)  # x = 0: y is a root of 49, for which some 200,000 squarings are made
    field = der.sequence(_object('2a8648ce3d0101'), der.integer(PRIME))
    return _key(der.sequence(der.integer(1), field, der.sequence(_element(1), _element(49)),
                             der.octets(point), der.integer(2**660 + 1), der.integer(1)), point)


def compressed():
    return _key(_object('2b81040021'),
                bytes.fromhex('02b70e0cbd6bb4bf7f321390b94a03c1d356c21122343280d6115c1d21'))


def certificate(key):
    algorithm, name = der.sequence(ECDSA_SHA256), der.sequence()
    times = der.sequence(der.wrap(UTC_TIME, b'250101000000Z'), der.wrap(UTC_TIME, b'350101000000Z'))
    tbs = der.sequence(der.integer(1), algorithm, name, times, name, key)
    return der.sequence(tbs, algorithm, der.wrap(BITS, b'\0'))


def unsigned(content):
    inside = [] if content is None else [der.field(0, der.octets(content))]
    return der.sequence(AUTH_DATA, *inside)


def signed_data(keys=(), content=b'noise'):
    certificates = [der.field(0, *map(certificate, keys))] if keys else []
    data = der.sequence(der.integer(3), der.wrap(SET), unsigned(content), *certificates,
                        der.wrap(SET))
    return der.sequence(_object('2a864886f70d010702'), der.field(0, data))


def login(realm, user, cms, body=None):
    body = body or datagrams.request_body(realm, f'krbtgt/{realm}', 18, user)
    element = datagrams.padata(PA_PK_AS_REQ, der.sequence(der.wrap(0x80, cms)))
    return datagrams.as_request(body, element)


def anonymous_login(realm, key):
    body = der.sequence(
        der.field(0, der.flags(REQUEST_ANONYMOUS)),
        der.field(1, der.sequence(der.field(0, der.integer(NT_WELLKNOWN)), der.field(
            1, der.sequence(*map(der.text, ANONYMOUS.split('/')))))),
        der.field(2, der.text(realm)), der.field(3, der.name(f'krbtgt/{realm}')),
        der.field(5, der.kerberos_time(time.time() + 3600)), der.field(7, der.integer(7)),
        der.field(8, der.sequence(der.integer(18))))
    authenticator = der.sequence(
        der.field(0, der.integer(0)), der.field(1, der.kerberos_time(time.time())),
        der.field(2, der.integer(7)), der.field(3, der.octets(hashlib.sha1(body).digest())))
    pack = der.sequence(der.field(0, authenticator), der.field(1, key))
    return login(realm, '', signed_data(content=pack), body)
