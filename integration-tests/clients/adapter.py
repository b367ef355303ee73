# SPDX-License-Identifier: Apache-2.0
"""What the matrix asks of every client: one class per client, one method per thing to do.

A method returns a Answer: whether the client says that it succeeded, and its words. A method
that returns None means that this client cannot do it at all; `why_not` holds the reason, for the
matrix. Methods are called in the order of STEPS in one folder, so that what login() left (a
credential cache) is there for service_ticket() and renew().
"""

import json

import client_lab as lab_module
import services

STEPS = ('login', 'wrong_password', 'service_ticket', 'accepted', 'renew', 'keytab_login', 'armor',
         'change_password')


class Client:
    name = ''
    enctypes = (17, 18, 19, 20)
    transports = lab_module.TRANSPORTS
    fixed_port = 0        # the only port that it asks, if it can ask no other
    cannot_read_reply = ''  # part of its message when an AS reply came, but was not understood
    why_not = {}          # step: reason
    why_no_enctype = ''   # for enctypes that are missing above
    why_no_transport = ''
    wrong_password_says = ''  # part of its own message for a wrong password

    def version(self):
        raise NotImplementedError

    def missing(self):
        """What has to be installed before it can run; empty when it can."""
        return ''

    def prepare(self):
        """Compiles what has to be compiled; once, before the first case."""

    def login(self, case):
        raise NotImplementedError

    def wrong_password(self, case):
        """Must fail; the matrix judges that."""
        raise NotImplementedError

    def service_ticket(self, case):
        raise NotImplementedError

    def accepted(self, case):
        """A stock service accepts what the client presents: what is in its cache."""
        return services.accept_ccache(case, case.folder / 'ccache')

    def renew(self, case):
        return None

    def keytab_login(self, case):
        return None

    def armor(self, case):
        return None

    def change_password(self, case, new):
        return None


class ProgramClient(Client):
    """A client library in another language, behind a small program of ours. The program is given

        COMMAND realm user password service keytab ccache port transport enctype...

    as a JSON object on stdin and prints one JSON object as its last line:
    {"ok": true, "text": "...", "token": "base64 of a GSS token"}.
    """

    def command(self, case):
        """argv and environment of the program."""
        raise NotImplementedError

    def ask(self, step, case, **more):
        argv, env = self.command(case)
        order = {'step': step, 'realm': case.realm, 'user': case.user, 'password': case.password,
                 'service': case.service, 'keytab': str(case.keytab), 'port': case.port,
                 'ccache': str(case.folder / 'ccache'), 'transport': case.transport,
                 'enctype': case.enctype, 'folder': str(case.folder), **more}
        done = case.run(*argv, stdin=json.dumps(order), env=env)
        lines = done.text.strip().splitlines()
        try:
            said = json.loads(lines[-1])
            return lab_module.Answer(said['ok'], said.get('text', ''), said.get('token', ''))
        except (IndexError, KeyError, ValueError):
            return lab_module.Answer(False, f'the program of {self.name} broke:\n{done.text}')

    def login(self, case):
        return self.ask('login', case)

    def wrong_password(self, case):
        return self.ask('login', case, password=case.password + ' no')

    def service_ticket(self, case):
        return self.ask('service_ticket', case)

    def accepted(self, case):
        answer = self.ask('service_ticket', case)
        return services.accept_token(case, answer.token) if answer.token else answer

    def renew(self, case):
        return None if 'renew' in self.why_not else self.ask('renew', case)

    def keytab_login(self, case):
        return None if 'keytab_login' in self.why_not else self.ask('keytab_login', case)
