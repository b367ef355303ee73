# SPDX-License-Identifier: Apache-2.0

# That whoever sends the KDC megabytes makes it forget neither what it is working on nor which tickets
# it has given: a client that sends its request again must not start a second login. See
# remoterealm.py.

from k5test import *
from remoterealm import *

realm = make_realm()
proxy = Proxy(realm)
realm.run([kadminl, 'addprinc', '-pw', 'pw', 'easy'])
start_kdc(realm)
request = capture(realm, proxy, lambda req: req, proxy.env('plain'), princ='easy', pw='pw')


def flood():
    """Send 12 MB that nobody needs a key for; each is another request."""
    for i in range(200):
        junk = padata_element(4711, os.urandom(8) + bytes(60000))
        answer = exchange(realm, with_padata(request.replace(b'easy', b'none'), junk))
        if answer is None or answer[0] != KRB_ERROR:
            fail('no error for an unknown client')


def count_logins():
    return len(provider_log('encrypt usage=3 '))


mark('a request in progress')
start_kdc(realm, DELAY=2000)
clear_provider_log()
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.settimeout(20)
sock.sendto(request, kdc_addr(realm))
wait_until_asked('encrypt usage=2 ')
flood()
if count_logins() > 0:
    fail('the flood took too long to see anything')
sock.sendto(request, kdc_addr(realm))
first = sock.recv(65536)
if first[0] != AS_REP:
    fail('the login failed')
sock.settimeout(5)
try:
    sock.recv(65536)
    fail('a request in progress was forgotten')
except socket.timeout:
    pass
if count_logins() != 1:
    fail('the login was made twice')

mark('a ticket that was given')
flood()
if exchange(realm, request) != first:
    fail('an answer was forgotten')
if count_logins() != 1:
    fail('the login was made again')

mark('an answer though all places are taken')
limited = realm.special_env('limited', True,
                            kdc_conf={'kdcdefaults': {'kdc_max_pending_requests': '1'}})
start_kdc(realm, env=limited, DELAY=2000)
first = exchange(realm, request)
clear_provider_log()
sock.sendto(with_padata(request, padata_element(4711, b'')), kdc_addr(realm))
wait_until_asked('encrypt usage=2 ')
if exchange(realm, with_padata(request, padata_element(4712, b'')), timeout=1) is not None:
    fail('there was a free place')
if exchange(realm, request, timeout=1) != first:
    fail('an answer that was there was not given')

success('Lookaside cache')
