# SPDX-License-Identifier: Apache-2.0
"""An intruder who owns the KDC: its database with the stash, its certificate with the key, and all
that passes between it and the three servers. He has an account of his own in the realm, too.

He speaks to the servers with his own code and remembers everything.
"""

import dataclasses
import functools
import hashlib
import re
import time

import der
import gcm
import kdbfile
import keys
import ticket
import wire

USAGE_PREAUTH, USAGE_TICKET, USAGE_REPLY, USAGE_PAC, USAGE_CAMMAC = 1, 2, 3, 17, 64
ENCTYPE = keys.AES256_GCM
KVNO = 1


class User:
    """A user at a workstation: knows the password, makes pre-auths."""

    def __init__(self, live, name, password):
        self.name, self.password = name, password
        self.principal = f'{name}@{live.name}'
        base = keys.string_to_key(ENCTYPE, password, live.name + name)
        self.preauth_key = keys.usage_key(base, USAGE_PREAUTH)

    def preauth(self, when=None):
        """PA-ENC-TIMESTAMP (RFC 4120, 5.2.7.2), as the KDC sees it."""
        stamp = der.sequence(der.field(0, der.kerberos_time(when or time.time())),
                             der.field(1, der.integer(int(time.time() * 1e6) % 1000000)))
        return gcm.seal(self.preauth_key, stamp)

    @property
    def id(self):
        """How the servers call him in tickets' headers and audit lines."""
        return hashlib.sha256(b'mpc-kdc principal v1\0' + self.principal.encode()).digest()[:16]


@dataclasses.dataclass
class Recording:
    """One login as the KDC saw it."""
    job: object
    tgt: ticket.Tgt
    reply_message: bytes
    reply_keystream: bytes


class Intruder:
    def __init__(self, live, name='kdc'):
        self.live = live
        self.messages, self.admin_messages = wire.messages()
        ca = live.dir / 'ca'
        self.servers = wire.Servers(live, ca / f'kdc-{name}.pem', ca / f'kdc-{name}.key')
        self.read_database()

    def read_database(self):
        """Sets `handles`, {(principal, enctype): handle}, from the KDC's own disk."""
        dump = self.live.dump(self.live.kdc_dir / 'intruders.dump')
        tag = kdbfile.REMOTE_KEY_TAG
        self.handles = {(sealed.principal, sealed.enctype): plain[len(tag):]
                        for sealed, plain in kdbfile.recover_keys(dump, self.live.stash)
                        if kdbfile.is_remote_key(plain)}

    def handle(self, principal):
        return self.handles[principal, ENCTYPE]

    @property
    def krbtgt(self):
        return self.handle(f'krbtgt/{self.live.name}@{self.live.name}')

    @functools.cached_property
    def nobodys_key(self):
        """By which anonymous clients log in: its handle is in their entry (login_key.h)."""
        said = self.live.kadmin_local('getstrs WELLKNOWN/ANONYMOUS').stdout
        return bytes.fromhex(re.search('mpc_login: ([0-9a-f]{32})', said).group(1))

    # Jobs ----------------------------------------------------------------------------------------

    def job(self, operation, **parts):
        """A job of proto/kdc_key.proto with a fresh id."""
        return self.messages.Job(id=self.servers.new_id(), deadline_ms=3000,
                                 operation=self.messages.Operation.Value(f'OPERATION_{operation}'),
                                 **parts)

    def open_part(self, handle, usage, message):
        return self.messages.Open(handle=handle, usage=usage, message=message)

    def seal_part(self, handle, usage, size):
        return self.messages.Seal(handle=handle, usage=usage, max_plaintext=size)

    def mac_part(self, handle, usage, data):
        return self.messages.MakeMac(handle=handle, usage=usage, data=data)

    def login_job(self, client, preauth, preauth_of=None, sizes=(400, 200), service=None):
        """A whole AS exchange for `client`; `preauth` None leaves it out. For a TGT, or for a ticket
        of the service with this handle."""
        opens = [] if preauth is None else [
            self.open_part(self.handle((preauth_of or client).principal), USAGE_PREAUTH, preauth)]
        return self.job('LOGIN', client=self.handle(client.principal), opens=opens,
                        seals=[self.seal_part(service or self.krbtgt, USAGE_TICKET, sizes[0]),
                               self.seal_part(self.handle(client.principal), USAGE_REPLY,
                                              sizes[1])])

    def certificate_job(self, client, proof, service=None):
        """An AS exchange for `client`, who is said to be proved by (PA-PK-AS-REQ, KDC-REQ-BODY)."""
        certificate = self.messages.CertificateProof(pa_pk_as_req=proof[0], request_body=proof[1])
        return self.job('LOGIN', client=self.handle(client.principal), certificate=certificate,
                        seals=[self.seal_part(service or self.krbtgt, USAGE_TICKET, 400)])

    def open_ticket_job(self, message):
        return self.job('OPEN_TICKET',
                        opens=[self.open_part(self.krbtgt, USAGE_TICKET, message)])

    # What a KDC does with the answers ------------------------------------------------------------

    def finish(self, answers, seal, plaintext):
        """(message, keystream): encrypts under the keystream that came and gets the tag."""
        sealed = answers[0].seals[seal]
        keystream = wire.keystream_of_seal(answers, seal)
        ciphertext = gcm.xor(gcm.ZERO_BLOCK + plaintext, keystream)
        tags = self.servers.ask_tags(self.messages.TagRequest(
            job=answers[0].id, seal=seal, ciphertext=ciphertext))
        assert wire.all_ok(tags), [tag and tag.detail for tag in tags]
        return gcm.join(sealed.nonce, sealed.header, ciphertext, wire.tag_of(tags)), keystream

    def login(self, user, inside=None, preauth=None, service=None):
        """A login that succeeds. The KDC decides what is inside the ticket."""
        inside = inside or ticket.Inside(user.principal)
        job = self.login_job(user, preauth or user.preauth(), service=service)
        answers = self.servers.ask(job)
        assert wire.all_ok(answers), [(wire.verdict(a), a and a.detail) for a in answers]
        message, keystream = self.finish(answers, 0, inside.encode())
        reply, reply_keystream = self.finish(answers, 1, b'what the reply says to the client')
        return Recording(job, ticket.Tgt(inside, message, keystream), reply, reply_keystream)

    def login_as_nobody(self, inside, service=None):
        """An anonymous login: the servers seal a ticket on the KDC's word, whatever is inside."""
        answers = self.servers.ask(self.job(
            'LOGIN', client=self.nobodys_key,
            seals=[self.seal_part(service or self.krbtgt, USAGE_TICKET, 400)]))
        assert wire.all_ok(answers), [(wire.verdict(a), a and a.detail) for a in answers]
        message, keystream = self.finish(answers, 0, inside.encode())
        return ticket.Tgt(inside, message, keystream)

    def reissue(self, parent, inside, service=None):
        """A ticket made from a TGT: the KDC decides what is inside of it."""
        answers = self.servers.ask(self.job(
            'REISSUE_TICKET', opens=[self.open_part(self.krbtgt, USAGE_TICKET, parent.message)],
            seals=[self.seal_part(service or self.krbtgt, USAGE_TICKET, 400)]))
        assert wire.all_ok(answers), answers
        message, keystream = self.finish(answers, 0, inside.encode())
        return ticket.Tgt(inside, message, keystream)

    def checksum(self, handle, usage, data):
        answers = self.servers.ask(self.job('MAKE_CHECKSUM',
                                            make_macs=[self.mac_part(handle, usage, data)]))
        assert wire.all_ok(answers), [(wire.verdict(a), a and a.detail) for a in answers]
        return answers[0].make_macs[0].nonce + wire.mac_of(answers)

    def open_ticket(self, message):
        """(answers, plaintext or None): what an honest KDC asks when it sees this TGT."""
        answers = self.servers.ask(self.open_ticket_job(message))
        if not wire.all_ok(answers):
            return answers, None
        keystream = wire.keystream_of_open(answers)
        return answers, gcm.xor(gcm.split(message)[2][16:], keystream)

    @property
    def loot(self):
        """Every byte that he ever sent or received."""
        return b''.join(self.servers.transcript)

    def close(self):
        self.servers.close()
