# SPDX-License-Identifier: Apache-2.0
"""How long a client waits for the KDC: logins through a relay that holds answers back.

The KDC behind the relay is MIT's own, which answers at once: what is measured is the client. A
login is two answers, error 25 and the reply, and each is held back. Clients wait as they do by
default.
"""

import copy
import dataclasses

import delay_relay
import judge

DELAYS = (50, 100, 150, 200, 300, 500, 1000, 2000, 5000)  # ms
ENCTYPE = 18
ATTEMPTS = 2  # a delay is passed if each of so many logins is
TITLE = '## How long clients wait for an answer'
ABOUT = """\
Written by `make clients CLIENTS=--patience`. Each answer of the KDC was held back for so long; a
login under 18 needs two. Behind the relay is MIT's own KDC, so that all the time is the client's to
wait. Tried: """


@dataclasses.dataclass
class Login:
    """One login through the relay."""
    delay: int     # ms
    passed: bool
    requests: int  # that the relay saw
    text: str = ''


@dataclasses.dataclass
class Patience:
    client: str
    transport: str
    logins: list = dataclasses.field(default_factory=list)  # ascending; the first without delay

    def _passed(self):
        failed = [login.delay for login in self.logins if not login.passed]
        return [login for login in self.logins if not failed or login.delay < min(failed)]

    @property
    def longest(self):
        """The largest delay with which every login passed, and none before failed; None: none."""
        passed = self._passed()
        return passed[-1].delay if passed else None

    @property
    def retries(self):
        """Requests at that delay beyond those of a login without."""
        at_longest = [login.requests for login in self._passed() if login.delay == self.longest]
        return max(at_longest) - self.logins[0].requests if at_longest else 0

    @property
    def asks_again_at(self):
        """The smallest delay with which it sent a request twice, or None."""
        return min((login.delay for login in self._passed()
                    if login.requests > self.logins[0].requests), default=None)

    @property
    def failure(self):
        return next((login for login in self.logins if not login.passed), None)


class Door:
    """A relay before a lab's KDC, and the lab as it is seen through it. A client that begins by UDP
    may go on by TCP, on the same port: some do when the answer is late."""

    def __init__(self, client, lab, transport):
        self.lab = copy.copy(lab)
        targets = dict(lab.ports) if transport == 'udp' else {'tcp': lab.ports['tcp']}
        if client.fixed_port:
            self.lab.impacket_address = lab.impacket_address.replace('127.88.', '127.89.')
            self.relay = delay_relay.DelayRelay(targets, self.lab.impacket_address,
                                                client.fixed_port)
        else:
            self.relay = delay_relay.DelayRelay(targets)

    def __enter__(self):
        self.relay.__enter__()
        self.lab.ports = {name: self.relay.port for name in self.lab.ports}
        return self

    def __exit__(self, *what):
        self.relay.__exit__(*what)


def measure(client, lab, transport, delays=DELAYS):
    """Logins with each delay until one fails."""
    found = Patience(client.name, transport)
    with Door(client, lab, transport) as door:
        folder = lab.dir / f'patience {client.name} {transport}'.replace(' ', '-')
        case = door.lab.case(folder, lab.add_user(), ENCTYPE, transport)
        for delay in (0, *delays):
            for _ in range(ATTEMPTS):
                found.logins.append(_login(client, case, door.relay, delay))
                if not found.logins[-1].passed:
                    return found
    return found


def _login(client, case, relay, delay):
    relay.delay = delay / 1000
    before, mark = relay.requests, case.lab.mark()
    answer = client.login(case)
    verdict, text = judge.judge(client, 'login', case, answer, mark)
    in_time = client.cannot_read_reply and client.cannot_read_reply in answer.text
    return Login(delay, verdict == judge.YES or bool(in_time), relay.requests - before, text)


# ---- MATRIX.md -----------------------------------------------------------------------------------

def section(found, versions):
    lines = [TITLE, '', ABOUT + ', '.join(str(delay) for delay in DELAYS) + ' ms.', '',
             '| client | transport | logs in with | requests sent again there '
             '| sends again from | beyond |', '|---' * 6 + '|']
    for one in found:
        again = f'{one.asks_again_at} ms' if one.asks_again_at else '-'
        failure = one.failure
        beyond = f'{failure.delay} ms: {_short(failure.text)}' if failure else 'not tried'
        longest = 'none' if one.longest is None else f'{one.longest} ms'
        lines.append(f'| {one.client} | {one.transport.upper()} | {longest} | {one.retries} '
                     f'| {again} | {beyond} |')
    lines += ['', 'Versions: ' + ', '.join(f'{name} ({version})'
                                           for name, version in versions.items()) + '.']
    return '\n'.join(lines) + '\n'


def _short(text, limit=90):
    text = text.replace('|', '/')
    return text if len(text) <= limit else text[:limit].rstrip() + '...'


def with_section(document, new):
    """The document with this section, its last, in place of an older one."""
    return document.split(TITLE)[0].rstrip() + ('\n\n' + new if new else '\n')


def section_in(document):
    return TITLE + document.split(TITLE)[1] if TITLE in document else ''
