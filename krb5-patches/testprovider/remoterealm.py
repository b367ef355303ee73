# SPDX-License-Identifier: Apache-2.0

# What the scripts for the test provider share: a realm with remote keys, DER as far as requests need
# it, and a proxy that sees what clients send.

from k5test import *
import re
import socket
import struct
import threading
import time

log_path = os.path.join(os.getcwd(), 'remotetest.log')
outage_path = os.path.join(os.getcwd(), 'remotetest.outage')
tamper_path = os.path.join(os.getcwd(), 'remotetest.tamper')

GCM = 'aes256-gcm:normal aes128-gcm:normal'


def make_realm(enctypes=GCM, realm_conf={}, krb5_conf={}, **more):
    """A realm whose user needs pre-authentication, and whose KDC is not started."""
    for path in (log_path, outage_path, tamper_path):
        if os.path.exists(path):
            os.remove(path)
    os.environ['KRB5_REMOTETEST_LOG'] = log_path
    os.environ['KRB5_REMOTETEST_OUTAGE'] = outage_path
    os.environ['KRB5_REMOTETEST_TAMPER'] = tamper_path
    conf = {'supported_enctypes': enctypes, 'disable_pac': 'true'}
    conf.update(realm_conf)
    realm = K5Realm(krb5_conf={'libdefaults': {'permitted_enctypes':
                                               'aes256-gcm aes128-gcm DEFAULT'},
                               **krb5_conf},
                    kdc_conf={'realms': {'$realm': conf}},
                    get_creds=False, start_kdc=False, **more)
    for princ in (realm.host_princ, realm.krbtgt_princ, realm.user_princ):
        realm.run([kadminl, 'setstr', princ, 'session_enctypes', 'aes256-cts'])
    realm.run([kadminl, 'modprinc', '+requires_preauth', realm.user_princ])
    return realm


def start_kdc(realm, args=[], env=None, **variables):
    """Start the KDC, or start it again, with variables of the test provider."""
    env = dict(realm.env if env is None else env)
    env.update({'KRB5_REMOTETEST_' + k: str(v) for k, v in variables.items()})
    if realm._kdc_proc is not None:
        realm.stop_kdc()
    realm.start_kdc(args, env=env)


def provider_log(pattern):
    """The lines of the provider's log that begin so."""
    with open(log_path) as f:
        return [l for l in f.read().splitlines() if re.match(pattern, l)]


def clear_provider_log():
    open(log_path, 'w').close()


def wait_for(condition, why, seconds=20):
    end = time.time() + seconds
    while not condition():
        if time.time() > end:
            fail(why)
        time.sleep(0.01)


def wait_until_asked(pattern):
    """Wait until an operation begins."""
    wait_for(lambda: os.path.exists(log_path) and provider_log(pattern), 'the provider was not asked')


def write_file(path, contents):
    with open(path, 'w') as f:
        f.write(contents)


def kdc_log(realm):
    with open(os.path.join(realm.testdir, 'kdc.log')) as f:
        return f.read()


def failures(realm):
    out = realm.run([kadminl, 'getprinc', realm.user_princ])
    return int(re.search(r'Failed password attempts: (\d+)', out).group(1))


# ---- DER ----

def der(tag, contents):
    if len(contents) < 128:
        return bytes([tag, len(contents)]) + contents
    length = len(contents).to_bytes((len(contents).bit_length() + 7) // 8, 'big')
    return bytes([tag, 0x80 | len(length)]) + length + contents


def der_split(d):
    """Split off the first element; return its tag, contents and what follows."""
    n, start = d[1], 2
    if n & 0x80:
        start += n & 0x7f
        n = int.from_bytes(d[2:start], 'big')
    return d[0], d[start:start + n], d[start + n:]


def der_list(d):
    """The elements of a sequence's contents, as (tag, contents)."""
    out = []
    while d:
        tag, contents, d = der_split(d)
        out.append((tag, contents))
    return out


def fields_of(req):
    """The fields of a message, as (tag, contents)."""
    return der_list(der_split(der_split(req)[1])[1])


def padata_of(req):
    """The elements of a request's padata, by type."""
    for tag, contents in fields_of(req):
        if tag == 0xa3:
            elements = [der(0x30, c) for _, c in der_list(der_split(contents)[1])]
            return {int.from_bytes(der_split(der_split(der_split(e)[1])[1])[1], 'big', signed=True):
                    e for e in elements}
    return {}


def with_padata(req, padata):
    """The request with other padata, which are elements one after the other."""
    out = b''
    for tag, contents in fields_of(req):
        if tag != 0xa3:
            out += der(tag, contents)
        if tag == 0xa2:
            out += der(0xa3, der(0x30, padata))
    return der(req[0], der(0x30, out))


def padata_element(pa_type, value):
    return der(0x30, der(0xa1, der(2, pa_type.to_bytes(2, 'big', signed=True))) +
               der(0xa2, der(4, value)))


# ---- Messages ----

def kdc_addr(realm):
    return ('127.0.0.1', realm.portbase)


class Proxy:
    """A KDC of the realm that asks the real one, by UDP, what change(request) returns. If that is
    None, nothing is sent and the client waits."""

    def __init__(self, realm):
        self.realm = realm
        self.change = lambda req: req
        self.answer = None # the last one
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind(('127.0.0.1', 0))
        threading.Thread(target=self.serve, daemon=True).start()

    def env(self, name, libdefaults={}):
        conf = {'udp_preference_limit': '32000'}
        conf.update(libdefaults)
        address = '127.0.0.1:%d' % self.sock.getsockname()[1]
        return self.realm.special_env(name, False, krb5_conf={
            'realms': {'$realm': {'kdc': address}}, 'libdefaults': conf})

    def serve(self):
        while True:
            req, client = self.sock.recvfrom(65536)
            req = self.change(req)
            if req is None:
                continue
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                s.settimeout(20)
                s.sendto(req, kdc_addr(self.realm))
                try:
                    self.answer = s.recv(65536)
                    self.sock.sendto(self.answer, client)
                except socket.timeout:
                    pass


def begin_kinit(realm, env, cache, princ=None, pw=None):
    p = subprocess.Popen([kinit, '-c', cache, princ or realm.user_princ], env=env,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    p.stdin.write(((pw or password('user')) + '\n').encode())
    p.stdin.close()
    return p


def capture(realm, proxy, wanted, env, **kinit_args):
    """What wanted(request) returns of the first of a kinit's requests of which it returns anything.
    The KDC does not see that request, and the kinit is ended."""
    found = []

    def change(req):
        what = wanted(req)
        if what is None:
            return req
        found.append(what)
        return None

    proxy.change = change
    p = begin_kinit(realm, env, os.path.join(realm.testdir, 'captured'), **kinit_args)
    wait_for(lambda: found, 'kinit sent no such request')
    p.kill()
    p.wait()
    proxy.change = lambda req: req
    return found[0]


def exchange(realm, req, timeout=10, addr='127.0.0.1'):
    """The KDC's answer to a datagram, or None."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind((addr, 0))
        s.settimeout(timeout)
        s.sendto(req, kdc_addr(realm))
        try:
            return s.recv(65536)
        except socket.timeout:
            return None


AS_REP = 0x6b
KRB_ERROR = 0x7e
