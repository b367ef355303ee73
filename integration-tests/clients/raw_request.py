# SPDX-License-Identifier: Apache-2.0
"""AS requests made by hand, to ask what no decent client asks, and their answers taken apart.

    AsRequest(user, realm, ...).encode()     the bytes
    exchange(port, bytes)                    by TCP; None when the KDC gives no answer
    read_reply(bytes)                        an Error or a Reply
"""

import calendar
import dataclasses
import hashlib
import hmac
import os
import socket
import time

import client_lab as lab_module  # noqa: F401  (makes integration-tests/realm importable)

import keys
import der

PA_ENC_TIMESTAMP, PA_ETYPE_INFO2, PA_FX_COOKIE = 2, 19, 133
NT_UNKNOWN, NT_PRINCIPAL, NT_SRV_INST = 0, 1, 2
AS_REP, KRB_ERROR = 11, 30
USAGE_TIMESTAMP, USAGE_AS_REP = 1, 3
CONFOUNDER = 16
OPTIONS = 0x40800010  # forwardable, renewable, renewable-ok
PATIENCE = 4          # seconds after which a KDC has not answered


# Keys (RFC 3962; the oracle of integration-tests/realm does the rest) -----------------------------

def seal(enctype, base, usage, plain):
    """Encrypts under enctype 17 or 18."""
    data = os.urandom(CONFOUNDER) + plain
    mac = hmac.new(keys.usage_key(base, usage, 0x55), data, hashlib.sha1).digest()[:12]
    return _cts_encrypt(keys.usage_key(base, usage, 0xAA), data) + mac


def _cts_encrypt(key, data):
    """CBC, then the last two blocks change places and the last is cut to the plaintext's length."""
    round_keys = keys.aes_round_keys(key)
    padded = data + bytes(-len(data) % 16)
    previous, blocks = bytes(16), []
    for at in range(0, len(padded), 16):
        mixed = bytes(a ^ b for a, b in zip(padded[at:at + 16], previous))
        previous = keys.aes_encrypt(round_keys, mixed)
        blocks.append(previous)
    tail = (len(data) - 1) % 16 + 1
    return b''.join(blocks[:-2] + [blocks[-1], blocks[-2][:tail]])


# Requests ---------------------------------------------------------------------------------------

def principal_name(kind, *components):
    return der.sequence(der.field(0, der.integer(kind)),
                        der.field(1, der.sequence(*map(der.text, components))))


def padata(kind, value):
    return der.sequence(der.field(1, der.integer(kind)), der.field(2, der.octets(value)))


def encrypted_data(enctype, cipher, kvno=None):
    middle = [der.field(1, der.integer(kvno))] if kvno is not None else []
    return der.sequence(der.field(0, der.integer(enctype)), *middle,
                        der.field(2, der.octets(cipher)))


@dataclasses.dataclass
class AsRequest:
    user: str
    realm: str
    password: str = lab_module.PASSWORD
    etypes: tuple = (18, 17)
    name_type: int = NT_PRINCIPAL
    service: tuple = ('krbtgt', 'EXAMPLE.COM')
    options: int = OPTIONS
    lifetime: int = 3600
    padata: tuple = ()
    nonce: int = 0x11223344
    now: float = dataclasses.field(default_factory=time.time)  # what all its times count from

    def timestamp(self, enctype=18, password=None, skew=0):
        """PA-ENC-TIMESTAMP under the password's key."""
        microseconds = int.from_bytes(os.urandom(3), 'big') % 1000000
        plain = der.sequence(der.field(0, der.kerberos_time(self.now + skew)),
                             der.field(1, der.integer(microseconds)))
        salt = keys.principal_salt(f'{self.user}@{self.realm}')
        base = keys.string_to_key(enctype, password or self.password, salt)
        return padata(PA_ENC_TIMESTAMP,
                      encrypted_data(enctype, seal(enctype, base, USAGE_TIMESTAMP, plain)))

    def encode(self):
        body = der.sequence(
            der.field(0, der.flags(self.options)),
            der.field(1, principal_name(self.name_type, self.user)),
            der.field(2, der.text(self.realm)),
            der.field(3, principal_name(NT_SRV_INST, *self.service)),
            der.field(5, der.kerberos_time(self.now + self.lifetime)),
            der.field(6, der.kerberos_time(self.now + 2 * self.lifetime)),
            der.field(7, der.integer(self.nonce)),
            der.field(8, der.sequence(*map(der.integer, self.etypes))))
        extra = [der.field(3, der.sequence(*self.padata))] if self.padata else []
        return der.application(10, der.sequence(
            der.field(1, der.integer(5)), der.field(2, der.integer(10)), *extra,
            der.field(4, body)))


def exchange(port, request, patience=PATIENCE):
    """One request by TCP. None: the KDC closed the connection or said nothing."""
    with socket.create_connection(('127.0.0.1', port), timeout=patience) as stream:
        stream.sendall(len(request).to_bytes(4, 'big') + request)
        try:
            size = int.from_bytes(_read(stream, 4), 'big')
            return _read(stream, size) or None
        except (socket.timeout, ConnectionError):
            return None


def _read(stream, size):
    data = b''
    while len(data) < size:
        piece = stream.recv(size - len(data))
        if not piece:
            raise ConnectionError('closed')
        data += piece
    return data


# Answers ----------------------------------------------------------------------------------------

def split(data):
    """(tag, contents) of each DER value in `data`."""
    found = []
    while data:
        tag, size, at = data[0], data[1], 2
        if size & 0x80:
            at += size & 0x7F
            size = int.from_bytes(data[2:at], 'big')
        found.append((tag, data[at:at + size]))
        data = data[at + size:]
    return found


def fields(sequence):
    """The context-tagged fields of a SEQUENCE's DER, by number; the values are DER themselves."""
    return {tag & 0x1F: value for tag, value in split(split(sequence)[0][1])}


def inside(value):
    return split(value)[0][1]


def number(value):
    return int.from_bytes(inside(value), 'big', signed=True)


def method_data(value):
    """[(type, value)] of a SEQUENCE OF PA-DATA; a cookie is only known to be there: it is
    random."""
    found = []
    for _, element in split(inside(value)):
        parts = {tag & 0x1F: content for tag, content in split(element)}
        kind = number(parts[1])
        found.append((kind, b'' if kind == PA_FX_COOKIE else inside(parts[2])))
    return found


@dataclasses.dataclass
class Error:
    """A KRB-ERROR, without its times."""
    code: int
    text: str
    client: bytes
    service: bytes
    realm: bytes
    data: list    # METHOD-DATA
    fields: list  # the numbers of all fields that are there


@dataclasses.dataclass
class Reply:
    """An AS-REP: what a client sees before and after it has decrypted it, without keys and
    times."""
    client: bytes
    realm: bytes
    padata: list
    enctype: int
    kvno: int
    ticket_enctype: int  # as the ticket says
    opened: bool        # the password's key opens it
    session_enctype: int = 0
    nonce: int = 0
    ticket_flags: bytes = b''
    current: bool = False  # authenticated within a minute of the request
    lifetime: int = 0      # seconds from the request's time to the ticket's end; not from the KDC's
                           # time, whose second may be another one
    service: bytes = b''


def read_reply(data, request):
    tag = data[0] & 0x1F
    if tag == KRB_ERROR:
        return _error(fields(split(data)[0][1]))
    return _reply(fields(split(data)[0][1]), request)


def _error(parts):
    return Error(number(parts[6]), inside(parts[11]).decode() if 11 in parts else '',
                 parts.get(8, b''), parts.get(10, b''), parts.get(9, b''),
                 method_data(inside(parts[12])) if 12 in parts else [], sorted(parts))


def _reply(parts, request):
    sealed = fields(parts[6])
    enctype = number(sealed[0])
    ticket = fields(inside(parts[5]))
    reply = Reply(parts[4], parts[3], method_data(parts[2]) if 2 in parts else [], enctype,
                  number(sealed[1]) if 1 in sealed else 0, number(fields(ticket[3])[0]), False)
    if enctype not in (17, 18):
        return reply
    salt = keys.principal_salt(f'{request.user}@{request.realm}')
    plain = keys.cts_open(keys.string_to_key(enctype, request.password, salt), USAGE_AS_REP,
                          inside(sealed[2]))
    if plain is None:
        return reply
    opened = fields(split(plain)[0][1])
    reply.opened = True
    reply.session_enctype = number(fields(opened[0])[0])
    reply.nonce, reply.ticket_flags, reply.service = number(opened[2]), opened[4], opened[10]
    reply.current = abs(_seconds(opened[5]) - request.now) < 60
    reply.lifetime = _seconds(opened[7]) - int(request.now)
    return reply


def _seconds(value):
    return calendar.timegm(time.strptime(inside(value).decode(), '%Y%m%d%H%M%SZ'))
