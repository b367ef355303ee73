# SPDX-License-Identifier: Apache-2.0
"""Python's impacket: its own getTGT.py and getST.py, from PyPI in an environment of their own.

impacket asks port 88 by TCP and nothing else, so the KDC listens there too, on a loopback address
of its own. With a password it asks for RC4 and, refused, for enctypes 18 and 17 at once; one alone
it asks for when it is given the key (-aesKey), which is how its users log in with a keytab's key.

It reads an AS reply only if its encrypted part has the tag of EncASRepPart. MIT's KDC has always
written that of EncTGSRepPart (RFC 4120, 5.4.2 tells clients to accept both), so with it impacket's
logins end there, although the KDC has issued the ticket. What follows a login is tried with a TGT
of kinit's.
"""

import glob
import subprocess

import adapter
import client_lab as lab_module
import services

import mit

import keys  # of integration-tests/realm

VERSION = '0.13.1'
BIN = lab_module.FILES / 'impacket/bin'


class Impacket(adapter.Client):
    name = 'Python impacket'
    enctypes = (17, 18)
    transports = ('tcp',)
    fixed_port = 88
    cannot_read_reply = 'not in asn1Spec'
    why_no_enctype = 'impacket knows 17, 18 and 23'
    why_no_transport = 'impacket speaks TCP'
    wrong_password_says = 'KDC_ERR_PREAUTH_FAILED'
    why_not = {'armor': 'impacket knows no FAST',
               'change_password': 'changepasswd.py asks port 464 and no other'}

    def missing(self):
        found = subprocess.run([services.PYTHON, '-c', 'import ensurepip'],
                               stderr=subprocess.DEVNULL)
        return 'python3-venv' if found.returncode else ''

    def prepare(self):
        if (BIN / 'getTGT.py').exists():
            return
        subprocess.run([services.PYTHON, '-m', 'venv', BIN.parent], check=True)
        subprocess.run([BIN / 'pip', '-q', 'install', f'impacket=={VERSION}'], check=True)

    def version(self):
        return lab_module.run_stock([BIN / 'python', '-c', (
            'import importlib.metadata as m; '
            'print("impacket", m.version("impacket"))')]).text.strip()

    def call(self, case, program, identity, *flags, ccache='ccache'):
        config = case.lab.write_krb5_conf('impacket.conf', 'tcp', None, case.folder)
        done = case.run('/usr/bin/env', '-C', case.folder, BIN / 'python', BIN / program, *flags,
                        '-dc-ip', case.lab.impacket_address, identity,
                        env={'KRB5_CONFIG': config, 'KRB5CCNAME': case.folder / ccache})
        # It ends with 0 whatever happens: what it saved is what it got.
        done.ok = done.ok and 'Saving ticket in' in done.text
        return done

    def key(self, case, password):
        salt = keys.principal_salt(case.principal)
        return ['-aesKey', keys.string_to_key(case.enctype, password, salt).hex()]

    def tgt(self, case, password):
        """By password where impacket then uses this enctype, else by the password's key."""
        if case.enctype == 18:
            return self.call(case, 'getTGT.py', f'{case.realm}/{case.user}:{password}')
        return self.call(case, 'getTGT.py', f'{case.realm}/{case.user}', *self.key(case, password))

    def login(self, case):
        done = self.tgt(case, case.password)
        if done.ok:
            (case.folder / f'{case.user}.ccache').rename(case.folder / 'ccache')
        else:
            mit.Mit().login(case)
        return done

    def wrong_password(self, case):
        return self.tgt(case, case.password + ' no')

    def service_ticket(self, case):
        return self.call(case, 'getST.py', f'{case.realm}/{case.user}', '-k', '-no-pass', '-spn',
                         case.service)

    def accepted(self, case):
        found = glob.glob(str(case.folder / f'{case.user}@host*.ccache'))
        if not found:
            return lab_module.Answer(False, 'getST.py left no cache')
        return services.accept_ccache(case, found[0])

    def renew(self, case):
        return self.call(case, 'getST.py', f'{case.realm}/{case.user}', '-k', '-no-pass', '-renew',
                         '-spn', f'krbtgt/{case.realm}')

    def keytab_login(self, case):
        done = self.call(case, 'getTGT.py', f'{case.realm}/{case.user}',
                         *self.key(case, case.password))
        (case.folder / f'{case.user}.ccache').unlink(missing_ok=True)
        return done
