# SPDX-License-Identifier: Apache-2.0
"""The answer to a login is lost, and the client sends the same request again: it logs in."""

import socket
import threading
import time

import pytest

import config_files
import daemon
import udp_relay

AS_REP = b'\x6b'
# Seconds: a client asks again by TCP after one, and by UDP after four, if what was killed takes so
# long to start.
SOON = 6
REPLAYED = 'verified this request before'
UNAVAILABLE = 'A service is not available'


@pytest.fixture(scope='module')
def live(own_realm):
    return own_realm


@pytest.fixture(params=['gcm', 'stock'])
def anyone(request, live, new_user):
    """Somebody whose login is one job of the servers, and somebody whose login is two."""
    if request.param == 'gcm':
        return new_user(live)
    live.enroll('stock', 'a password', '--replace', '--enctype', config_files.STOCK_ENCTYPES[0])
    return 'stock', 'a password'


class LosingRelay(udp_relay.UdpRelay):
    """Loses the first `count` tickets on their way to the client, after `meanwhile`()."""

    def __init__(self, live, meanwhile=lambda relay: None, count=1):
        super().__init__(live.ports.kdc)
        self.lost = 0
        self._meanwhile, self._count = meanwhile, count
        self._listener = socket.create_server(('127.0.0.1', self.port))
        self._listener.settimeout(0.1)
        self._tcp = threading.Thread(target=self._serve_tcp, daemon=True)

    def __enter__(self):
        self._tcp.start()
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        self._tcp.join()
        self._listener.close()

    def answer(self, request, reply):
        if reply[:1] != AS_REP or self.lost == self._count:
            return reply
        self.lost += 1
        self._meanwhile(self)
        return None

    def _serve_tcp(self):
        while not self._ended.is_set():
            try:
                client, _ = self._listener.accept()
            except socket.timeout:
                continue
            with client:
                client.settimeout(10)
                try:
                    self._pass_on(client)
                except OSError:
                    pass  # krb5kdc is not there: the client sees the connection end

    def _pass_on(self, client):
        """One request and its reply, each with its length in front."""
        request = _message(client)
        with socket.create_connection(self._target, timeout=10) as onward:
            onward.sendall(request)
            reply = _message(onward)
        if self.answer(request[4:], reply[4:]) is not None:
            client.sendall(reply)


def _message(stream):
    data = b''
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], 'big'):
        more = stream.recv(1 << 16)
        if not more:
            raise OSError('the connection ended')
        data += more
    return data


def login_through(relay, live, user):
    """(kinit's reply, seconds that it took)"""
    with relay:
        began = time.monotonic()
        reply = live.kinit(*user, check=False, env=live.krb5_conf_through(relay.port))
        return reply, time.monotonic() - began


def assert_logs_in(live, user, meanwhile, patience=SOON):
    live.kinit(*user)  # streams are up, sessions open
    before = (live.log_dir / 'kdc.log').read_text().count(REPLAYED)
    relay = LosingRelay(live, meanwhile)
    reply, took = login_through(relay, live, user)
    assert reply.returncode == 0, reply.stdout
    assert relay.lost == 1, 'nothing was lost: nothing was tested'
    assert took < patience, f'it took {took:.1f} s'
    assert (live.log_dir / 'kdc.log').read_text().count(REPLAYED) == before
    assert live.failed_attempts(user[0]) == 0


def restart_kdc(live):
    live.kdc.kill()
    live.kdc.start()
    assert daemon.wait_until(lambda: live.kdc.listens_on(live.ports.kdc), SOON)


def test_with_krb5kdc(live, anyone):
    """kill -9, and the next process knows nothing of the request."""
    assert_logs_in(live, anyone, lambda relay: restart_kdc(live))


def test_with_krb5kdc_and_all_servers(live, anyone):
    """The servers judge what is on their disks, not what was in their memory."""
    def restart(_):
        for server in live.servers:
            server.kill()
            server.start()
        live.wait_for_servers()
        restart_kdc(live)
    assert_logs_in(live, anyone, restart, patience=20)


@pytest.fixture
def second_kdc(live):
    """Another krb5kdc of the same database and certificate, and its port."""
    port = daemon.free_ports(1)[0]
    conf = config_files.replace(live.kdc_dir / 'kdc.conf', str(live.ports.kdc), str(port),
                                into=live.kdc_dir / 'kdc-2.conf')
    other = daemon.Daemon('kdc2', live.kdc.argv, {**live.env, 'KRB5_KDC_PROFILE': str(conf)},
                          live.run_dir, live.log_dir)
    other.start()
    assert daemon.wait_until(lambda: other.listens_on(port), SOON)
    yield port
    other.stop()


def test_on_the_way_and_another_process_is_asked(live, anyone, second_kdc):
    """Two krb5kdc with one certificate: the one that is asked again has not seen the request."""
    assert_logs_in(live, anyone, lambda relay: relay.redirect(second_kdc))


def test_three_times(live, new_user):
    """A grant is worth two tickets. Then it is an outage for this request, and no wrong password."""
    user = new_user(live)
    live.kinit(*user)
    relay = LosingRelay(live, lambda _: restart_kdc(live), count=3)
    reply, _ = login_through(relay, live, user)
    assert reply.returncode, 'the third answer was one too many'
    assert relay.lost == 2
    assert UNAVAILABLE in reply.stdout, reply.stdout
    assert REPLAYED in (live.log_dir / 'kdc.log').read_text()
    assert live.failed_attempts(user[0]) == 0
    live.kinit(*user)
