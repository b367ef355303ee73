# SPDX-License-Identifier: Apache-2.0
"""Certificates that are renewed while logins go on: each of the five, and the authority. None is restarted,
none is told, and no login is lost."""

import contextlib
import re
import shutil
import ssl
import subprocess
import threading
import time
import urllib.request

import pytest

import config_files
import daemon
from long_tests import LONG

FIVE = ('peer-p0', 'peer-p1', 'peer-p2', 'kdc-kdc', 'admin-kadmin')


@contextlib.contextmanager
def logins(live, user, threads=2):
    """kinit in a loop beside what is done inside; all must have succeeded, and some in the end."""
    stop, failed, done = threading.Event(), [], [0] * threads

    def loop(number):
        while not stop.is_set():
            reply = live.kinit(*user, ccache=f'cc-{number}', check=False)
            done[number] += 1
            if reply.returncode:
                failed.append(f'{time.strftime("%H:%M:%S")} {reply.stdout}')
    running = [threading.Thread(target=loop, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    try:
        yield done
        before = sum(done)
        assert daemon.wait_until(lambda: sum(done) > before + threads, 30), 'logins hang'
    finally:
        stop.set()
        for thread in running:
            thread.join()
    assert failed == []


def certificate(text):
    """The first one in a text, as bytes; None where there is none."""
    pem = re.search('-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----', text, re.S)
    return ssl.PEM_cert_to_DER_cert(pem.group()) if pem else None


def shown(live, party):
    """The certificate that a server shows to who connects."""
    folder = live.dir / 'ca'
    done = subprocess.run(
        ['openssl', 's_client', '-connect', f'127.0.0.1:{live.ports.clients[party]}', '-cert',
         folder / 'admin-administrator.pem', '-key', folder / 'admin-administrator.key'],
        input='', capture_output=True, encoding='utf-8', timeout=20)
    return certificate(done.stdout)


def expires(path):
    """When the certificate ends, in microseconds since 1970."""
    end = subprocess.run(['openssl', 'x509', '-in', path, '-noout', '-enddate'], check=True,
                         capture_output=True, encoding='utf-8').stdout.strip().split('=')[1]
    return ssl.cert_time_to_seconds(end) * 1_000_000


def callers(live, name):
    """The end of a caller's certificate, as each server saw it."""
    return [next((caller['expires_us'] for caller in status.get('callers', [])
                  if caller['name'] == name), 0) for status in live.server_status()]


def renew(live, name, folder=None, days=500):
    """A new certificate and key, by mpc-ca, of `folder` or of the realm's own authority."""
    role, _, who = name.partition('-')
    hosts = ['--dns', 'localhost', '--ip', '127.0.0.1'] if role == 'peer' else []
    config_files.mpc_ca('issue', folder or live.dir / 'ca', '--realm', live.name, '--role', role, '--name',
                        who, *hosts, '--days', str(days), '--renew')


def assert_used(live, name, patience=30):
    """The new certificate is the one that others see. Nobody needs to be told: only waited for."""
    path = live.dir / 'ca' / f'{name}.pem'
    role, _, who = name.partition('-')
    if role == 'peer':
        party = int(who[1])
        assert daemon.wait_until(lambda: shown(live, party) == certificate(path.read_text()), patience, 0.5)
        assert live.server_status()[party]['certificate_expires_us'] == expires(path)
        return
    if role == 'admin':  # kadmind connects anew for each change
        live.kadmin('cpw -pw changed1 nobody', 'root/admin', 'r00t')
    assert daemon.wait_until(
        lambda: callers(live, f'{role}/{who}') == [expires(path)] * 3, patience, 0.5), callers(
            live, f'{role}/{who}')


def prepare(live):
    live.enroll('nobody', 'first')
    live.enroll('root/admin', 'r00t')
    live.enroll('alice', 'password')
    return 'alice', 'password'


def audited(live, party):
    return (live.log_dir / f'p{party}-audit.jsonl').read_text().count('"kind":"certificate"')


def test_a_server_and_the_kdc(new_realm):
    live = new_realm()
    user = prepare(live)
    with logins(live, user):
        renew(live, 'peer-p1')
        renew(live, 'kdc-kdc')
        assert_used(live, 'peer-p1')
        assert_used(live, 'kdc-kdc')
    assert [audited(live, party) for party in range(3)] == [0, 1, 0]
    # The lines between the servers use it, too, when they are made anew.
    live.restart_server(0)
    assert daemon.wait_until(live.servers_connected, 30, 0.2)


def test_half_a_renewal_is_told_and_not_used(new_realm):
    live = new_realm()
    user = prepare(live)
    good = live.dir / 'good'
    shutil.copytree(live.dir / 'ca', good)
    with logins(live, user):
        before = shown(live, 2)
        renew(live, 'peer-p2', good)
        shutil.copy2(good / 'peer-p2.key', live.dir / 'ca')

        def told():
            return 'does not belong' in live.server_status()[2].get('certificate_trouble', '')
        assert daemon.wait_until(told, 30, 0.5)
        time.sleep(6)  # gRPC looks every five seconds, and must find nothing new
        assert shown(live, 2) == before
        doctor = live.admin('doctor', check=False)
        assert doctor.returncode and 'does not use the certificate that is in its files' in doctor.stdout
        shutil.copy2(good / 'peer-p2.pem', live.dir / 'ca')
        assert_used(live, 'peer-p2')
    assert live.server_status()[2]['certificate_trouble'] == ''


@pytest.mark.parametrize('ca', [False, True], ids=['ca_stays', 'ca_is_written_anew'])
def test_a_server_restarts_amid_half_a_renewal_of_the_kdcs(new_realm, ca):
    """krb5kdc connects to it again with what it had. Who writes all three files, as whoever mounts a secret
    does, writes the authority too, and it is the same."""
    live = new_realm()
    user = prepare(live)
    live.kinit(*user)  # connects
    good = live.dir / 'good'
    shutil.copytree(live.dir / 'ca', good)
    renew(live, 'kdc-kdc', good)
    if ca:
        shutil.copy(good / 'ca.pem', live.dir / 'ca')
    shutil.copy2(good / 'kdc-kdc.key', live.dir / 'ca')
    live.restart_server(1)
    assert daemon.wait_until(lambda: live.kinit(*user, check=False).returncode == 0, 30, 0.5)
    shutil.copy2(good / 'kdc-kdc.pem', live.dir / 'ca')
    assert_used(live, 'kdc-kdc')


def test_thirty_days_before_the_end(make_realm):
    """Metrics and doctor, of each of the five: 29 days before, and not 31."""
    live = make_realm(metrics=tuple(daemon.free_ports(3)))
    # Of a caller the certificate that ends later counts for a minute, so each is later than the one before.
    live.create(lambda: [renew(live, name, days=20) for name in FIVE])
    live.kinit(*prepare(live))  # krb5kdc connects when it has something to ask
    for days, warned in ((29, {*FIVE}), (31, set())):
        for name in FIVE:
            renew(live, name, days=days)
        for name in FIVE:
            assert_used(live, name)
        doctor = live.admin('doctor', check=False).stdout
        names = {f'peer-p{party}': f'party {party}' for party in range(3)}
        names |= {'kdc-kdc': 'kdc/kdc', 'admin-kadmin': 'admin/kadmin'}
        said = {name for name in FIVE
                if re.search(f'warning *{names[name]}.* certificate is good until', doctor)}
        assert said == warned, doctor
        ends = {name: expires(live.dir / 'ca' / f'{name}.pem') for name in FIVE}
        # Servers write their metrics each second.
        assert daemon.wait_until(lambda: metric_ends(live) == ends, 10), (metric_ends(live), ends)


def metric_ends(live):
    """What the metrics say: when each certificate ends, in microseconds."""
    ends = {}
    for party, port in enumerate(live.options.metrics):
        with urllib.request.urlopen(f'http://127.0.0.1:{port}/metrics', timeout=10) as page:
            text = page.read().decode()
        own = re.search(r'mpckdc_state{[^}]*what="certificate_expires_seconds"} (\S+)', text)
        ends[f'peer-p{party}'] = round(float(own.group(1)) * 1_000_000)
        for name in ('kdc-kdc', 'admin-kadmin'):
            seen = re.search(r'mpckdc_caller_certificate_expires_seconds{[^}]*caller="%s"} (\S+)'
                             % name.replace('-', '/', 1), text)
            ends[name] = round(float(seen.group(1)) * 1_000_000)
    return ends


# What takes minutes ------------------------------------------------------------------------------------

def short_lived(live, name, seconds):
    """Instead of mpc-ca's, whose shortest is a day."""
    folder, work = live.dir / 'ca', live.dir / 'openssl'
    work.mkdir(exist_ok=True)
    (work / 'index').touch()
    role, _, who = name.partition('-')
    uses = 'serverAuth, clientAuth' if role == 'peer' else 'clientAuth'
    hosts = ', DNS:localhost, IP:127.0.0.1' if role == 'peer' else ''
    (work / 'cnf').write_text(f'''[ca]
default_ca = ours
[ours]
database = {work}/index
new_certs_dir = {work}
rand_serial = yes
unique_subject = no
default_md = sha256
policy = any
x509_extensions = leaf
[any]
commonName = supplied
[leaf]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = {uses}
subjectAltName = URI:spiffe://{live.name}/mpc/{role}/{who}{hosts}
''')
    end = time.strftime('%Y%m%d%H%M%SZ', time.gmtime(time.time() + seconds))
    base = folder / name

    def openssl(*arguments):
        subprocess.run(['openssl', *arguments], check=True, capture_output=True)
    openssl('req', '-new', '-key', f'{base}.key', '-subj', f'/CN={name}', '-out', work / 'csr')
    openssl('ca', '-batch', '-notext', '-config', work / 'cnf', '-cert', folder / 'ca.pem', '-keyfile',
            folder / 'ca.key', '-in', work / 'csr', '-enddate', end, '-out', f'{base}.pem')


@LONG
def test_the_old_ones_end(make_realm):
    """All five end after two minutes, renewed before one after the other; logins from before until after."""
    live = make_realm()
    start = time.time()
    live.create(lambda: [short_lived(live, name, 120) for name in FIVE])
    user = prepare(live)
    with logins(live, user):
        for name in FIVE:
            renew(live, name)
            assert_used(live, name)
        assert time.time() < start + 115, 'this machine is too slow for this test'
        time.sleep(start + 125 - time.time())
        live.admin('refresh')  # the servers connect to each other anew
        assert daemon.wait_until(live.servers_connected, 30, 0.2)


@LONG
def test_without_a_renewal_it_ends(make_realm):
    """So that the test above shows something: what happens to those who are not renewed."""
    live = make_realm()
    start = time.time()
    live.create(lambda: short_lived(live, 'kdc-kdc', 60))
    user = prepare(live)
    live.kinit(*user)
    time.sleep(start + 65 - time.time())
    assert 'A service is not available' in live.kinit(*user, check=False).stdout
    renew(live, 'kdc-kdc')
    assert daemon.wait_until(lambda: live.kinit(*user, check=False).returncode == 0, 30, 0.5)


@LONG
def test_another_authority(new_realm):
    """By overlap: all trust both, then the five are renewed by the new one, then the old one goes."""
    live = new_realm()
    user = prepare(live)
    ours, new = live.dir / 'ca', live.dir / 'new-ca'
    config_files.mpc_ca('init', new)
    with logins(live, user):
        both = (ours / 'ca.pem').read_text() + (new / 'ca.pem').read_text()
        put(ours / 'ca.pem', both)
        time.sleep(8)  # in production: until `mpc-admin doctor` finds nothing on any
        for name in (*FIVE, 'admin-administrator'):
            renew(live, name, new)
            for suffix in ('key', 'pem'):
                (new / f'{name}.{suffix}').replace(ours / f'{name}.{suffix}')
            if name in FIVE:
                assert_used(live, name)
        put(ours / 'ca.pem', (new / 'ca.pem').read_text())
        time.sleep(8)
        live.admin('refresh')  # the servers connect to each other anew
        assert daemon.wait_until(live.servers_connected, 30, 0.2)
    # The old authority is nobody's any more.
    old = live.dir / 'old-ca'
    old.mkdir()
    shutil.copy2(ours / 'ca.key', old)
    put(old / 'ca.pem', both[:both.index('-----END') + len('-----END CERTIFICATE-----\n')])
    renew(live, 'admin-administrator', old)
    for suffix in ('key', 'pem'):
        shutil.copy2(old / f'admin-administrator.{suffix}', ours)
    refused = live.admin('status', check=False)
    assert refused.returncode, refused.stdout


def put(path, text):
    """As a careful program writes a file that others read."""
    new = path.with_suffix('.new')
    new.write_text(text)
    new.replace(path)


@pytest.mark.parametrize('what', ['alive', 'serves'])
def test_the_probe(shared_realm, what):
    live = shared_realm
    done = subprocess.run([config_files.mpc_program('mpc-server'), '--config', live.dir / 'p0/mpc-server.toml',
                           f'--health={what}'], capture_output=True, encoding='utf-8', timeout=30)
    assert (done.returncode, done.stdout) == (0, f'{what}\n'), done.stderr
