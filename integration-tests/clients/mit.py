# SPDX-License-Identifier: Apache-2.0
"""MIT's own clients as Debian ships them: kinit, kvno, kpasswd, klist of krb5-user."""

import os

import adapter
import services

KINIT = '/usr/bin/kinit'


class Mit(adapter.Client):
    name = 'MIT'
    wrong_password_says = 'Password incorrect'

    def missing(self):
        return '' if os.path.exists(KINIT) else 'krb5-user'

    def version(self):
        return services.debian_version('krb5-user')

    def env(self, case, ccache='ccache'):
        return {'KRB5_CONFIG': case.lab.write_krb5_conf('krb5.conf', case.transport, [case.enctype],
                                                        case.folder),
                'KRB5CCNAME': f'FILE:{case.folder / ccache}'}

    def kinit(self, case, *flags, password='', ccache='ccache', env=None):
        return case.run(KINIT, *flags, case.principal, stdin=f'{password}\n',
                        env={**self.env(case, ccache), **(env or {})})

    def login(self, case):
        return self.kinit(case, '-r', '2d', password=case.password)

    def wrong_password(self, case):
        return self.kinit(case, password=case.password + ' no', ccache='none')

    def service_ticket(self, case):
        return case.run('/usr/bin/kvno', case.service, env=self.env(case))

    def renew(self, case):
        return case.run(KINIT, '-R', env=self.env(case))

    def keytab_login(self, case):
        return self.kinit(case, '-k', '-t', case.keytab, ccache='keytab-ccache')

    def armor(self, case):
        """Behind armor; the trace tells which mechanism proved the password inside of it."""
        trace = case.folder / 'trace'
        trace.unlink(missing_ok=True)
        done = self.kinit(case, '-T', f'FILE:{case.folder / "ccache"}', password=case.password,
                          ccache='armored', env={'KRB5_TRACE': trace})
        seen = trace.read_text() if trace.exists() else ''
        done.text += seen
        inside = 'Encrypted timestamp' if case.lab.protected else 'Encrypted challenge'
        done.ok = (done.ok and 'FAST armor key' in seen and 'Decoding FAST response' in seen
                   and mechanism(seen) == inside)
        return done

    def change_password(self, case, new):
        return case.run('/usr/bin/kpasswd', case.principal,
                        stdin=f'{case.password}\n{new}\n{new}\n',
                        env={**self.env(case), 'KRB5CCNAME': f'FILE:{case.folder / "none"}'})


def mechanism(trace):
    """The pre-authentication of the last request in a trace, by its name."""
    names = {'2': 'Encrypted timestamp', '138': 'Encrypted challenge'}
    last = ''
    for line in trace.splitlines():
        if 'Produced preauth for next request:' in line:
            for number, name in names.items():
                if f'({number})' in line:
                    last = name
    return last
