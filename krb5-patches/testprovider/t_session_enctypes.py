# SPDX-License-Identifier: Apache-2.0

# Session keys where the keys of a service are remote and of private-use enctypes alone: of types that
# every client knows, whatever is asked for. See remoterealm.py.

from k5test import *
from remoterealm import *

realm = make_realm()
tgs, host = realm.krbtgt_princ, realm.host_princ
all_princs = (tgs, host, realm.user_princ)
no_support = 'no support for encryption type'
for princ in all_princs:
    realm.run([kadminl, 'delstr', princ, 'session_enctypes'])
# What a client asks for is what its own key may be, too.
realm.run([kadminl, 'cpw', '-pw', password('user'), '-e',
           ','.join(e + ':normal' for e in ('aes256-gcm', 'aes256-cts', 'aes128-cts', 'aes256-sha2',
                                            'aes128-sha2')), realm.user_princ])


def asking_for(enctype):
    return realm.special_env('only-' + enctype, False, krb5_conf={
        'libdefaults': {'default_tkt_enctypes': enctype, 'default_tgs_enctypes': enctype}})


def log_in(enctype, **args):
    env = asking_for(enctype)
    realm.kinit(realm.user_princ, password('user'), env=env, **args)
    if 'expected_code' not in args:
        realm.run([kvno, host], env=env)
        out = realm.run([klist, '-e'])
        if out.count('(skey, tkt): %s' % enctype) != 2:
            fail('session keys are not of ' + enctype)


mark('each by itself')
start_kdc(realm)
for enctype in ('aes256-cts-hmac-sha1-96', 'aes128-cts-hmac-sha1-96', 'aes256-cts-hmac-sha384-192',
                'aes128-cts-hmac-sha256-128'):
    log_in(enctype)
log_in('aes256-gcm', expected_code=1, expected_msg=no_support)

mark('an attribute wins')
realm.run([kadminl, 'setstr', tgs, 'session_enctypes', 'aes256-gcm'])
realm.run([kadminl, 'setstr', host, 'session_enctypes', 'aes256-gcm'])
log_in('aes128-cts-hmac-sha1-96', expected_code=1, expected_msg=no_support)
env = asking_for('aes256-gcm')
realm.kinit(realm.user_princ, password('user'), env=env)
realm.run([kvno, host], env=env)
for princ in (tgs, host):
    realm.run([kadminl, 'delstr', princ, 'session_enctypes'])

mark('a key of an ordinary type says what it does in stock')
realm.run([kadminl, 'cpw', '-randkey', '-e', 'aes256-gcm:normal,aes128-sha2:normal', host])
env = asking_for('aes128-cts-hmac-sha1-96')
realm.kinit(realm.user_princ, password('user'), env=env)
realm.run([kvno, host], env=env, expected_code=1, expected_msg=no_support)
env = asking_for('aes128-sha2')
realm.kinit(realm.user_princ, password('user'), env=env)
realm.run([kvno, host], env=env)

mark('the realm says otherwise')
for said, refused, taken in (('none', 'aes128-cts', 'aes256-gcm'),
                             ('aes128-sha2', 'aes256-cts', 'aes128-sha2')):
    env = realm.special_env('said-' + said, True, kdc_conf={
        'realms': {'$realm': {'remote_session_enctypes': said}}})
    start_kdc(realm, env=env)
    realm.kinit(realm.user_princ, password('user'), env=asking_for(refused), expected_code=1,
                expected_msg=no_support)
    realm.kinit(realm.user_princ, password('user'), env=asking_for(taken))

success('Session keys of services with remote keys')
