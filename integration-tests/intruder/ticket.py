# SPDX-License-Identifier: Apache-2.0
"""Tickets and credential caches, made by hand: an intruder needs no library's consent."""

import dataclasses
import os
import struct
import time

import der
import gcm
import keys

AES256_CTS = keys.AES256_CTS
FORWARDABLE, RENEWABLE, INITIAL, PRE_AUTHENT = 1 << 30, 1 << 23, 1 << 22, 1 << 21
ANONYMOUS = 1 << 15
TRANSIT_POLICY_CHECKED = 1 << 19
LOGIN_FLAGS = FORWARDABLE | RENEWABLE | INITIAL | PRE_AUTHENT


@dataclasses.dataclass
class Inside:
    """What a TGT says: all of it is the KDC's choice."""
    client: str  # with realm
    session_key: bytes = dataclasses.field(default_factory=lambda: os.urandom(32))
    flags: int = LOGIN_FLAGS
    auth: int = dataclasses.field(default_factory=lambda: int(time.time()))
    life: int = 10 * 3600
    renewable: int = 24 * 3600
    authdata: bytes = b''  # AuthorizationData (RFC 4120, 5.2.6)
    transited: str = ''

    @property
    def end(self):
        return self.auth + self.life

    @property
    def renew_till(self):
        return self.auth + self.renewable

    def encode(self):
        """EncTicketPart (RFC 4120, 5.3)."""
        key = der.sequence(der.field(0, der.integer(AES256_CTS)),
                           der.field(1, der.octets(self.session_key)))
        transited = der.sequence(der.field(0, der.integer(1)), der.field(1, der.octets(self.transited.encode())))
        return der.application(3, der.sequence(
            der.field(0, der.flags(self.flags)),
            der.field(1, key),
            der.field(2, der.text(self.client.split('@')[1])),
            der.field(3, der.name(self.client)),
            der.field(4, transited),
            der.field(5, der.kerberos_time(self.auth)),
            der.field(6, der.kerberos_time(self.auth)),
            der.field(7, der.kerberos_time(self.end)),
            der.field(8, der.kerberos_time(self.renew_till)),
            *([der.field(10, self.authdata)] if self.authdata else [])))


# Authentication indicators (RFC 8129), in a CAMMAC (RFC 7751) -------------------------------------

AD_IF_RELEVANT, AD_CAMMAC, AD_INDICATOR = 1, 96, 97
GMAC_256 = -24002


def _authdata(kind, data):
    """AuthorizationData of one element."""
    return der.sequence(
        der.sequence(der.field(0, der.integer(kind)), der.field(1, der.octets(data))))


def indicators(*names):
    return _authdata(AD_INDICATOR, der.sequence(*(der.wrap(0x0C, name.encode()) for name in names)))


def cammac(elements, kdc_mac, svc_mac, kvno=1):
    def verifier(mac):
        return der.sequence(der.field(1, der.integer(kvno)), der.field(3, der.sequence(
            der.field(0, der.integer(GMAC_256)), der.field(1, der.octets(mac)))))
    return _authdata(AD_IF_RELEVANT, _authdata(AD_CAMMAC, der.sequence(
        der.field(0, elements), der.field(1, verifier(kdc_mac)), der.field(2, verifier(svc_mac)))))


@dataclasses.dataclass
class Tgt:
    """A sealed TGT: the message that only the servers can open, and what the KDC knows of it."""
    inside: Inside
    message: bytes
    keystream: bytes  # of its ciphertext

    @property
    def header(self):
        return gcm.split(self.message)[1]

    def with_inside(self, inside):
        """Another inside under the same nonce, header, tag: what a known keystream gives."""
        nonce, header, _, tag = gcm.split(self.message)
        plain = gcm.ZERO_BLOCK + inside.encode()
        assert len(plain) <= len(self.keystream)
        return Tgt(inside, gcm.join(nonce, header, gcm.xor(plain, self.keystream), tag),
                   self.keystream)

    def with_header(self, header):
        nonce, _, ciphertext, tag = gcm.split(self.message)
        return dataclasses.replace(self, message=gcm.join(nonce, header, ciphertext, tag))

    def with_bit_flipped(self, index):
        """One bit of the ciphertext, counted in bytes from its start."""
        nonce, header, ciphertext, tag = gcm.split(self.message)
        changed = bytearray(ciphertext)
        changed[index] ^= 1
        return dataclasses.replace(self, message=gcm.join(nonce, header, bytes(changed), tag))


def encode_ticket(server, enctype, kvno, message):
    """Ticket (RFC 4120, 5.3) for a principal with realm."""
    encrypted = der.sequence(der.field(0, der.integer(enctype)), der.field(1, der.integer(kvno)),
                             der.field(2, der.octets(message)))
    return der.application(1, der.sequence(
        der.field(0, der.integer(5)),
        der.field(1, der.text(server.split('@')[1])),
        der.field(2, der.name(server)),
        der.field(3, encrypted)))


# Credential cache, file format 4 ------------------------------------------------------------------

def _counted(data):
    return struct.pack('>I', len(data)) + data


def _principal(principal):
    components, realm_name = principal.split('@')
    parts = components.split('/')
    return (struct.pack('>II', 1 if len(parts) == 1 else 2, len(parts))
            + b''.join(_counted(part.encode()) for part in [realm_name] + parts))


def write_ccache(path, tgt, server, enctype, kvno, found_as=None):
    """A cache with this one ticket for `server`: for kvno and kinit -R, or kadmin. A client library looks
    for a TGT by a name that its user's realm gives; it finds the ticket by `found_as` then."""
    inside = tgt.inside
    client = _principal(inside.client)
    credential = (
        client + _principal(found_as or server)
        + struct.pack('>H', AES256_CTS) + _counted(inside.session_key)
        + struct.pack('>IIII', inside.auth, inside.auth, inside.end, inside.renew_till)
        + struct.pack('>BI', 0, inside.flags) + struct.pack('>II', 0, 0)
        + _counted(encode_ticket(server, enctype, kvno, tgt.message)) + _counted(b''))
    path.write_bytes(b'\x05\x04' + struct.pack('>HHHII', 12, 1, 8, 0, 0) + client + credential)
