# SPDX-License-Identifier: Apache-2.0

# That a provider's threads may write to the KDC's log while it is reopened upon SIGHUP: no line is
# lost or torn. See remoterealm.py.

from k5test import *
from remoterealm import *
import signal

realm = make_realm()
proxy = Proxy(realm)
realm.run([kadminl, 'addprinc', '-pw', 'pw', 'easy'])
start_kdc(realm)
request = capture(realm, proxy, lambda req: req, proxy.env('plain'), princ='easy', pw='pw')

log = os.path.join(realm.testdir, 'kdc.log')
rotated = []


def chatter():
    """The lines of the provider's thread."""
    lines = []
    for name in rotated + [log]:
        with open(name, errors='replace') as f:
            lines += [l for l in f.read().split('\n') if 'chatter' in l]
    return lines


start_kdc(realm, DELAY=0, CHATTER=200)
end, logins = time.time() + 5, 0
while time.time() < end:
    for i in range(5):
        if exchange(realm, with_padata(request, padata_element(4711, os.urandom(8))))[0] != AS_REP:
            fail('a login failed')
        logins += 1
    rotated.append('%s.%d' % (log, len(rotated)))
    os.rename(log, rotated[-1])
    os.kill(realm._kdc_proc.pid, signal.SIGHUP)
    wait_for(lambda: os.path.exists(log), 'the log was not opened again')

output('%d logins, %d logs\n' % (logins, len(rotated)))
wait_for(lambda: len(chatter()) >= 2 * 200 * logins, 'lines are missing', 5)
line = re.compile(r'\w+ +\d+ [0-9:]+ \S+ krb5kdc\[\d+\]\(Error\): chatter (\d+)\.')
for i, l in enumerate(chatter()):
    m = line.fullmatch(l)
    if m is None or int(m.group(1)) != i:
        fail('not line %d: %s' % (i, l))

success('The log')
