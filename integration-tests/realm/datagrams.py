# SPDX-License-Identifier: Apache-2.0
"""What somebody without any credential sends to a KDC: requests that look genuine from outside.

    garbage_login(realm, user, size)         AS-REQ, a pre-authentication of noise of enctype 18, and
                                             so much padata that the request has `size` bytes
    login_of_a_realm(realm, named)           AS-REQ that calls the KDC's realm `named`
    login_with_many(realm, user, count)      AS-REQ with so many elements of padata of an unknown type, and as
                                             many empty pre-authentications
    guess(realm, user, *padata)              AS-REQ with a wrong password and other elements of padata
    elements_of(request)                     the padata of a recorded AS-REQ, by type
    garbage_ticket(realm, wanted, service, enctype, size)   TGS-REQ for a ticket to `wanted` whose
                                             own "ticket" for `service` is `size` random bytes
    garbage_tgt(realm, wanted, size)         the same with a "TGT" that looks as if our servers had sealed it
    garbage_password_change(realm)   for kadmind's port: its "ticket" looks as if our servers had sealed
                                     it for kadmin/changepw
    with_more_padata(request, size)          a recorded request, and padata that nothing protects
    with flood(port, requests, per_second):  sends them as datagrams, in turn, and reads no answer
"""

import contextlib
import os
import pathlib
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'intruder'))

import der  # noqa: E402

AS_REQ, TGS_REQ, AP_REQ, TICKET = 10, 12, 14, 1
PA_TGS_REQ, PA_ENC_TIMESTAMP, PA_UNKNOWN = 1, 2, 9999
SESSION_ENCTYPE, UNKNOWN_ENCTYPE = 18, 9999
CANONICALIZE = 0x00010000
LABEL = 18  # what a ticket of a gcm type says of its type
HMAC_BYTES = 12
TIMESTAMP_BYTES = 16 + 28 + HMAC_BYTES  # confounder, PA-ENC-TS-ENC, HMAC


def padata(kind, value):
    return der.sequence(der.field(1, der.integer(kind)), der.field(2, der.octets(value)))


def encrypted(enctype, cipher, kvno=None):
    number = [der.field(1, der.integer(kvno))] if kvno is not None else []
    return der.sequence(der.field(0, der.integer(enctype)), *number,
                        der.field(2, der.octets(cipher)))


def request_body(realm, service, enctype, user=None, unknown_enctypes=0):
    client = [der.field(1, der.name(user))] if user else []
    return der.sequence(
        der.field(0, der.flags(CANONICALIZE)), *client, der.field(2, der.text(realm)),
        der.field(3, der.name(service)), der.field(5, der.kerberos_time(time.time() + 3600)),
        der.field(7, der.integer(int.from_bytes(os.urandom(3), 'big'))),
        der.field(8, der.sequence(der.integer(enctype), der.integer(SESSION_ENCTYPE),
                                  *[der.integer(UNKNOWN_ENCTYPE)] * unknown_enctypes)))


def _request(kind, padata, body):
    return der.application(kind, der.sequence(
        der.field(1, der.integer(5)), der.field(2, der.integer(kind)),
        der.field(3, der.sequence(*padata)), der.field(4, body)))


def _garbage_timestamp(enctype):
    if enctype > 0:
        return os.urandom(TIMESTAMP_BYTES)
    # Of ours: nonce, no header, zero block and PA-ENC-TS-ENC, tag.
    return os.urandom(12) + b'\0' + os.urandom(16 + 28 + 16)


def garbage_login(realm, user, size, enctype=18, unknown_enctypes=0):
    def made(filling):
        stamp = padata(PA_ENC_TIMESTAMP, encrypted(enctype, _garbage_timestamp(enctype)))
        # It asks for the checksum of the request, as MIT's clients do.
        return _request(AS_REQ, (stamp, padata(149, b''), padata(PA_UNKNOWN, bytes(filling))),
                        request_body(realm, f'krbtgt/{realm}', enctype, user, unknown_enctypes))
    return made(max(0, size - len(made(0)) - 8))


def login_of_a_realm(realm, named):
    return _request(AS_REQ, (padata(149, b''),), request_body(named, f'krbtgt/{realm}', 18, 'nobody'))


def login_with_many(realm, user, count):
    many = (padata(99, b''),) * count + (padata(PA_ENC_TIMESTAMP, b''),) * count
    return _request(AS_REQ, many, request_body(realm, f'krbtgt/{realm}', -24002, user))


def as_request(body, *elements):
    return _request(AS_REQ, elements, body)


def guess(realm, user, *more):
    stamp = padata(PA_ENC_TIMESTAMP, encrypted(18, _garbage_timestamp(18)))
    return _request(AS_REQ, (stamp, *more), request_body(realm, f'krbtgt/{realm}', 18, user))


def elements_of(request):
    """Type and value of each; none of what is no AS-REQ."""
    [(tag, fields)] = der.elements(request)
    [(_, fields)] = der.elements(fields)
    fields = dict(der.elements(fields))
    found = {}
    if tag != 0x60 | AS_REQ or 0xA3 not in fields:
        return found
    [(_, sequence)] = der.elements(fields[0xA3])
    for _, element in der.elements(sequence):
        [(_, kind), (_, value)] = der.elements(element)
        [(_, number)], [(_, contents)] = der.elements(kind), der.elements(value)
        found[int.from_bytes(number, 'big', signed=True)] = contents
    return found


def _ap_req(realm, service, enctype, cipher, kvno):
    ticket = der.application(TICKET, der.sequence(
        der.field(0, der.integer(5)), der.field(1, der.text(realm)),
        der.field(2, der.name(service)),
        der.field(3, encrypted(enctype, cipher, kvno))))
    return der.application(AP_REQ, der.sequence(
        der.field(0, der.integer(5)), der.field(1, der.integer(14)), der.field(2, der.flags(0)),
        der.field(3, ticket), der.field(4, encrypted(18, os.urandom(200)))))


def _as_if_sealed(size):
    """A message of a gcm type with a header that could be our servers'."""
    now = int(time.time())
    header = struct.pack('>B16sIIQ', 1, os.urandom(16), now, now + 3600, 1)
    return os.urandom(12) + bytes([len(header)]) + header + os.urandom(size)


def garbage_password_change(realm, kvno=1):
    ap_req = _ap_req(realm, 'kadmin/changepw', LABEL, _as_if_sealed(300), kvno)
    private = os.urandom(100)
    return struct.pack('>HHH', 6 + len(ap_req) + len(private), 1, len(ap_req)) + ap_req + private


def tgs_request(body, ap_req):
    return _request(TGS_REQ, (padata(PA_TGS_REQ, ap_req),), body)


def garbage_ticket(realm, wanted, service, enctype, size, kvno=1):
    return tgs_request(request_body(realm, wanted, 18),
                       _ap_req(realm, service, enctype, os.urandom(size), kvno))


def garbage_tgt(realm, wanted, size, kvno=1):
    return tgs_request(request_body(realm, wanted, 18),
                       _ap_req(realm, f'krbtgt/{realm}', LABEL, _as_if_sealed(size), kvno))


def with_more_padata(request, size=16):
    [(application, fields)] = der.elements(request)
    [(_, fields)] = der.elements(fields)

    def changed(tag, contents):
        if tag == 0xA3:
            [(_, before)] = der.elements(contents)
            contents = der.sequence(before, padata(PA_UNKNOWN, os.urandom(size)))
        return der.wrap(tag, contents)
    return der.wrap(application, der.sequence(*[changed(*field) for field in der.elements(fields)]))


@contextlib.contextmanager
def flood(port, requests, per_second, host='127.0.0.1', source='127.0.0.1'):
    """`requests`: functions that make one. Yields a list whose only element counts those sent."""
    ending = threading.Event()
    sent = [0]

    def send():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stream:
            stream.bind((source, 0))
            started = time.monotonic()
            while not ending.is_set():
                stream.sendto(requests[sent[0] % len(requests)](), (host, port))
                sent[0] += 1
                ending.wait(max(0.0, started + sent[0] / per_second - time.monotonic()))

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    try:
        yield sent
    finally:
        ending.set()
        thread.join()
