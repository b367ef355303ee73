# SPDX-License-Identifier: Apache-2.0
"""A login by certificate (RFC 4556), made by hand as a client makes it."""

import dataclasses
import hashlib
import subprocess
import time

import der

_AUTH_DATA = '1.3.6.1.5.2.3.1'  # id-pkinit-authData


@dataclasses.dataclass
class Request:
    """What a KDC-REQ-BODY says."""
    client: str  # with realm
    server: str
    nonce: int = 123456789

    def encode(self, when):
        realm = self.client.split('@')[1]
        return der.sequence(
            der.field(0, der.flags(0x40000010)), der.field(1, der.name(self.client)),
            der.field(2, der.text(realm)), der.field(3, der.name(self.server)),
            der.field(5, der.kerberos_time(when + 36000)), der.field(7, der.integer(self.nonce)),
            der.field(8, der.sequence(der.integer(18))))


def sign(authority, name, request, when=None):
    """(PA-PK-AS-REQ, KDC-REQ-BODY): NAME's certificate signs the request, at a time of his clock."""
    when = when or time.time()
    authority.identity(name)  # made if there is none
    body = request.encode(when)
    authenticator = der.sequence(
        der.field(0, der.integer(int(time.time() * 1e6) % 1000000)),
        der.field(1, der.kerberos_time(when)), der.field(2, der.integer(request.nonce)),
        der.field(3, der.octets(hashlib.sha1(body).digest())))
    pack = der.sequence(der.field(0, authenticator))
    signed = subprocess.run(
        ['openssl', 'cms', '-sign', '-binary', '-nodetach', '-outform', 'DER', '-nosmimecap',
         '-md', 'sha256', '-econtent_type', _AUTH_DATA, '-signer', authority.dir / f'{name}.pem',
         '-inkey', authority.dir / f'{name}.key'],
        input=pack, stdout=subprocess.PIPE, check=True).stdout
    return der.sequence(der.wrap(0x80, signed)), body
