# SPDX-License-Identifier: Apache-2.0
"""Logins by certificate (PKINIT) that nobody signed: with nothing in them, or keys that OpenSSL takes long
to decode.

    own_curve(algorithm)    a key with a curve of its own, over the prime 8073 * 2^648 + 1, and a compressed
                            point: 2.4 s for 641 bytes of certificate
    compressed()            a compressed point of P-224: 10 ms for 122 bytes
    certificate(key)        DER
    relative_points(names, points)  DER of a certificate whose lists of what is revoked are at so many points,
                            each relative to so many names of the issuer: 2 s and 265 MB for 1,500 of each
    signed_data(keys, content)     CMS with a certificate for each, and no signature; None: without content
    open_data(keys)                the same in BER, where certificates end nowhere
    signed_by(certificate)         CMS with something like a signature by this one
    unsigned(content)              CMS of content that is not said to be signed; None: without
    login(realm, user, cms)        AS-REQ
    anonymous_login(realm, key)    AS-REQ of nobody, whose DH value is this key"""

import hashlib
import time

import datagrams
from datagrams import der

PA_PK_AS_REQ, ANONYMOUS = 16, 'WELLKNOWN/ANONYMOUS'
BITS, SET, UTC_TIME, OBJECT, UTF8 = 0x03, 0x31, 0x17, 0x06, 0x0c
ELEMENT = 83  # bytes
PRIME = 8073 * 2**648 + 1
REQUEST_ANONYMOUS = 0x00008000
NT_WELLKNOWN = 11


def _object(text):
    return der.wrap(OBJECT, bytes.fromhex(text))


AUTH_DATA = _object('2b060105020301')
SIGNED_DATA = _object('2a864886f70d010702')
EC_KEY, ECDSA_SHA256 = _object('2a8648ce3d0201'), _object('2a8648ce3d040302')
SM2_KEY = _object('2a811ccf5501822d')  # whose keys OpenSSL reads as any curve's


def _element(value):
    return der.octets(value.to_bytes(ELEMENT, 'big'))


def _key(parameters, point, algorithm=EC_KEY):
    return der.sequence(der.sequence(algorithm, parameters), der.wrap(BITS, b'\0' + point))


def own_curve(algorithm=EC_KEY):
    point = b'\x02' + bytes(ELEMENT)  # x = 0: y is a root of 49, for which some 200,000 squarings are made
    field = der.sequence(_object('2a8648ce3d0101'), der.integer(PRIME))
    return _key(der.sequence(der.integer(1), field, der.sequence(_element(1), _element(49)),
                             der.octets(point), der.integer(2**660 + 1), der.integer(1)), point, algorithm)


def compressed():
    return _key(_object('2b81040021'),
                bytes.fromhex('02b70e0cbd6bb4bf7f321390b94a03c1d356c21122343280d6115c1d21'))


def certificate(key, issuer=der.sequence(), extensions=None):
    algorithm, name = der.sequence(ECDSA_SHA256), der.sequence()
    times = der.sequence(der.wrap(UTC_TIME, b'250101000000Z'), der.wrap(UTC_TIME, b'350101000000Z'))
    parts = [der.integer(1), algorithm, issuer, times, name, key]
    if extensions:
        parts = [der.field(0, der.integer(2)), *parts, der.field(3, der.sequence(extensions))]
    return der.sequence(der.sequence(*parts), algorithm, der.wrap(BITS, b'\0'))


def _issuer(names):
    return der.sequence(der.wrap(SET, der.sequence(_object('2a'), der.wrap(UTF8, b'')) * names))


def relative_points(names, points):
    one = der.sequence(der.field(0, der.field(1)))
    extension = der.sequence(_object('551d1f'), der.octets(der.sequence(one * points)))
    key = _key(_object('2b8104000a'), bytes.fromhex(
        '0479be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798'
        '483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8'))
    return certificate(key, _issuer(names), extension), _issuer(names)


def unsigned(content):
    inside = [] if content is None else [der.field(0, der.octets(content))]
    return der.sequence(AUTH_DATA, *inside)


def signed_data(keys=(), content=b'noise'):
    certificates = [der.field(0, *map(certificate, keys))] if keys else []
    data = der.sequence(der.integer(3), der.wrap(SET), unsigned(content), *certificates,
                        der.wrap(SET))
    return der.sequence(SIGNED_DATA, der.field(0, data))


def open_data(keys):
    certificates = b'\xa0\x80' + b''.join(map(certificate, keys))
    data = der.sequence(der.integer(3), der.wrap(SET), unsigned(b'noise'), certificates)
    return der.sequence(SIGNED_DATA, der.field(0, data))


def signed_by(signer, issuer):
    sha256 = der.sequence(_object('608648016503040201'))
    signature = der.sequence(der.integer(1), der.sequence(issuer, der.integer(1)), sha256,
                             der.sequence(ECDSA_SHA256), der.octets(b'noise'))
    data = der.sequence(der.integer(3), der.wrap(SET, sha256), unsigned(b'noise'),
                        der.field(0, signer), der.wrap(SET, signature))
    return der.sequence(SIGNED_DATA, der.field(0, data))


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
