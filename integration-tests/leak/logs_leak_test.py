# SPDX-License-Identifier: Apache-2.0
"""Nothing secret in any log, at the highest verbosity, whatever goes wrong.

One realm lives through what users and administrators do and through bad input, with every log and
trace on. Then all that its processes wrote is searched for every secret that can be known from
outside (secrets_of_realm.py). The controls: the searched logs do talk about the events, a planted
secret is found, and with GRPC_TRACE left in the environment the messages are in the log.
"""

import os
import signal
import socket

import pytest

import daemon
import logsearch
import loudrealm
import secrets_of_realm
import storefile
import traffic
import udp_relay

USER = 'quokka'
PASSWORDS = ['Treibhaus-4711-quokka', 'second Zwetschge 0815', 'third Kolibri 1848']
SERVICE = 'host/leak.example.com'
AS_REQ, KRB_ERROR = 0x6A, 0x7E  # first bytes of a datagram


@pytest.fixture(scope='module')
def life(tmp_path_factory):
    """(realm, secrets, recorded datagrams) after a busy life; its daemons still run."""
    with loudrealm.LoudRealm(tmp_path_factory.mktemp('loud') / 'realm') as live:
        live.create()
        with udp_relay.UdpRelay(live.ports.kdc) as recorder:
            _live(live, live.krb5_conf_through(recorder.port), recorder)
            datagrams = list(recorder.datagrams)
        stores = storefile.open_stores(live)
        secrets = secrets_of_realm.all_secrets(live, stores, USER, PASSWORDS, datagrams)
        yield live, secrets, datagrams


def _live(live, relay, recorder):
    live.add_service(SERVICE)
    live.enroll(USER, PASSWORDS[0])
    live.kinit(USER, PASSWORDS[0], '-r', '1d', env=relay)
    live.kvno(SERVICE, env=relay)
    live.run('kinit', '-R', env=relay)
    live.kinit(USER, 'a wrong password', env=relay, check=False)
    live.run('kpasswd', USER, stdin='\n'.join([PASSWORDS[0]] + [PASSWORDS[1]] * 2) + '\n',
             env={'KRB5CCNAME': 'FILE:/nonexistent'})
    live.kinit(USER, PASSWORDS[1], env=relay)
    live.admin('enroll', USER, '--replace', '--password-stdin', stdin=PASSWORDS[2] + '\n')
    live.kinit(USER, PASSWORDS[2], env=relay)
    _send_bad_input(live, recorder.datagrams)
    _live_through_an_outage(live, relay, recorder.datagrams)
    for server in live.servers:
        server.send_signal(signal.SIGHUP)
    live.admin('status')
    live.admin('doctor', check=False)


def _send_bad_input(live, datagrams):
    assert _ask_kdc(live, _altered_login(datagrams, 1))[0] == KRB_ERROR
    with socket.socket(type=socket.SOCK_DGRAM) as kdc:
        for datagram in (os.urandom(300), b'\x6a\x82\xff\xff'):
            kdc.sendto(datagram, ('127.0.0.1', live.ports.kdc))
    for port in live.ports.clients + live.ports.peers:
        with socket.create_connection(('127.0.0.1', port)) as stream:
            stream.sendall(b'\x16\x03\x01' + os.urandom(200))
    for arguments in (('enroll', f'{USER}@OTHER.REALM', '--password-stdin'),
                      ('policy', 'nobody-of-this-name', '--gate', 'none'),
                      ('enroll', USER, '--password-stdin')):
        assert live.admin(*arguments, stdin=PASSWORDS[0] + '\n', check=False).returncode
    assert live.kadmin_local(f'ktadd -k {live.dir}/stolen.keytab {USER}', check=False).returncode


def _altered_login(datagrams, bit):
    """A recorded AS-REQ with one bit of its pre-authentication flipped: the KDC has not seen it."""
    login = next(d for d in datagrams if d[0] == AS_REQ and list(traffic.sealed_messages(d)))
    message = next(traffic.sealed_messages(login))
    altered = bytearray(login)
    altered[login.index(message) + len(message) - 20] ^= bit
    return bytes(altered)


def _ask_kdc(live, datagram):
    with socket.socket(type=socket.SOCK_DGRAM) as kdc:
        kdc.settimeout(10)
        kdc.sendto(datagram, ('127.0.0.1', live.ports.kdc))
        return kdc.recv(1 << 16)


def _live_through_an_outage(live, relay, datagrams):
    live.servers[2].kill()
    assert _ask_kdc(live, _altered_login(datagrams, 2))[0] == KRB_ERROR  # kinit tries for 18 s
    assert live.admin('enroll', USER, '--replace', '--password-stdin', stdin=PASSWORDS[0] + '\n',
                      check=False).returncode
    live.servers[2].start()
    live.wait_for_servers()
    live.kinit(USER, PASSWORDS[2], env=relay)


def test_the_oracle_knows_what_to_look_for(life):
    """Without this, an empty finding could mean that the secrets were wrong."""
    names = {name for name, _ in life[1]}
    for part in ('password', 'base key', 'round key', 'H(', 'store key', 'TLS key',
                 'keystream of a ticket', 'keystream of the AS reply', 'plaintext of pre-auth',
                 'session key in a ticket', 'session key in the AS reply', "P0's share of krbtgt"):
        assert any(part in name for name in names), f'no {part} among the secrets'


def test_no_secret_in_any_log(life):
    live, secrets, _ = life
    assert logsearch.LogSearch(secrets).find_in_files(live.logs()) == {}
    assert not (live.log_dir / 'tls-session-keys.log').exists()


def test_no_message_in_any_log(life):
    """Messages are public here, but a log that has them has the shares in the answers, too."""
    live, _, datagrams = life
    messages = [('a message', traffic.sealed_text(message))
                for datagram in datagrams for message in traffic.sealed_messages(datagram)]
    assert logsearch.LogSearch(messages).find_in_files(live.logs()) == {}


def test_the_logs_that_were_searched_talk(life):
    live = life[0]
    for name in ('kdc.log', 'kadmind.log', 'p0.log', 'p1.log', 'p2.log', 'commands.log'):
        assert b'GRPC_TRACE is ignored' in (live.log_dir / name).read_bytes(), name
    for name, event in (('kdc.log', b'ISSUE: '), ('kdc.log', b'PREAUTH_FAILED'),
                        ('kdc.log', b'remote keys: '), ('krb5kdc.log', b'grpc epoll fd'),
                        ('kadmind-requests.log', b'chpw'), ('krb5-trace.log', USER.encode()),
                        ('p0.log', b'debug batch'), ('p0-audit.jsonl', b'StageKeys'),
                        ('commands.log', b'mpc-admin enroll')):
        assert event in (live.log_dir / name).read_bytes(), f'{event} in {name}'


@pytest.mark.parametrize('form', ['raw', 'hex'])
def test_a_planted_secret_is_found(life, tmp_path, form):
    live, secrets, _ = life
    search = logsearch.LogSearch(secrets)
    log = live.servers[0].log.read_bytes()
    for part in ('password', 'H(2)', 'store key of P1', 'keystream of a ticket', "P2's share of"):
        name, secret = next((n, s) for n, s in secrets if part in n)
        planted = secret if form == 'raw' else secret.hex(' ').encode()
        (tmp_path / 'log').write_bytes(log + b'debug: ' + planted + b'\n' + log)
        found = search.find_in_files([tmp_path / 'log'])
        assert found, f'{name} was planted and not found'


def test_grpc_trace_would_leak(life, tmp_path):
    """The control of the refusal: with the variable left in place the messages are in the log."""
    live = life[0]
    library = loudrealm.build_keep_environment(tmp_path)
    live.kdc.stop()
    live.kdc.env = {**live.env, 'LD_PRELOAD': str(library)}
    live.kdc.log = tmp_path / 'krb5kdc.log'
    live.kdc.start()
    assert daemon.wait_until(
        lambda: loudrealm.accepts_connections(live.ports.kdc), 30)
    with udp_relay.UdpRelay(live.ports.kdc) as recorder:
        live.kinit(USER, PASSWORDS[2], env=live.krb5_conf_through(recorder.port))
        messages = [('a message', traffic.sealed_text(message)) for datagram in recorder.datagrams
                    for message in traffic.sealed_messages(datagram)]
    assert logsearch.LogSearch(messages).find(live.kdc.log.read_bytes()) == ['a message']
