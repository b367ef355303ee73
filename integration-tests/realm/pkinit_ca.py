# SPDX-License-Identifier: Apache-2.0
"""Certificates for PKINIT (RFC 4556), and what krb5.conf and kdc.conf say about them.

    authority = pkinit_ca.Authority(folder, 'EXAMPLE.COM')
    live = realm.Realm(folder, realm.Options(extra_realm=authority.kdc_relations(),
                                             extra_libdefaults=authority.client_relations()))
    live.kinit(..., '-X', authority.identity('alice'))

An authority is a folder:

    ca.pem  ca.key         signs the others; what `pkinit_anchors` names
    kdc.pem  kdc.key       krb5kdc's: id-pkinit-KPKdc, for krbtgt/REALM@REALM
    NAME.pem  NAME.key     a client's: id-pkinit-KPClientAuth, for NAME@REALM
"""

import pathlib
import subprocess

_DAYS = '30'
_SAN = '1.3.6.1.5.2.2'         # id-pkinit-san: a principal's name, KRB5PrincipalName
_KDC_USE = '1.3.6.1.5.2.3.5'   # id-pkinit-KPKdc
_CLIENT_USE = '1.3.6.1.5.2.3.4'  # id-pkinit-KPClientAuth
_NT_PRINCIPAL, _NT_SRV_INST = 1, 2

# What openssl(1) makes the extensions of. KRB5PrincipalName ::= SEQUENCE {
#   realm [0] GeneralString, principalName [1] SEQUENCE {
#     name-type [0] INTEGER, name-string [1] SEQUENCE OF GeneralString } }
_EXTENSIONS = '''[extensions]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature, keyEncipherment, keyAgreement
extendedKeyUsage = {use}
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
subjectAltName = otherName:{san};SEQUENCE:whose
[whose]
realm = EXPLICIT:0, GeneralString:{realm}
name = EXPLICIT:1, SEQUENCE:name
[name]
type = EXPLICIT:0, INTEGER:{name_type}
components = EXPLICIT:1, SEQUENCE:components
[components]
{components}
'''


def _openssl(*arguments):
    done = subprocess.run(['openssl', *map(str, arguments)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8')
    if done.returncode:
        raise RuntimeError(f'openssl {arguments[0]}: {done.stdout}')


class Authority:
    """Makes the folder, its own certificate and krb5kdc's; clients' when they are asked for."""

    def __init__(self, folder, realm):
        self.dir = pathlib.Path(folder)
        self.realm = realm
        self.dir.mkdir(parents=True, exist_ok=True)
        self.anchor = self.dir / 'ca.pem'
        if not self.anchor.exists():
            _openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', _DAYS,
                     '-subj', '/CN=pkinit test authority', '-keyout', self.dir / 'ca.key',
                     '-out', self.anchor)
            self.issue('kdc', ['krbtgt', realm], _KDC_USE, _NT_SRV_INST)

    def issue(self, name, components, use=_CLIENT_USE, name_type=_NT_PRINCIPAL):
        """A certificate for the principal of these components, as NAME.pem and NAME.key."""
        request, extensions = self.dir / f'{name}.req', self.dir / f'{name}.ext'
        extensions.write_text(_EXTENSIONS.format(
            use=use, san=_SAN, realm=self.realm, name_type=name_type,
            components='\n'.join(f'c{i} = GeneralString:{component}'
                                 for i, component in enumerate(components))))
        _openssl('req', '-new', '-newkey', 'rsa:2048', '-nodes', '-subj', f'/CN={name}',
                 '-keyout', self.dir / f'{name}.key', '-out', request)
        _openssl('x509', '-req', '-in', request, '-CA', self.anchor, '-CAkey', self.dir / 'ca.key',
                 '-CAcreateserial', '-days', _DAYS, '-extfile', extensions,
                 '-extensions', 'extensions', '-out', self.dir / f'{name}.pem')

    def identity(self, name):
        """kinit's `-X` argument by which NAME logs in with a certificate of this authority."""
        if not (self.dir / f'{name}.pem').exists():
            self.issue(name, name.split('/'))
        return f'X509_user_identity=FILE:{self.dir}/{name}.pem,{self.dir}/{name}.key'

    def kdc_relations(self):
        """For the realm's section of kdc.conf."""
        return {'pkinit_identity': f'FILE:{self.dir}/kdc.pem,{self.dir}/kdc.key',
                'pkinit_anchors': f'FILE:{self.anchor}'}

    def client_relations(self):
        """For krb5.conf's [libdefaults]."""
        return {'pkinit_anchors': f'FILE:{self.anchor}'}
