# SPDX-License-Identifier: Apache-2.0
"""Requests of a stranger who claims to have a certificate (PKINIT), to whom stock krb5kdc answers nothing, and
nobody else meanwhile:

    nothing in it     where there should be content, a null pointer is followed: the KDC is gone
    slow keys         OpenSSL decodes keys before anything is verified: 2.4 s for 641 bytes, of 1 MB
    relative points   it copies a name for each place of a list: 2 s and 265 MB for 20 KB, of 1 MB

So it does in TLS with what a stranger shows, at the servers' ports."""

import socket
import ssl
import subprocess
import time

import pytest

import daemon
import pkinit_ca
import realm as realm_module
import slow_keys
from heavy_requests_test import error_of

PASSWORD = 'a password'
PREAUTH_FAILED, DH_PARAMETERS = 24, 65
AT_ONCE = 2  # seconds, and each took ten and more


@pytest.fixture(scope='module')
def live(tmp_path_factory):
    folder = tmp_path_factory.mktemp('slow-keys')
    authority = pkinit_ca.Authority(folder / 'pkinit', realm_module.Options().realm)
    options = realm_module.Options(extra_realm=authority.kdc_relations(),
                                   extra_libdefaults=authority.client_relations())
    with realm_module.Realm(folder / 'realm', options) as made:
        made.authority = authority
        made.create()
        made.add_service(slow_keys.ANONYMOUS)
        made.enroll('alice', PASSWORD)
        yield made


def answer_and_time(live, request):
    begin = time.monotonic()
    return error_of(live, request), time.monotonic() - begin


@pytest.mark.parametrize('keys', [[slow_keys.own_curve()] * 8, [slow_keys.compressed()] * 4000],
                         ids=['curves of their own', 'thousands of compressed points'])
def test_certificates(live, keys):
    request = slow_keys.login(live.name, 'alice', slow_keys.signed_data(keys))
    error, took = answer_and_time(live, request)
    assert error == PREAUTH_FAILED and took < AT_ONCE, f'{error} after {took:.1f} s'


@pytest.mark.parametrize('cms', [
    slow_keys.signed_data([slow_keys.own_curve(slow_keys.SM2_KEY)] * 16),
    slow_keys.open_data([slow_keys.own_curve()] * 16),
    slow_keys.signed_by(*slow_keys.relative_points(2500, 2500))],
    ids=['curves called SM2', 'certificates without an end', 'points relative to a name'])
def test_other_ways_to_slow_certificates(live, cms):
    request = slow_keys.login(live.name, 'alice', cms)
    error, took = answer_and_time(live, request)
    assert error == PREAUTH_FAILED and took < AT_ONCE, f'{error} after {took:.1f} s'


def test_a_datagram_keeps_nobody_waiting(live):
    live.kinit('alice', PASSWORD)
    request = slow_keys.login(live.name, 'alice', slow_keys.signed_data([slow_keys.own_curve()] * 40))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(request, ('127.0.0.1', live.ports.kdc))
    begin = time.monotonic()
    live.kinit('alice', PASSWORD)
    assert time.monotonic() - begin < 5 * AT_ONCE


@pytest.mark.parametrize('algorithm', [slow_keys.EC_KEY, slow_keys.SM2_KEY], ids=['any', 'SM2'])
def test_a_dh_value(live, algorithm):
    """Nobody's: what is no well-known group is refused, whatever else it is."""
    error, took = answer_and_time(live, slow_keys.anonymous_login(live.name, slow_keys.own_curve(algorithm)))
    assert error == DH_PARAMETERS and took < AT_ONCE / 4, f'{error} after {took:.1f} s'


def test_logins_by_certificate_go_on(live):
    """As far as the servers ask for no more: nobody's."""
    live.run('kinit', '-n', f'@{live.name}')


@pytest.fixture
def kdc(live):
    yield live.kdc
    if not live.kdc.is_running():
        live.kdc.start()
        assert daemon.wait_until(lambda: live.kdc.listens_on(live.ports.kdc), 10)


@pytest.mark.parametrize('cms', [slow_keys.signed_data(content=None), slow_keys.unsigned(None)],
                         ids=['signed data', 'what is not signed'])
def test_nothing_in_it(live, kdc, cms):
    request = slow_keys.login(live.name, 'alice', cms)
    with socket.create_connection(('127.0.0.1', live.ports.kdc), 10) as stream:
        stream.sendall(len(request).to_bytes(4, 'big') + request)
        answer = stream.makefile('rb').read()
    time.sleep(0.5)  # a process that ends takes a moment
    assert kdc.is_running() and answer
    assert error_of(live, request) == PREAUTH_FAILED


def time_of_a_stranger(live, chain, key):
    """Of the handshake of a certificate that the server does not know, at P0's port for clients."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(['h2'])
    context.load_cert_chain(chain, key)
    begin = time.monotonic()
    with socket.create_connection(('127.0.0.1', live.ports.clients[0]), 60) as plain:
        try:
            with context.wrap_socket(plain) as stream:
                stream.recv(1)
        except OSError:
            pass
    return time.monotonic() - begin


def test_at_a_servers_port_for_clients(live, tmp_path):
    own, key, chain = (tmp_path / name for name in ('own.pem', 'key.pem', 'chain.pem'))
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256',
                    '-nodes', '-subj', '/CN=stranger', '-keyout', key, '-out', own],
                   check=True, stderr=subprocess.DEVNULL)
    slow = ssl.DER_cert_to_PEM_cert(slow_keys.certificate(slow_keys.own_curve()))
    chain.write_text(own.read_text() + slow * 2)
    assert time_of_a_stranger(live, own, key) < AT_ONCE
    assert time_of_a_stranger(live, chain, key) < AT_ONCE
    live.kinit('alice', PASSWORD)
