# SPDX-License-Identifier: Apache-2.0
"""Strangers who guess or send garbage, and the users whom they would like to keep out."""

import os
import re
import socket
import subprocess
import threading
import time

import pytest

import daemon
import datagrams
import realm as realm_module
import udp_relay

STRANGER = '127.0.0.2'
HOME = '127.0.0.1'      # where the tests' clients are
NEWCOMER = '127.0.0.3'
UNAVAILABLE = 'A service is not available'
KDC_REQUESTS = (b'\x6a', b'\x6c')
TOO_BIG, SVC_UNAVAILABLE, BAD_INTEGRITY, PREAUTH_FAILED = 52, 29, 31, 24

# Tokens come back too slowly for a test to win one by patience.
SLOW = {'principal_failures': '1/min burst 5', 'known_failures': '1/min burst 3',
        'source_failures': '1/min burst 5'}


@pytest.fixture(scope='module')
def live(tmp_path_factory):
    with realm_module.Realm(tmp_path_factory.mktemp('known') / 'realm',
                            realm_module.Options(quota=SLOW)) as made:
        yield made.create()


# ---- What a stranger sends ----

def with_wrong_preauth(as_req):
    """An AS-REQ whose encrypted timestamp is noise from its middle on."""
    start = as_req.index(b'\xa1\x03\x02\x01\x02\xa2') + 6  # padata of type 2; its value's length
    octets = as_req[start]
    if octets >= 0x80:
        octets, start = int.from_bytes(as_req[start + 1:start + 1 + octets - 0x80], 'big'), \
            start + octets - 0x80
    end = start + 1 + octets
    return as_req[:end - 20] + os.urandom(20) + as_req[end:]


def with_bad_ticket(tgs_req):
    """A TGS-REQ whose ticket's ciphertext ends in noise."""
    start = tgs_req.index(b'\x61\x82')
    end = start + 4 + int.from_bytes(tgs_req[start + 2:start + 4], 'big')
    return tgs_req[:end - 16] + os.urandom(16) + tgs_req[end:]


def recorded(live, run):
    """The longest request that a client sends: the one with a pre-auth."""
    with udp_relay.UdpRelay(live.ports.kdc) as relay:
        run(live.krb5_conf_through(relay.port))
        return max((sent for sent in relay.datagrams if sent[:1] in KDC_REQUESTS), key=len)


def as_req_of(live, name):
    return recorded(live, lambda env: live.kinit(name, 'wrong', check=False, env=env))


def error_code(reply):
    """Of a KRB-ERROR; 0 for anything else."""
    found = re.search(rb'\xa6\x03\x02\x01(.)', reply, re.DOTALL) if reply[:1] == b'\x7e' else None
    return found.group(1)[0] if found else 0


def ask_by_udp(live, request, source):
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        sock.bind((source, 0))
        sock.settimeout(20)
        sock.sendto(request, ('127.0.0.1', live.ports.kdc))
        return error_code(sock.recv(1 << 16))


def ask_by_tcp(live, request, source):
    with socket.create_connection(('127.0.0.1', live.ports.kdc), 20, (source, 0)) as sock:
        sock.sendall(len(request).to_bytes(4, 'big') + request)
        reply = sock.makefile('rb')
        return error_code(reply.read(int.from_bytes(reply.read(4), 'big')))


class Flood:
    """`with` it: guesses for a user by UDP and TCP, as a stranger and in the user's name."""

    PAUSE = 0.01

    def __init__(self, live, as_req):
        self._live, self._as_req = live, as_req
        self._ended = threading.Event()
        self.answers = {}
        self._threads = [threading.Thread(target=self._send, args=way, daemon=True) for way in (
            (ask_by_udp, STRANGER), (ask_by_udp, HOME), (ask_by_tcp, STRANGER))]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def seen(self, ask, source, code):
        return self.answers.get((ask, source, code), 0)

    def _send(self, ask, source):
        while not self._ended.wait(self.PAUSE):
            try:
                code = ask(self._live, with_wrong_preauth(self._as_req), source)
            except OSError:
                continue
            self.answers[ask, source, code] = self.answers.get((ask, source, code), 0) + 1


# ---- Tests ----

def test_guesses_keep_nobody_out_from_where_he_was_before(live, user):
    name, password = user
    as_req = as_req_of(live, name)
    live.kinit(name, password)
    trace = live.dir / 'trace'
    with Flood(live, as_req) as flood:
        assert daemon.wait_until(lambda: flood.seen(ask_by_tcp, STRANGER, SVC_UNAVAILABLE) > 5, 60)
        with udp_relay.UdpRelay(live.ports.kdc, NEWCOMER) as relay:
            newcomer = live.kinit(name, password, check=False,
                                  env=live.krb5_conf_through(relay.port))
        assert newcomer.returncode and UNAVAILABLE in newcomer.stdout, 'the control does not see'
        for _ in range(5):
            trace.unlink(missing_ok=True)
            began = time.monotonic()
            live.kinit(name, password, env={'KRB5_TRACE': str(trace)})
            assert time.monotonic() - began < 10
            assert 'Response too big for UDP, retry with TCP' in trace.read_text()
    assert flood.seen(ask_by_udp, STRANGER, SVC_UNAVAILABLE) > 5, 'TCP would not help a stranger'
    assert flood.seen(ask_by_udp, HOME, TOO_BIG) > 5
    assert flood.seen(ask_by_udp, HOME, SVC_UNAVAILABLE) == 0
    guessed = sum(count for (_, _, code), count in flood.answers.items() if code == PREAUTH_FAILED)
    assert guessed <= 5 + 2, 'the common share and no more'
    assert live.failed_attempts(name) <= 5 + 2 + 1


def test_somebody_elses_wrong_passwords_at_home_have_a_share_of_their_own_too(live, new_user):
    alice, bob = new_user(live), new_user(live)
    for name, password in (alice, bob):
        live.kinit(name, password)
    as_req = as_req_of(live, alice[0])
    codes = [ask_by_tcp(live, with_wrong_preauth(as_req), HOME) for _ in range(12)]
    assert codes.count(PREAUTH_FAILED) <= 5 + 3 + 1
    assert codes[-1] == SVC_UNAVAILABLE
    live.kinit(*bob)


def test_copies_of_an_armored_request_are_not_its_hosts(live, new_user):
    """A stranger sends on what he saw of a user who mistyped her password: by datagram in whose
    name he likes, by TCP from where he is, or from behind the same NAT."""
    alice, host = new_user(live), new_user(live)
    live.kinit(*host, ccache='armor')
    armored = ('-T', live.with_ccache('armor')['KRB5CCNAME'])
    live.kinit(*alice, *armored)
    seen = recorded(live, lambda env: live.kinit(alice[0], 'wrong', *armored, check=False, env=env))
    for ask, source in ((ask_by_udp, HOME), (ask_by_udp, STRANGER), (ask_by_tcp, STRANGER),
                        (ask_by_tcp, HOME)):
        codes = [ask(live, datagrams.with_more_padata(seen), source) for _ in range(12)]
        assert codes[-1] in (SVC_UNAVAILABLE, TOO_BIG), (source, codes)
        live.kinit(*alice, *armored)
    bare = live.kinit(*alice, check=False)
    assert bare.returncode and UNAVAILABLE in bare.stdout, 'the control does not see'


def test_garbage_tickets_are_refused_to_their_sender_alone(live, user):
    live.kinit(*user, ccache='tickets')
    live.add_service('host/garbage.example.com')
    tgs_req = recorded(live, lambda env: live.kvno(
        'host/garbage.example.com', ccache='tickets', env=env))
    by_udp = [ask_by_udp(live, with_bad_ticket(tgs_req), STRANGER) for _ in range(12)]
    assert by_udp[0] == BAD_INTEGRITY and by_udp[-1] == TOO_BIG, by_udp
    assert by_udp.count(BAD_INTEGRITY) <= 5 + 1
    by_tcp = [ask_by_tcp(live, with_bad_ticket(tgs_req), STRANGER) for _ in range(12)]
    assert by_tcp[0] == BAD_INTEGRITY and by_tcp[-1] == SVC_UNAVAILABLE, by_tcp
    assert by_tcp.count(BAD_INTEGRITY) <= 5 + 1
    # In the user's name, by UDP: his own requests go by TCP then.
    in_his_name = [ask_by_udp(live, with_bad_ticket(tgs_req), HOME) for _ in range(12)]
    assert in_his_name[-1] == TOO_BIG
    live.kinit(*user, ccache='again')
    trace = live.dir / 'trace-tgs'
    live.kvno('host/garbage.example.com', ccache='again', env={'KRB5_TRACE': str(trace)})
    assert 'Initiating TCP connection' in trace.read_text()


def test_a_host_is_known_wherever_it_is(live, new_user):
    alice, host = new_user(live), new_user(live)
    live.kinit(*host, ccache='armor')
    armored = ('-T', live.with_ccache('armor')['KRB5CCNAME'])
    live.kinit(*alice, *armored)
    as_req = as_req_of(live, alice[0])
    codes = [ask_by_tcp(live, with_wrong_preauth(as_req), STRANGER) for _ in range(8)]
    assert codes[-1] == SVC_UNAVAILABLE
    with udp_relay.UdpRelay(live.ports.kdc, NEWCOMER) as relay:
        through = live.krb5_conf_through(relay.port)
        live.kinit(*alice, *armored, env=through)
        bare = live.kinit(*alice, check=False, env=through)
    assert bare.returncode and UNAVAILABLE in bare.stdout, 'the control does not see'


@pytest.mark.skipif(not os.access('/usr/bin/kinit', os.X_OK), reason='krb5-user is not installed')
def test_debians_own_kinit_comes_by_tcp(live):
    name, password = 'debian', 'a first password'
    live.enroll(name, password, '--enctype', 'aes256-cts')
    config, trace = live.dir / 'debian.conf', live.dir / 'trace-debian'
    config.write_text(f'[libdefaults]\ndefault_realm = {live.name}\ndns_lookup_kdc = false\n'
                      f'[realms]\n{live.name} = {{\n kdc = 127.0.0.1:{live.ports.kdc}\n}}\n')

    def kinit():
        trace.unlink(missing_ok=True)
        done = subprocess.run(
            ['/usr/bin/kinit', '-c', live.dir / 'debian-ccache', name], input=password + '\n',
            env={'KRB5_CONFIG': str(config), 'KRB5_TRACE': str(trace)}, capture_output=True,
            encoding='utf-8', timeout=60)
        assert done.returncode == 0, done.stderr
        return trace.read_text()
    assert 'TCP' not in kinit()
    as_req = as_req_of(live, name)
    codes = [ask_by_tcp(live, with_wrong_preauth(as_req), STRANGER) for _ in range(8)]
    assert codes[-1] == SVC_UNAVAILABLE
    assert 'Response too big for UDP, retry with TCP' in kinit()
