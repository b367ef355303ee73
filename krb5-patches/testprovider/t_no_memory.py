# SPDX-License-Identifier: Apache-2.0

# That a KDC without memory for another request drops it, as it drops what is too much otherwise, and
# does not tell a client who has done nothing wrong that he has. See remoterealm.py.

from k5test import *
from remoterealm import *
import resource

realm = make_realm()
proxy = Proxy(realm)
realm.run([kadminl, 'addprinc', '-pw', 'pw', 'easy'])
start_kdc(realm)
request = capture(realm, proxy, lambda req: req, proxy.env('plain'), princ='easy', pw='pw')


def nth(i):
    return with_padata(request, padata_element(4711, i.to_bytes(4, 'big')))


def kdc_memory():
    """The KDC's address space in bytes. (/proc may be of another PID namespace.)"""
    with open('/proc/thread-self/children') as f:
        for child in f.read().split():
            with open('/proc/%s/status' % child) as g:
                status = g.read()
            if status.startswith('Name:\tkrb5kdc'):
                return int(re.search(r'VmSize:\s*(\d+) kB', status).group(1)) * 1024
    fail('there is no KDC')


start_kdc(realm, DELAY=2000)
clear_provider_log()
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.settimeout(20)
sock.sendto(nth(1), kdc_addr(realm))
wait_until_asked('encrypt usage=2 ')
# A stack takes 8 MiB of address space; the only one that was there is in use.
unlimited = resource.prlimit(realm._kdc_proc.pid, resource.RLIMIT_AS)
resource.prlimit(realm._kdc_proc.pid, resource.RLIMIT_AS, (kdc_memory() + (6 << 20), unlimited[1]))
for i in range(2, 12):
    if exchange(realm, nth(i), timeout=0.1) is not None:
        fail('an answer to a request for which there was no memory')
if sock.recv(65536)[0] != AS_REP:
    fail('the request in progress failed')
resource.prlimit(realm._kdc_proc.pid, resource.RLIMIT_AS, unlimited)
if exchange(realm, nth(2))[0] != AS_REP:
    fail('a request which was dropped is not new when it comes again')
lines = re.findall('dropped (\\d+) new ones, the last because of a lack of memory', kdc_log(realm))
if lines != ['1']:
    fail('the log says it ' + ('too often' if lines else 'nowhere'))
if provider_log('.* blocking$'):
    fail('an operation blocked the KDC')

success('No memory')
