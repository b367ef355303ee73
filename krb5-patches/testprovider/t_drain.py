# SPDX-License-Identifier: Apache-2.0

# That a KDC which is ended answers first what it is working on, for a second. See remoterealm.py.

from k5test import *
from remoterealm import *
import signal

realm = make_realm()
proxy = Proxy(realm)
realm.run([kadminl, 'addprinc', '-pw', 'pw', 'easy'])
start_kdc(realm)
request = capture(realm, proxy, lambda req: req, proxy.env('plain'), princ='easy', pw='pw')


def other(i):
    return with_padata(request, padata_element(4711, bytes([i])))


def begin_stop():
    thread = threading.Thread(target=realm.stop_kdc)
    thread.start()
    return thread


def answer(sock):
    try:
        return sock.recv(65536)
    except (socket.timeout, ConnectionError):
        return b''


for args in ([], ['-w', '2']):
    mark('requests in progress ' + ' '.join(args))
    start_kdc(realm, args, DELAY=250)
    clear_provider_log()
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.connect(kdc_addr(realm))
    tcp = socket.create_connection(kdc_addr(realm))
    for s in (udp, tcp):
        s.settimeout(3)
    udp.send(other(1))
    tcp.sendall(struct.pack('>I', len(other(2))) + other(2))
    wait_for(lambda: len(provider_log('encrypt usage=2 ')) == 2, 'the provider was not asked')
    stop = begin_stop()
    if answer(udp)[:1] != bytes([AS_REP]):
        fail('a datagram was not answered')
    if answer(tcp)[4:5] != bytes([AS_REP]):
        fail('a connection was not answered')
    stop.join()
    if 'abandoned' in kdc_log(realm):
        fail('something was abandoned')

mark('no new requests, and not for long')
start_kdc(realm, DELAY=5000)
clear_provider_log()
udp.send(other(3))
wait_until_asked('encrypt usage=2 ')
begun = time.time()
stop = begin_stop()
time.sleep(0.3)
udp.send(other(4))
# (The provider's thread, which sleeps, keeps the process a while longer.)
wait_for(lambda: '1 requests in progress were abandoned' in kdc_log(realm),
         'the log does not say what was abandoned')
took = time.time() - begun
if took < 0.9 or took > 3:
    fail('it went on for %.1f s' % took)
stop.join()
if len(provider_log('encrypt usage=2 ')) != 1:
    fail('a new request was begun')

mark('nothing in progress')
start_kdc(realm)
begun = time.time()
realm.stop_kdc()
if time.time() - begun > 0.9:
    fail('it waited for nothing')

success('The end of the KDC')
