# SPDX-License-Identifier: Apache-2.0
"""Somebody without any credential sends datagrams; users log in meanwhile."""

import contextlib
import functools
import json
import os
import socket
import time

import pytest

import daemon
import datagrams
import realm as realm_module
from datagrams import der

SERVICE = 'HTTP/www.example.com'   # protected
LOCAL = 'host/www.example.com'      # a KDC opens the ticket before it makes one for it
PASSWORD = 'a password'
SOON = 3  # seconds for a login; a client that gets no answer waits for one before it asks again
PER_SECOND = 40  # 4 were enough to stop a realm in which long work had no ring of its own


@pytest.fixture(scope='module')
def live(tmp_path_factory):
    options = realm_module.Options(extra_database={'mpc_protect': SERVICE})
    with realm_module.Realm(tmp_path_factory.mktemp('stranger') / 'realm', options) as made:
        made.create()
        made.enroll('alice', PASSWORD)
        made.add_service(LOCAL)
        made.kadmin_local(f'addprinc -randkey -e aes256-cts:normal {SERVICE}')
        yield made


FLOODS = {
    'tickets for a service': [(datagrams.garbage_ticket, LOCAL, SERVICE, 18, 16 << 10)],
    'tickets for kadmin': [(datagrams.garbage_ticket, LOCAL, 'kadmin/changepw', 18, 16 << 10)],
    'logins': [(datagrams.garbage_login, 'alice', 4000)],
    'what is computed': [(datagrams.garbage_ticket, LOCAL, SERVICE, 18, 2000),
                         (datagrams.garbage_login, 'alice', 3900)],
}


@pytest.mark.parametrize('what', FLOODS)
def test_users_log_in_while_a_stranger_floods(live, what):
    with datagrams.flood(live.ports.kdc, requests(live, what), PER_SECOND):
        for _ in range(10):
            live.kinit('alice', PASSWORD)


def test_a_flood_of_password_changes(live):
    """kadmind opens one "ticket" after the other and has no quota of sources. Users log in, and their
    passwords are changed."""
    change = functools.partial(datagrams.garbage_password_change, live.name)
    live.enroll('bob', PASSWORD)
    found_bad = (live.log_dir / 'p0-audit.jsonl').read_text().count('"verdict":"BAD_TAG"')
    with datagrams.flood(live.ports.kpasswd, [change], PER_SECOND) as sent:
        for _ in range(5):
            live.kinit('alice', PASSWORD)
        live.run('kpasswd', 'bob', stdin=f'{PASSWORD}\nanother password\nanother password\n')
    live.kinit('bob', 'another password')
    text = (live.log_dir / 'p0-audit.jsonl').read_text()
    assert text.count('"verdict":"BAD_TAG"') - found_bad > sent[0] / 4, 'the harness sees'


RESPONSE_TOO_BIG = 52  # KRB_ERR_RESPONSE_TOO_BIG

LONG = 60_000     # bytes: 3,750 blocks of keystream
AT_ONCE = 64
WITHOUT_THEM = 10_000  # blocks of a batch, ample


@contextlib.contextmanager
def held_back(port, request, count):
    """So many streams, each from an address of its own, that lack the last byte; all get it at the end."""
    with contextlib.ExitStack() as stack:
        streams = []
        for i in range(count):
            source = (f'127.0.9.{1 + i}', 0)
            stream = stack.enter_context(socket.create_connection(('127.0.0.1', port), 20, source))
            message = request()
            stream.sendall(len(message).to_bytes(4, 'big') + message[:-1])
            streams.append((stream, message[-1:]))
        yield
        for stream, last in streams:
            stream.sendall(last)
        for stream, _ in streams:
            stream.settimeout(20)
            assert stream.makefile('rb').read(5)[4:] == b'\x7e'


def test_long_garbage_tgts_are_not_decrypted(live):
    """Their tags are judged and nothing else is computed: all of it would be a batch for which everybody
    waits."""
    log = live.log_dir / 'p0-audit.jsonl'
    before = len(log.read_text().splitlines())
    long_tgt = functools.partial(datagrams.garbage_tgt, live.name, LOCAL, LONG)
    with held_back(live.ports.kdc, long_tgt, AT_ONCE):
        live.kinit('alice', PASSWORD)
    began = time.monotonic()
    live.kinit('alice', PASSWORD)
    assert time.monotonic() - began < SOON
    batches = [json.loads(line) for line in log.read_text().splitlines()[before:]]
    jobs = [job['verdict'] for batch in batches for job in batch.get('jobs', [])]
    assert max(batch.get('aes_blocks', 0) for batch in batches) < WITHOUT_THEM
    assert jobs.count('BAD_TAG') >= AT_ONCE


LONGER_THAN_A_DATAGRAM = 40_000  # a realm's name, which stands twice in the answer


def test_an_answer_that_fits_no_datagram_is_asked_for_again(live):
    """krb5kdc keeps the answer. Stock ended when it was to send it again, and said "by TCP" the first time."""
    request = datagrams.login_of_a_realm(live.name, 'R' * LONGER_THAN_A_DATAGRAM)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stream:
        stream.settimeout(SOON)
        for _ in range(2):
            stream.sendto(request, ('127.0.0.1', live.ports.kdc))
            [(tag, error)] = der.elements(stream.recv(1 << 16))
            assert tag == 0x7e
            [(_, fields)] = der.elements(error)
            assert dict(der.elements(fields))[0xa6] == der.integer(RESPONSE_TOO_BIG)
    assert live.kdc.is_running()
    live.kinit('alice', PASSWORD)


MANY = 47_000        # elements; twice so many are the longest message
LITTLE_TIME = 0.3    # seconds of krb5kdc's; it was more than a second


def seconds_of(process):
    return sum(map(int, (open(f'/proc/{process.pid()}/stat', encoding='ascii').read()
                         .rpartition(')')[2].split()[11:13]))) / os.sysconf('SC_CLK_TCK')


def test_many_preauths_behind_as_many_others_take_no_time(live):
    """Each was looked for from the beginning: some megabytes a second stopped krb5kdc."""
    request = datagrams.login_with_many(live.name, 'alice', MANY)
    before = seconds_of(live.kdc)
    with socket.create_connection(('127.0.0.1', live.ports.kdc), 60) as stream:
        stream.sendall(len(request).to_bytes(4, 'big') + request)
        assert stream.makefile('rb').read(5)[4:] == b'\x7e'
    assert seconds_of(live.kdc) - before < LITTLE_TIME


PLACES = 16     # for requests in progress in krb5kdc; each login waits for some hundred milliseconds
GARBAGE = 400   # a second: so many times that


@pytest.fixture(scope='module')
def narrow(tmp_path_factory):
    with realm_module.Realm(tmp_path_factory.mktemp('narrow') / 'realm') as made:
        def narrow_down():
            with open(made.dir / 'kdc/kdc.conf', 'a', encoding='ascii') as config:
                config.write(f'\n[kdcdefaults]\n    kdc_max_pending_requests = {PLACES}\n')
        made.create(narrow_down)
        for user in ('alice', 'bob'):
            made.enroll(user, PASSWORD)
        yield made


def test_garbage_for_one_user_leaves_places_for_others(narrow):
    """And her own requests by TCP are counted apart from what comes in datagrams in her name."""
    garbage = functools.partial(datagrams.garbage_login, narrow.name, 'alice', 0, -24002)
    by_tcp = narrow.dir / 'krb5-tcp.conf'
    by_tcp.write_text((narrow.dir / 'krb5.conf').read_text().replace(
        '[libdefaults]', '[libdefaults]\n    udp_preference_limit = 1', 1))
    log = narrow.log_dir / 'kdc.log'
    with datagrams.flood(narrow.ports.kdc, [garbage], GARBAGE, source='127.0.0.2'):
        assert daemon.wait_until(lambda: 'requests are waiting for remote keys; dropped'
                                 in log.read_text(), 10), 'the flood fills no places'
        for _ in range(5):
            for user, env in (('bob', {}), ('alice', {'KRB5_CONFIG': str(by_tcp)})):
                began = time.monotonic()
                narrow.kinit(user, PASSWORD, env=env)
                assert time.monotonic() - began < SOON
    assert 'of too many for alice@' in log.read_text()


def requests(live, what):
    return [functools.partial(make, live.name, *arguments)
            for make, *arguments in FLOODS[what]]


def test_the_flood_reaches_the_servers(live):
    """The harness sees: what is computed is sent on by the KDC, and found bad by the servers."""
    def found_bad():
        text = (live.log_dir / 'p0-audit.jsonl').read_text()
        return [text.count(f'"op":"{operation}"') for operation in ('OPEN_TICKET', 'LOGIN')
                ] + [text.count('"verdict":"BAD_TAG"')]
    before = found_bad()
    with datagrams.flood(live.ports.kdc, requests(live, 'what is computed'), PER_SECOND):
        daemon.wait_until(
            lambda: all(now > then for now, then in zip(found_bad(), before)), seconds=20)
