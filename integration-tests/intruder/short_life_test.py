# SPDX-License-Identifier: Apache-2.0
"""What an intruder took along dies by the servers' clocks, counted from the login it stems from;
and he himself is shut out. The realm's tickets live for seconds here: a test can wait for that."""

import concurrent.futures
import hashlib
import signal
import ssl
import time

import config_files
import daemon
import pytest
import ticket
from attack import World
from start_world import start

LIFE, SKEW = 8, 2  # seconds: [policy] max_renewable_life, clock_skew
POLICY = f'[policy]\nmax_renewable_life = "{LIFE}s"\nclock_skew = "{SKEW}s"\n'
DEAD = LIFE + SKEW + 1
# Inside what the honest KDC allows at all: the header's cap and five minutes for clocks.
INSIDE = {'life': 100, 'renewable': 250}


def _world(tmp_path_factory, name, **options):
    return World(start(tmp_path_factory.mktemp(name), extra_server=POLICY, **options))


@pytest.fixture(scope='module')
def short(tmp_path_factory):
    world = _world(tmp_path_factory, 'short')
    yield world
    world.live.stop()


@pytest.fixture(scope='module')
def short_control(tmp_path_factory):
    world = _world(tmp_path_factory, 'short-control',
                   server_program=config_files.mpc_program('mpc-server-control'))
    yield world
    world.live.stop()


def _sleep_until(moment):
    time.sleep(max(0, moment - time.time()))


def test_a_recorded_ticket_dies_with_its_origin(short, short_control):
    recorded = [world.intruder.login(
        world.alice, ticket.Inside(world.alice.principal, **INSIDE)).tgt
        for world in (short, short_control)]
    end = time.time() + DEAD
    assert short.use_ticket(recorded[0])[0], 'while it lives he can use it: he owned the KDC'
    _sleep_until(end)
    before = short.audit_lines()
    assert not short.use_ticket(recorded[0])[0]
    assert short.intruder.open_ticket(recorded[0].message)[1] is None
    assert short.wait_for_traces(before, 'beyond max_renewable_life')
    short_control.drop(['OriginAge'])
    assert short_control.use_ticket(recorded[1])[0], 'the control does not see'
    short_control.drop([])


def _renew(world, name):
    return world.live.run('kinit', '-R', check=False,
                          env=world.live.with_ccache(name)).returncode == 0


def _renewals(world, name, seconds):
    """Renews again and again at the honest KDC; how long that went well."""
    inside = ticket.Inside(world.mallory.principal, **INSIDE)
    tgt = world.intruder.login(world.mallory, inside).tgt
    ticket.write_ccache(world.live.dir / name, tgt, world.krbtgt, -24002, 1)
    begin = last = time.time()
    while time.time() < begin + seconds and _renew(world, name):
        last = time.time()
        time.sleep(0.7)
    return last - begin


def test_a_chain_of_renewals_ends_with_its_origin(short, short_control):
    before = short.audit_lines()
    short_control.drop(['Inheritance'])
    with concurrent.futures.ThreadPoolExecutor() as pool:
        lasted, control_lasted = pool.map(
            lambda world: _renewals(world, 'chain', DEAD + 3), (short, short_control))
    short_control.drop([])
    assert 1 < lasted <= DEAD
    assert short.wait_for_traces(before, 'beyond max_renewable_life')
    assert control_lasted > DEAD, 'the control does not see'


# Shut out ---------------------------------------------------------------------------------------

def _fingerprint(path):
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(
        path.read_text()[path.read_text().index('-----BEGIN'):])).hexdigest()


def _give_the_kdc_a_new_certificate(live):
    live.stop_kdc()
    config_files.mpc_ca('issue', live.dir / 'ca', '--realm', live.name, '--role', 'kdc', '--name',
                        'kdc2')
    path = live.kdc_dir / 'kdc.conf'
    path.write_text(path.read_text().replace('kdc-kdc.', 'kdc-kdc2.'))
    live.start_kdc()


def test_a_denied_certificate_is_of_no_use(short):
    """How to evict: deny the old certificate at each server, give the KDC a new one."""
    assert short.intruder.login(short.mallory, ticket.Inside(short.mallory.principal, **INSIDE))
    before = short.audit_lines()
    denied = _fingerprint(short.live.dir / 'ca/kdc-kdc.pem')
    for party, server in enumerate(short.live.servers):
        (short.live.dir / f'p{party}/denied').write_text(f'{denied}  # kdc, broken into\n')
        server.send_signal(signal.SIGHUP)
    streams = short.intruder.servers.streams
    assert daemon.wait_until(lambda: all(stream.error for stream in streams), 10)
    short.intruder.servers.reconnect()
    streams = short.intruder.servers.streams
    assert daemon.wait_until(lambda: all(stream.error for stream in streams), 10)
    assert short.wait_for_traces(before, 'is on this server\'s deny list')
    assert short.live.kinit('mallory', short.mallory.password, check=False).returncode
    _give_the_kdc_a_new_certificate(short.live)
    logged_in = short.live.kinit('alice', short.alice.password, '-l', '60s', check=False)
    assert logged_in.returncode == 0, logged_in.stdout


