# SPDX-License-Identifier: Apache-2.0

# What MIT's scripts cannot see: that requests with remote keys do not wait for each other, that
# hints are right, headers of tickets are checked, outages are reported as such. Run by krb5-check.sh
# in the tests directory of a tree whose KDB modules are wrapped by the test provider.

from k5test import *
import re
import socket
import struct
import subprocess
import time

log_path = os.path.join(os.getcwd(), 'remotetest.log')
outage_path = os.path.join(os.getcwd(), 'remotetest.outage')
tamper_path = os.path.join(os.getcwd(), 'remotetest.tamper')
for path in (log_path, outage_path, tamper_path):
    if os.path.exists(path):
        os.remove(path)

gcm = 'aes256-gcm aes128-gcm DEFAULT'
krb5_conf = {'libdefaults': {'permitted_enctypes': gcm}}
kdc_conf = {'realms': {'$realm': {'supported_enctypes': 'aes256-gcm:normal aes128-gcm:normal',
                                  'disable_pac': 'true',
                                  'max_life': '1d',
                                  'max_renewable_life': '7d'}}}

os.environ['KRB5_REMOTETEST_LOG'] = log_path
os.environ['KRB5_REMOTETEST_OUTAGE'] = outage_path
os.environ['KRB5_REMOTETEST_TAMPER'] = tamper_path


def kdc_env(**variables):
    env = dict(realm.env)
    env.update({'KRB5_REMOTETEST_' + k: str(v) for k, v in variables.items()})
    return env


def restart_kdc(args=[], **variables):
    realm.stop_kdc()
    realm.start_kdc(args, env=kdc_env(**variables))


def logged(pattern):
    """The lines of the provider's log that begin so."""
    with open(log_path) as f:
        return [l for l in f.read().splitlines() if re.match(pattern, l)]


def clear_log():
    open(log_path, 'w').close()


def write_file(path, contents):
    with open(path, 'w') as f:
        f.write(contents)


def expect_failures(n, why):
    out = realm.run([kadminl, 'getprinc', realm.user_princ])
    if int(re.search(r'Failed password attempts: (\d+)', out).group(1)) != n:
        fail(why)


def expect_in_kdc_log(text, why):
    with open(os.path.join(realm.testdir, 'kdc.log')) as f:
        if text not in f.read():
            fail(why)


def begin_kinit(cc):
    p = subprocess.Popen([kinit, '-c', cc, realm.user_princ], env=realm.env,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    p.stdin.write((password('user') + '\n').encode())
    p.stdin.close()
    return p


def kinit_many(n):
    """Log in n times at once; return the seconds it took."""
    start = time.time()
    for p in [begin_kinit(os.path.join(realm.testdir, 'cc%d' % i)) for i in range(n)]:
        out = p.stdout.read()
        if p.wait() != 0:
            fail('one of many kinits: ' + out.decode())
    return time.time() - start


realm = K5Realm(krb5_conf=krb5_conf, kdc_conf=kdc_conf, get_creds=False, start_kdc=False)
for princ in (realm.host_princ, realm.krbtgt_princ, realm.user_princ):
    realm.run([kadminl, 'setstr', princ] + ['session_enctypes', 'aes256-cts'])
realm.run([kadminl, 'modprinc', '+requires_preauth', realm.user_princ])
realm.run([kadminl, 'modprinc', '-maxrenewlife', '7d', realm.krbtgt_princ])
realm.start_kdc()

mark('login, service ticket, renewal, user-to-user')
clear_log()
realm.kinit(realm.user_princ, password('user'), ['-r', '2d', '-f'])
realm.run([kvno, realm.host_princ])
realm.run([kinit, '-R'])
expect_in_kdc_log(', tkt=aes256-gcm(-24002), ses=aes256-cts-hmac-sha1-96(18)}, ' +
                  '%s for %s' % (realm.user_princ, realm.krbtgt_princ), 'TGTs are not as meant')
tgt_cache = 'FILE:' + os.path.join(realm.testdir, 'tgtcache')
realm.kinit(realm.user_princ, password('user'), ['-c', tgt_cache])
realm.run([kvno, '--u2u', tgt_cache, realm.user_princ])
if not logged(r'hint_as preauth=[1-9]'):
    fail('no hint with pre-authentication')
if not logged(r'hint_tgs cipher=\d+ ticket=[1-9]'):
    fail('no hint for the renewal')

mark('bounds in hints')
bounds = logged('bound ')
if not bounds:
    fail('no bounds')
for l in bounds:
    slack = int(l.split('slack=')[1])
    if slack < 0 or slack > 32:
        fail('bad bound: ' + l)

mark('requests do not wait for each other')
restart_kdc(DELAY=300)
clear_log()
alone = kinit_many(1)
together = kinit_many(20)
output('one login %.1f s, twenty at once %.1f s\n' % (alone, together))
if alone < 0.9:
    fail('the delay had no effect')
if together > 5 * alone:
    fail('requests wait for each other')
if logged('.* blocking$'):
    fail('an operation blocked the KDC')

mark('retransmission of a request in progress')
# Let a client talk to us, to see a request.
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind(('127.0.0.1', 0))
sock.settimeout(10)
fake = realm.special_env('fake', False, krb5_conf={'realms': {'$realm': {
    'kdc': '127.0.0.1:%d' % sock.getsockname()[1]}}, 'libdefaults': {'udp_preference_limit': '9000'}})
realm.run([kadminl, 'addprinc', '-pw', 'pw', '-requires_preauth', 'easy'])
request = b''
while b'\xa7\x06\x02\x04' not in request:
    # (Again if the nonce happens to be short.)
    client = subprocess.Popen([kinit, '-c', tgt_cache, 'easy'], env=fake, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    request, addr = sock.recvfrom(65536)
    client.kill()
    client.wait()
kdc_addr = ('127.0.0.1', realm.portbase)
sock2 = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock2.settimeout(10)
for i in range(3):
    sock2.sendto(request, kdc_addr)
first = sock2.recv(65536)
sock2.settimeout(2)
try:
    sock2.recv(65536)
    fail('two answers to a retransmitted request')
except socket.timeout:
    pass
sock2.sendto(request, kdc_addr)
if sock2.recv(65536) != first:
    fail('the answer was not remembered')
if first[0] != 0x6b:
    fail('the answer is no AS-REP')
expect_in_kdc_log('during request processing, dropping repeated request',
                  'the retransmission was not dropped')
sock.close()

mark('two thousand requests in progress')
nonce_at = request.rindex(b'\xa7\x06\x02\x04') + 4
# Clients whose names are as long as 'easy'.
users = ['e%03d' % i for i in range(40)]
for user in users:
    realm.run([kadminl, 'addprinc', '-pw', 'pw', '-requires_preauth', user])


def with_nonce(n, user='easy'):
    changed = request[:nonce_at] + struct.pack('>I', n) + request[nonce_at + 4:]
    return changed.replace(b'easy', user.encode())


restart_kdc(DELAY=1000)
# Answers come by the hundred, more than one socket's buffer holds.
socks = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for i in range(40)]
for i in range(2000):
    socks[i % 40].sendto(with_nonce(i + 1, users[i % 40]), kdc_addr)
    if i % 20 == 0:
        time.sleep(0.01)
for s in socks:
    s.settimeout(20)
    for i in range(50):
        if s.recv(65536)[0] != 0x6b:
            fail('one of many requests failed')
    s.close()

mark('more requests than may wait')
limited = realm.special_env('limited', True,
                            kdc_conf={'kdcdefaults': {'kdc_max_pending_requests': '100'}})
limited['KRB5_REMOTETEST_DELAY'] = '3000'
realm.stop_kdc()
realm.start_kdc(env=limited)


def flood(addresses, users):
    """Send 200 requests, each of the addresses and users in turn.  Return the sockets."""
    socks = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for a in addresses]
    for s, a in zip(socks, addresses):
        s.bind((a, 0))
        s.settimeout(0.01)
    for i in range(200):
        socks[i % len(socks)].sendto(with_nonce(i + 1, users[i % len(users)]), kdc_addr)
    return socks


def count_answers(socks):
    answers, end = 0, time.time() + 8
    while time.time() < end:
        for s in socks:
            try:
                if s.recv(65536)[0] == 0x6b:
                    answers += 1
            except socket.timeout:
                pass
    return answers


def expect_answers(socks, n, why):
    answers = count_answers(socks)
    output('%d answers\n' % answers)
    if answers != n:
        fail('%d requests were answered, not %d: %s' % (answers, n, why))
    for s in socks:
        s.close()


def expect_served(req, addr='127.0.0.1', stream=False):
    """Expect an answer as soon as there can be one."""
    with socket.socket(socket.AF_INET,
                       socket.SOCK_STREAM if stream else socket.SOCK_DGRAM) as s:
        s.bind((addr, 0))
        s.settimeout(10)
        s.connect(kdc_addr)
        s.sendall(struct.pack('>I', len(req)) + req if stream else req)
        try:
            if s.recv(65536)[4 if stream else 0:][:1] != b'\x6b':
                fail('no ticket in the answer')
        except socket.timeout:
            fail('no answer to a request from %s' % addr)


def fresh_log():
    realm.stop_kdc()
    os.remove(os.path.join(realm.testdir, 'kdc.log'))
    realm.start_kdc(env=limited)


many = ['127.0.0.%d' % i for i in range(2, 52)]
# Each takes four times as many places as it leaves.
socks = flood(many[:1], users)
expect_served(with_nonce(1000, users[0]), many[1])
expect_answers(socks, 80, 'one address')
expect_in_kdc_log('requests are waiting for remote keys; dropped 1 new ones, the last because of '
                  'too many from 127.0.0.2', 'the log does not say that requests were dropped')
# Those which were dropped are new when they come again.
expect_served(with_nonce(200, users[199 % 40]), many[0])

mark('too many requests for a client')
fresh_log()
socks = flood(many, ['easy'])
expect_served(with_nonce(1000, users[0]), many[1])
# His own, by TCP, are counted apart from those which anybody sends in his name.
expect_served(with_nonce(1000), many[1], stream=True)
expect_answers(socks, 20, 'one client')
expect_in_kdc_log('too many for easy@', 'the log does not name the client')
expect_served(with_nonce(200), many[199 % 50])

mark('places for streams')
fresh_log()
socks = flood(many, users)
streams = []
for i in range(20):
    s = socket.socket()
    s.bind((many[i], 0))
    s.connect(kdc_addr)
    req = with_nonce(1000 + i, users[i])
    s.sendall(struct.pack('>I', len(req)) + req)
    s.settimeout(20)
    streams.append(s)
if len([s for s in streams if s.recv(65536)]) != 12:
    fail('not all places for streams were taken by streams')
expect_answers(socks, 88, 'datagrams')
expect_in_kdc_log('too many in datagrams', 'the log does not say why')
with open(os.path.join(realm.testdir, 'kdc.log')) as f:
    if 'while dispatching' in f.read():
        fail('each request which was dropped is in the log')

mark('many elements of pre-authentication data')
# The request of somebody who wants the KDC to try keys, or to recurse: 5000 encrypted timestamps.


def der(tag, contents):
    n = len(contents)
    if n < 128:
        return bytes([tag, n]) + contents
    length = n.to_bytes((n.bit_length() + 7) // 8, 'big')
    return bytes([tag, 0x80 | len(length)]) + length + contents


def der_split(d):
    """Split off the first element; return its tag, contents and what follows."""
    n, start = d[1], 2
    if n & 0x80:
        start += n & 0x7f
        n = int.from_bytes(d[2:start], 'big')
    return d[0], d[start:start + n], d[start + n:]


def with_padata(req, padata):
    fields, out = der_split(der_split(req)[1])[1], b''
    while fields:
        tag, contents, fields = der_split(fields)
        if tag == 0xa3:
            continue
        out += der(tag, contents)
        if tag == 0xa2:
            out += der(0xa3, der(0x30, padata))
    return der(req[0], der(0x30, out))


enc_data = der(0x30, der(0xa0, der(2, (-24002).to_bytes(2, 'big', signed=True))) +
               der(0xa2, der(4, bytes(100))))
element = der(0x30, der(0xa1, der(2, b'\x02')) + der(0xa2, der(4, b'')))
garbage = der(0x30, der(0xa1, der(2, b'\x02')) + der(0xa2, der(4, enc_data)))
restart_kdc()
for padata in (element * 5000, garbage * 400):
    clear_log()
    sock2.sendto(with_padata(request, padata), kdc_addr)
    if sock2.recv(65536)[0] != 0x7e:
        fail('no error for garbage')
    if len(logged('decrypt usage=1 ')) > 1:
        fail('every element was tried')

mark('worker processes')
restart_kdc(['-w', '2'], DELAY=100)
kinit_many(10)
restart_kdc()

mark('wrong password and outage')
realm.kinit(realm.user_princ, 'wrong', expected_code=1, expected_msg='Password incorrect')
expect_failures(1, 'a wrong password was not counted')
write_file(outage_path, '')
realm.kinit(realm.user_princ, password('user'), expected_code=1,
            expected_msg='service is not available')
os.remove(outage_path)
expect_failures(1, 'an outage was counted as a wrong password')
realm.kinit(realm.user_princ, password('user'))
expect_failures(0, 'a success was not counted')
write_file(outage_path, '')
realm.run([kvno, realm.host_princ], expected_code=1)
os.remove(outage_path)
realm.run([kvno, realm.host_princ])

mark('an account that changes while its login waits')


def kinit_during(query, msg):
    """Log in with the right password; change the account once the provider is asked."""
    clear_log()
    p = begin_kinit(tgt_cache)
    end = time.time() + 20
    while not logged('decrypt usage=1 '):
        if time.time() > end:
            fail('the provider was not asked')
        time.sleep(0.01)
    realm.run([kadminl] + query)
    out = p.stdout.read().decode()
    output(out)
    if p.wait() == 0 or msg not in out:
        fail('a login does not see a change made while it waited')


restart_kdc(DELAY=2000)
kinit_during(['modprinc', '-allow_tix', realm.user_princ], 'credentials have been revoked')
realm.run([kadminl, 'modprinc', '+allow_tix', realm.user_princ])
kinit_during(['cpw', '-pw', 'another', realm.user_princ], 'Password incorrect')
realm.run([kadminl, 'cpw', '-pw', password('user'), realm.user_princ])
restart_kdc()
realm.kinit(realm.user_princ, password('user'))

mark('an outage is not remembered')
write_file(outage_path, '')
sock2.settimeout(10)
restart_kdc()
sock2.sendto(request, kdc_addr)
unavailable = sock2.recv(65536)
os.remove(outage_path)
sock2.sendto(request, kdc_addr)
if unavailable[0] != 0x7e or sock2.recv(65536)[0] != 0x6b:
    fail('an outage was remembered')

mark('headers of new TGTs')
for what in ('version', 'principal', 'origin-late', 'origin-early', 'cap'):
    write_file(tamper_path, what)
    realm.kinit(realm.user_princ, password('user'), ['-c', tgt_cache], expected_code=1,
                expected_msg='Message stream modified')
os.remove(tamper_path)
expect_failures(0, 'a bad header was counted as a wrong password')

mark('headers of service tickets')
# The service has its key; libk5crypto reads a message with a header as one without.
realm.kinit(realm.user_princ, password('user'))
realm.run([kvno, '-k', realm.keytab, realm.host_princ])
realm.run([kdestroy])
realm.kinit(realm.user_princ, password('user'), ['-S', realm.host_princ])
for what in ('version', 'principal', 'origin-late', 'origin-early', 'cap', 'reissued'):
    write_file(tamper_path, what)
    realm.kinit(realm.user_princ, password('user'), ['-S', realm.host_princ], expected_code=1,
                expected_msg='Message stream modified')
expect_in_kdc_log('made from another ticket and is marked initial', 'the reason is not logged')
# A TGT of that kind is what a renewal makes, which stays initial.
realm.kinit(realm.user_princ, password('user'))
os.remove(tamper_path)
realm.kinit(realm.user_princ, password('user'))
for what in ('version', 'principal', 'origin-late', 'cap'):
    write_file(tamper_path, what)
    realm.run([kvno, '--cached-only', realm.host_princ], expected_code=1)
    realm.run([kvno, realm.host_princ], expected_code=1, expected_msg='Message stream modified')
os.remove(tamper_path)
realm.run([kvno, realm.host_princ])

mark('renewable life beyond what the holders of the key allow')
restart_kdc(MAX_RENEWABLE_LIFE=3600)
realm.kinit(realm.user_princ, password('user'), ['-l', '30m'])
realm.kinit(realm.user_princ, password('user'), ['-r', '2d'], expected_code=1)

mark('TGTs without header')
# A KDC which has the key makes TGTs with an empty header.
local = {'dbmodules': {'db_module_dir': os.path.join(plugins, 'kdb', 'wrapped')}}
local_env = realm.special_env('local', True, kdc_conf=local)
realm.stop_kdc()
realm.start_kdc(env=local_env)
old_cache = 'FILE:' + os.path.join(realm.testdir, 'oldcache')
realm.kinit(realm.user_princ, password('user'), ['-c', old_cache, '-r', '1d'])
realm.kinit(realm.user_princ, password('user'))
restart_kdc()
realm.run([kvno, '-c', old_cache, realm.host_princ], expected_code=1,
          expected_msg='Message stream modified')
realm.run([kinit, '-c', old_cache, '-R'], expected_code=1)
realm.kinit(realm.user_princ, password('user'), ['-T', old_cache], expected_code=1)
realm.kinit(realm.user_princ, password('user'))
realm.run([kvno, '--u2u', old_cache, realm.user_princ], expected_code=1)

mark('FAST')
armor = 'FILE:' + os.path.join(realm.testdir, 'armor')
realm.kinit(realm.user_princ, password('user'), ['-c', armor])
realm.kinit(realm.user_princ, password('user'), ['-T', armor])
# Without a PRF there is no encrypted challenge; behind armor the encrypted timestamp takes its place.
restart_kdc(NO_PRF=1)
clear_log()
realm.kinit(realm.user_princ, password('user'), ['-T', armor],
            expected_trace=('Using FAST due to armor ccache negotiation result',
                            'Encrypted timestamp (for '))
realm.kinit(realm.user_princ, 'wrong', ['-T', armor], expected_code=1)
expect_failures(1, 'a wrong password behind armor was not counted')
if logged('prf '):
    fail('PRF used')
realm.kinit(realm.user_princ, password('user'))
realm.kinit('easy', 'pw', ['-T', armor])

mark('TCP connections')
restart_kdc()
idle = [socket.create_connection(kdc_addr) for i in range(200)]
conn = socket.create_connection(kdc_addr)
framed = struct.pack('>I', len(request)) + request
for i in range(len(framed)):
    conn.sendall(framed[i:i + 1])
header = conn.recv(4, socket.MSG_WAITALL)
if len(header) != 4:
    fail('no answer over TCP')
conn.close()
for i in (0, 199):
    idle[i].sendall(framed)
    if len(idle[i].recv(4, socket.MSG_WAITALL)) != 4:
        fail('an idle connection was dropped')
for s in idle:
    s.close()

success('Remote keys')
