# SPDX-License-Identifier: Apache-2.0

# That a client is asked for pre-authentication if the holder of its key asks for it, whatever its
# entry says. See remoterealm.py.

from k5test import *
from remoterealm import *

realm = make_realm()
cache = 'FILE:' + os.path.join(realm.testdir, 'gate')
user = realm.user_princ
asked = ('/Additional pre-authentication required', 'Encrypted timestamp (for ')
realm.run([kadminl, 'modprinc', '-requires_preauth', user])


def log_in(service=None, **args):
    realm.kinit(user, args.pop('pw', password('user')),
                ['-c', cache] + (['-S', service] if service else []), **args)


mark('the holder asks')
start_kdc(realm, GATE=1)
log_in(expected_trace=asked)
realm.run([kvno, '-c', cache, realm.host_princ])
log_in(service=realm.host_princ, expected_trace=asked)
log_in(pw='wrong', expected_code=1, expected_msg='Password incorrect')
if failures(realm) != 1:
    fail('a wrong password was not counted')
log_in()
if 'KEY_NEEDS_PREAUTH: user@KRBTEST.COM' not in kdc_log(realm):
    fail('the log does not say who asks')

mark('it asks for what the client cannot do')
spake = realm.special_env('spake', True, krb5_conf={'libdefaults': {
    'spake_preauth_groups': 'edwards25519'}})
realm.run([kadminl, 'modprinc', '+requires_preauth', user])
start_kdc(realm, env=spake, GATE=1)
log_in(env=spake, expected_code=1, expected_msg='KDC policy rejects request')
if 'the gate is shut' not in kdc_log(realm):
    fail('the log does not say why')

mark('it does not ask')
realm.run([kadminl, 'modprinc', '-requires_preauth', user])
start_kdc(realm)
clear_provider_log()
log_in()
if provider_log('decrypt usage=1 '):
    fail('the KDC asks')

success('Pre-authentication for the holder of a key')
