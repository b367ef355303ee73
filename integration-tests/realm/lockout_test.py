# SPDX-License-Identifier: Apache-2.0
"""Guesses at one password that wait for the servers together, or that come with another proof which fails
otherwise: maxfailure holds for them too."""

import concurrent.futures
import contextlib
import signal
import socket

import pytest

import daemon
import datagrams
import pkinit_ca
import realm as realm_module
import udp_relay
from datagrams import der

MAX_FAILURES = 3
WRONG_GUESSES = 39
REVOKED = 'credentials have been revoked'
WRONG = 'Password incorrect'
PATIENCE = 15  # seconds, the KDC's for its servers, and within which all must have asked


@pytest.fixture(params=['db2', 'klmdb'])
def live(request, new_realm):
    return new_realm(wrapped=request.param, extra_database={'mpc_timeout': f'{PATIENCE}s'})


@contextlib.contextmanager
def paused(servers):
    """All three: one alone would be missed by the others before everybody has asked."""
    for server in servers:
        server.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for server in servers:
            server.send_signal(signal.SIGCONT)


class Burst:
    """kinits that run at the same time, each with a trace."""

    def __init__(self, live, name, pool):
        self._live, self._name, self._pool = live, name, pool
        self._traces = []
        self._replies = []

    def begin(self, password):
        number = len(self._traces)
        trace = self._live.dir / f'burst{number}.trace'
        self._traces.append(trace)
        self._replies.append(self._pool.submit(
            self._live.kinit, self._name, password, ccache=f'burst{number}', check=False,
            env={'KRB5_TRACE': str(trace)}))

    def all_sent(self):
        """Whether each has sent its pre-authentication."""
        return all(trace.exists() and 'Sending ' in
                   trace.read_text().partition('encrypted_timestamp (2)')[2]
                   for trace in self._traces)

    def replies(self):
        return [reply.result() for reply in self._replies]


def jobs(live):
    return [int(status['jobs']) for status in live.server_status()]


def lock_out(live, name):
    live.kadmin_local(f'addpol -maxfailure {MAX_FAILURES} -failurecountinterval 1h '
                      '-lockoutduration 1h lockout')
    live.kadmin_local(f'modprinc -policy lockout {name}')


def test_guesses_that_wait_together(live, new_user):
    """The right password comes last. Nothing that is said after the lockout tells that it is."""
    name, password = new_user(live)
    lock_out(live, name)
    live.kinit(name, password)
    before = jobs(live)
    with concurrent.futures.ThreadPoolExecutor(WRONG_GUESSES + 1) as pool:
        burst = Burst(live, name, pool)
        with paused(live.servers):
            for number in range(WRONG_GUESSES):
                burst.begin(f'guess {number}')
            assert daemon.wait_until(burst.all_sent, PATIENCE), 'the guesses do not reach the KDC'
            burst.begin(password)
            assert daemon.wait_until(burst.all_sent, PATIENCE)
        replies = burst.replies()

    judged = [after - start for after, start in zip(jobs(live), before)]
    assert judged == [WRONG_GUESSES + 1] * 3, 'they did not wait together: nothing was tested'
    said = [reply.stdout for reply in replies]
    assert all(reply.returncode for reply in replies), said
    assert REVOKED in said[-1], said[-1]
    assert sum(WRONG in text for text in said) == MAX_FAILURES, said
    assert sum(REVOKED in text for text in said) == len(said) - MAX_FAILURES, said
    assert live.failed_attempts(name) == MAX_FAILURES

    live.kadmin_local(f'modprinc -unlock {name}')
    live.kinit(name, password)


PK_AS_REQ = 16
FAILED, CLIENT_REVOKED = 24, 18  # what the KDC answers; it was 75, a name that does not match


@pytest.fixture
def with_certificates(make_realm, tmp_path):
    """The KDC believes certificates; `udp_preference_limit`: kinit's request goes through the relay."""
    authority = pkinit_ca.Authority(tmp_path / 'pkinit', realm_module.Options().realm)
    live = make_realm(
        extra_realm=authority.kdc_relations(),
        extra_libdefaults={**authority.client_relations(), 'udp_preference_limit': 32700},
        extra_server=f'[pkinit]\nanchors = "{authority.anchor}"\n')
    live.create()
    authority.issue('mallory', ['mallory'])
    live.enroll('mallory', 'a password of her own')
    live.admin('policy', 'mallory', '--gate', 'pkinit')
    with udp_relay.UdpRelay(live.ports.kdc) as relay:
        live.run('kinit', '-X', authority.identity('mallory'), 'mallory',
                 env=live.krb5_conf_through(relay.port))
        requests = [elements for elements in map(datagrams.elements_of, relay.datagrams)
                    if PK_AS_REQ in elements]
    return live, datagrams.padata(PK_AS_REQ, requests[-1][PK_AS_REQ])


def answer_to(live, request):
    with socket.create_connection(('127.0.0.1', live.ports.kdc), 20) as stream:
        stream.sendall(len(request).to_bytes(4, 'big') + request)
        [(_, error)] = der.elements(stream.makefile('rb').read()[4:])
    [(_, fields)] = der.elements(error)
    return int.from_bytes(dict(der.elements(fields))[0xa6][2:], 'big')


def test_a_certificate_beside_a_guess_hides_no_wrong_password(with_certificates, new_user):
    """Mallory sends her own proof along with guesses at the password of another: what the KDC said of that was
    all that it counted, so there was no end to her guesses."""
    live, proof = with_certificates
    name, password = new_user(live)
    lock_out(live, name)
    live.kinit(name, password)
    answers = [answer_to(live, datagrams.guess(live.name, name, proof))
               for _ in range(MAX_FAILURES + 2)]
    assert answers == [FAILED] * MAX_FAILURES + [CLIENT_REVOKED] * 2
    assert live.failed_attempts(name) == MAX_FAILURES
    assert REVOKED in live.kinit(name, password, check=False).stdout
