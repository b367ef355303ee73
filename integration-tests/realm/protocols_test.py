# SPDX-License-Identifier: Apache-2.0
"""Stock clients' logins where every part is computed in rounds, and where every part is garbled: what
users and attackers see is the same."""

import json
import pathlib
import socket
import sys

import pytest

import config_files
import daemon
import realm as realm_module
import udp_relay

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'intruder'))

import der  # noqa: E402

SERVICE = 'host/www.example.com'    # a key of its own, so its tickets are the KDC's work
PROTECTED = 'nfs/www.example.com'   # a key of 18 on shares
WRONG = 'Password incorrect'
REVOKED = 'credentials have been revoked'
AS_REQ, KRB_ERROR = 0x6a, 0x7e      # the first byte of a message
SVC_UNAVAILABLE = 29


@pytest.fixture(params=['replicated', 'garbled'], scope='module')
def live(request, tmp_path_factory):
    options = realm_module.Options(protocol=request.param,
                                   extra_database={'mpc_protect': PROTECTED})
    with realm_module.Realm(tmp_path_factory.mktemp(request.param) / 'realm', options) as made:
        made.create()
        made.add_service(SERVICE)
        made.kadmin_local(f'addprinc -randkey -e aes256-cts:normal {PROTECTED}')
        yield made
        expect_computed_as_forced(made)


def expect_computed_as_forced(live):
    other = {'garbled': 'replicated', 'replicated': 'garbled'}[live.options.protocol]
    for status in live.server_status():
        assert status['protocol'] == live.options.protocol
        assert int(status[f'{live.options.protocol}_batches']) > 0
        assert int(status[f'{other}_batches']) == 0


def stock(live, enctype=None):
    """The environment of a client that knows stock types, or one of them, alone."""
    known = enctype or ' '.join(config_files.STOCK_ENCTYPES)
    path = config_files.replace(live.dir / 'krb5.conf', 'aes256-gcm aes128-gcm DEFAULT', known,
                                into=live.dir / f'krb5-{enctype or "stock"}.conf')
    return {'KRB5_CONFIG': str(path)}


@pytest.mark.parametrize('enctype', config_files.STOCK_ENCTYPES)
def test_login_and_tickets(live, user, enctype):
    name, password = user
    # The session key's type is the client's business: all of them are of 18 here.
    env = stock(live, f'{enctype} aes256-cts-hmac-sha1-96')
    live.kadmin_local(f'cpw -e {enctype}:normal -pw other {name}')
    live.kinit(name, 'other', '-r', '1d', env=env)
    for service in (SERVICE, PROTECTED):
        live.kvno(service, env=env)
    live.run('kinit', '-R', env=env)
    assert WRONG in live.kinit(name, password, check=False, env=env).stdout


def test_guesses_lock_a_user_out(live, user):
    name, password = user
    env = stock(live)
    live.kadmin_local('addpol -maxfailure 2 -failurecountinterval 1h -lockoutduration 1h lockout')
    live.kadmin_local(f'modprinc -policy lockout {name}')
    for _ in range(2):
        assert WRONG in live.kinit(name, 'no', check=False, env=env).stdout
    assert live.failed_attempts(name) == 2
    assert REVOKED in live.kinit(name, password, check=False, env=env).stdout
    live.kadmin_local(f'modprinc -unlock {name}')
    live.kinit(name, password, env=env)
    assert live.failed_attempts(name) == 0


@pytest.fixture
def second_kdc(live):
    """The port of another krb5kdc on the same database and the same servers, with a certificate of
    its own."""
    port = daemon.free_ports(1)[0]
    config_files.mpc_ca('issue', live.dir / 'ca', '--realm', live.name, '--role', 'kdc', '--name',
                        'second')
    profile = config_files.replace(live.kdc_dir / 'kdc.conf', f':{live.ports.kdc}', f':{port}',
                                   into=live.kdc_dir / 'kdc-second.conf')
    config_files.replace(profile, 'kdc-kdc.', 'kdc-second.')
    second = daemon.Daemon('second-kdc', [config_files.krb5_program('krb5kdc'), '-n'],
                           {**live.env, 'KRB5_KDC_PROFILE': str(profile)}, live.run_dir,
                           live.log_dir)
    second.start()
    assert daemon.wait_until(lambda: second.listens_on(port), 20), second.log_tail()
    yield port
    second.stop()


def ask(port, request):
    with socket.socket(type=socket.SOCK_DGRAM) as asking:
        asking.settimeout(20)
        asking.sendto(request, ('127.0.0.1', port))
        return asking.recv(1 << 16)


def error_code(reply):
    assert reply[0] == KRB_ERROR, 'it is no error'
    fields = dict(der.elements(der.elements(der.elements(reply)[0][1])[0][1]))
    return der.elements(fields[0xA6])[0][1][-1]


def replays(live):
    """How often each server's audit log says so."""
    return [sum(job['verdict'] == 'REPLAY' for line in log.read_text().splitlines()
                for job in json.loads(line).get('jobs', ()))
            for log in sorted(live.log_dir.glob('p?-audit.jsonl'))]


def test_a_login_that_is_sent_again_to_another_kdc(live, user, second_kdc):
    """The KDC that answered it has it in its cache; the other one asks the servers, and they know."""
    name, password = user
    env = stock(live)
    with udp_relay.UdpRelay(live.ports.kdc) as relay:
        through = config_files.replace(
            live.dir / 'krb5-stock.conf', f'127.0.0.1:{live.ports.kdc}', f'127.0.0.1:{relay.port}',
            into=live.dir / 'krb5-relay.conf')
        live.kinit(name, password, env={'KRB5_CONFIG': str(through)})
    login = [datagram for datagram in relay.datagrams if datagram[0] == AS_REQ][-1]
    before = replays(live)
    for _ in range(2):
        assert error_code(ask(second_kdc, login)) == SVC_UNAVAILABLE
    assert replays(live) == [count + 2 for count in before]
    assert live.failed_attempts(name) == 0
    elsewhere = config_files.replace(
        live.dir / 'krb5-stock.conf', f'127.0.0.1:{live.ports.kdc}', f'127.0.0.1:{second_kdc}',
        into=live.dir / 'krb5-second.conf')
    live.kinit(name, password, env={'KRB5_CONFIG': str(elsewhere)})
    live.kinit(name, password, env=env)
