# SPDX-License-Identifier: Apache-2.0
"""What an attack is, and the world in which it is tried."""

import dataclasses
import functools
import json

import config_files
import daemon
import intruder
import ticket
import wire

SERVICE = 'host/www.example.com'
STRICT, INDICATOR = 'host/strict.example.com', 'strong'  # it asks for the indicator
NOBODY = 'WELLKNOWN/ANONYMOUS'


@dataclasses.dataclass(frozen=True)
class Attack:
    """An attempt, what stops it, and the trace that it leaves.

    run(world) returns whether the intruder got what he wanted. `drops` names the defences
    (mutants/, by name) without which he does; 'Header' is the honest KDC's own check.
    `trace` is a text that is then in the audit logs of all three servers.
    """
    name: str
    run: object
    drops: tuple
    trace: str


ATTACKS = []


def attack(drops, trace):
    """Registers a function as an attack; its docstring says what the intruder wants."""
    def register(run):
        ATTACKS.append(Attack(run.__name__, run, tuple(drops.split()), trace))
        return run
    return register


class World:
    """A realm, the intruder in its KDC, his own account mallory, and alice and carol, whom he is after:
    alice logs in with a password, carol with a certificate. mallory has one, too."""

    def __init__(self, live):
        self.live = live
        for service in (SERVICE, STRICT, NOBODY):
            live.add_service(service)
        live.kadmin_local(f'setstr {STRICT} require_auth {INDICATOR}')
        passwords = {'alice': 'known to alice alone', 'mallory': 'a password of his own',
                     'carol': 'she has a certificate'}
        for name, password in passwords.items():
            live.enroll(name, password)
        self.alice, self.mallory, self.carol = (intruder.User(live, name, password)
                                                for name, password in passwords.items())
        live.admin('policy', 'carol', '--gate', 'pkinit')
        self.krbtgt = f'krbtgt/{live.name}@{live.name}'
        self.kadmin = f'kadmin/admin@{live.name}'
        self.intruder = intruder.Intruder(live)
        self.wire = wire
        self._attempts = 0

    # The control ---------------------------------------------------------------------------------

    @property
    def control_file(self):
        return self.live.dir / 'dropped-defences'

    def drop(self, defences):
        self.control_file.write_text(''.join(f'{name}\n' for name in defences))

    # An honest KDC -------------------------------------------------------------------------------

    def use_ticket(self, tgt, service=SERVICE):
        """Shows a TGT to the realm's honest krb5kdc. (whether it gives a service ticket, output)"""
        self._attempts += 1
        name = f'forged-{self._attempts}'
        ticket.write_ccache(self.live.dir / name, tgt, self.krbtgt, intruder.ENCTYPE,
                            intruder.KVNO)
        reply = self.live.kvno(service, ccache=name, check=False)
        return reply.returncode == 0, reply.stdout

    def ask_kadmind(self, kadmin_ticket, query):
        """Shows a ticket for kadmin/admin to the realm's honest kadmind; what kadmin prints."""
        self._attempts += 1
        name = f'forged-{self._attempts}'
        ticket.write_ccache(self.live.dir / name, kadmin_ticket, self.kadmin, intruder.ENCTYPE,
                            intruder.KVNO)
        said = self.live.run('kadmin', '-c', f'FILE:{self.live.dir / name}', '-q', query,
                             check=False).stdout
        self.intruder.read_database()  # a new password has new handles
        return said

    @functools.cached_property
    def other_kdc(self):
        """Another KDC of the realm, in which he is too: it has a certificate of its own."""
        config_files.mpc_ca('issue', self.live.dir / 'ca', '--realm', self.live.name, '--role',
                            'kdc', '--name', 'kdc-b')
        return intruder.Intruder(self.live, 'kdc-b')

    def restart_servers(self):
        for server in self.live.servers:
            server.stop()
        self.live.start_servers()
        self.intruder.servers.reconnect()
        if 'other_kdc' in self.__dict__:
            self.other_kdc.servers.reconnect()

    # Traces --------------------------------------------------------------------------------------

    def audit_lines(self):
        """Of each server: the text of its audit log."""
        return [(self.live.log_dir / f'p{party}-audit.jsonl').read_text() for party in range(3)]

    def wait_for_traces(self, before, text):
        """Whether all three logs have come to hold a line with the text."""
        def there():
            new = [after[len(old):] for old, after in zip(before, self.audit_lines())]
            return sum(any(text in json.dumps(json.loads(line), ensure_ascii=False)
                           for line in part.splitlines()) for part in new) == 3
        return daemon.wait_until(there, 5)
