# SPDX-License-Identifier: Apache-2.0

# That a provider is told by what the client was proved, if the KDC verified that by itself. See
# remoterealm.py.

from k5test import *
from remoterealm import *

if not pkinit_enabled:
    skip_rest('proofs of clients', 'PKINIT module not built')

realm = make_realm(realm_conf={'pkinit_eku_checking': 'none'}, pkinit=True)
identity = 'X509_user_identity=FILE:%s,%s' % (os.path.join(pkinit_certs, 'user.pem'),
                                              os.path.join(pkinit_certs, 'privkey.pem'))
armor = 'FILE:' + os.path.join(realm.testdir, 'armor')
start_kdc(realm)


def last_hint():
    return provider_log('hint_as')[-1]


mark('a certificate')
realm.kinit(realm.user_princ, flags=['-X', identity])
if not re.search(r'reply=0 checksum=0 proof=16 body=[1-9]', last_hint()):
    fail('the provider was not told: ' + last_hint())
realm.run([kvno, realm.host_princ])

mark('a certificate behind armor')
realm.kinit(realm.user_princ, password('user'), flags=['-c', armor])
realm.kinit(realm.user_princ, flags=['-X', identity, '-T', armor])
if not re.search(r'proof=16 body=[1-9]', last_hint()):
    fail('the provider was not told: ' + last_hint())

mark('an encrypted timestamp, of which the hint comes before it is verified')
realm.kinit(realm.user_princ, password('user'))
if not re.search(r'hint_as preauth=[1-9].* proof=0 body=0', last_hint()):
    fail('there is a proof too early: ' + last_hint())

mark('nothing')
realm.run([kadminl, 'modprinc', '-requires_preauth', realm.user_princ])
realm.kinit(realm.user_princ, password('user'))
if not re.search(r'preauth=0 .* proof=0 body=0', last_hint()):
    fail('there is a proof of nobody: ' + last_hint())

success('what a provider is told of proofs')
