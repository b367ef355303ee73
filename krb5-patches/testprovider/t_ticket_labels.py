# SPDX-License-Identifier: Apache-2.0

# Tickets that come back to the realm carry the number of an enctype that every client knows
# (ticket_enctype_label), and the KDC still knows what they are. Run by krb5-check.sh in the tests
# directory of a tree whose KDB modules are wrapped by the test provider.

from k5test import *
import re

krb5_conf = {'libdefaults': {'permitted_enctypes': 'aes256-gcm aes128-gcm DEFAULT'}}
kdc_conf = {'realms': {'$realm': {'supported_enctypes': 'aes256-gcm:normal aes128-gcm:normal',
                                  'max_life': '1d', 'max_renewable_life': '7d'}}}
LABEL = 'aes256-cts-hmac-sha1-96'
GCM = 'aes256-gcm'


def prepare(realm):
    for princ in (realm.krbtgt_princ, realm.host_princ, realm.user_princ, 'kadmin/admin'):
        realm.run([kadminl, 'setstr', princ, 'session_enctypes', 'aes256-cts'])
    realm.run([kadminl, 'modprinc', '+requires_preauth', realm.user_princ])
    realm.run([kadminl, 'modprinc', '-maxrenewlife', '7d', realm.krbtgt_princ])


def cache(realm, name):
    return 'FILE:' + os.path.join(realm.testdir, name)


def numbers(realm, ccache=None):
    """The enctype of each ticket in a cache, as a client sees it, by service."""
    out = realm.run([klist, '-e'] + (['-c', ccache] if ccache else []))
    lines = r'  (\S+)\n(?:\t(?!.*Etype).*\n)*\t.*Etype \(skey, tkt\): \S+, (\S+)'
    return dict(re.findall(lines, out))


def expect(realm, wanted, ccache=None):
    seen = numbers(realm, ccache)
    for princ, enctype in wanted.items():
        if seen.get(princ) != enctype:
            fail('%s: %s, not %s' % (princ, seen.get(princ), enctype))


def login(realm, ccache=None, flags=[]):
    where = ['-c', ccache] if ccache else []
    realm.kinit(realm.user_princ, password('user'), where + ['-r', '2d', '-f'] + flags)


def restart_kdc(realm, label=None):
    """With a label, or the default."""
    conf = {'realms': {'$realm': {'ticket_enctype_label': label}}} if label else None
    realm.stop_kdc()
    realm.start_kdc(env=realm.special_env('kdc', True, kdc_conf=conf))


def use_tgt(realm, ccache):
    """All that a TGT is for: a service ticket, forwarding, user-to-user, renewal, armor."""
    realm.run([kvno, '-c', ccache, realm.host_princ])
    realm.run([kvno, '-c', ccache, '--u2u', ccache, realm.user_princ])
    login(realm, cache(realm, 'armored'), ['-T', ccache])
    realm.run(['./forward'], env=dict(realm.env, KRB5CCNAME=ccache))
    realm.run([kvno, '-c', ccache, realm.host_princ])
    realm.run([kinit, '-c', ccache, '-R'])


realm = K5Realm(krb5_conf=krb5_conf, kdc_conf=kdc_conf, get_creds=False)
prepare(realm)
tgt = realm.krbtgt_princ
old = cache(realm, 'old')

mark('labels by default')
login(realm, old)
expect(realm, {tgt: LABEL}, old)
use_tgt(realm, old)
expect(realm, {tgt: LABEL}, old)
login(realm, cache(realm, 'armored'), ['-T', old])
expect(realm, {tgt: LABEL}, cache(realm, 'armored'))
# Tickets that others open have no label.
realm.run([kvno, '-c', old, realm.host_princ])
expect(realm, {realm.host_princ: GCM}, old)
with open(os.path.join(realm.testdir, 'kdc.log')) as f:
    issued = [l for l in f if 'AS_REQ' in l and 'ISSUE' in l]
if not issued or any('tkt=' + GCM not in l for l in issued):
    fail('the log names the label, not the enctype')

mark('kadmin: label, kadmind')
realm.start_kadmind()
realm.prep_kadmin()
expect(realm, {'kadmin/admin@KRBTEST.COM': LABEL}, realm.kadmin_ccache)
realm.run_kadmin(['getprinc', realm.user_princ], expected_msg='Principal: ' + realm.user_princ)

mark('another label, and none')
restart_kdc(realm, 'aes128-sha2')
use_tgt(realm, old)
expect(realm, {tgt: 'aes128-cts-hmac-sha256-128'}, old)
restart_kdc(realm, 'none')
use_tgt(realm, old)
expect(realm, {tgt: GCM}, old)
restart_kdc(realm)
use_tgt(realm, old)
expect(realm, {tgt: LABEL}, old)
wrong = realm.special_env('wrong', True, kdc_conf={'realms': {'$realm': {
    'ticket_enctype_label': 'aes257'}}})
realm.stop_kdc()
realm.run([krb5kdc, '-n'], env=wrong, expected_code=1)
with open(os.path.join(realm.testdir, 'kdc.log')) as f:
    if 'while parsing ticket_enctype_label = aes257' not in f.read():
        fail('a label that is no enctype is not named')
realm.start_kdc()

mark('key rollover')
login(realm)
realm.run([kadminl, 'cpw', '-randkey', '-keepold', realm.krbtgt_princ])
use_tgt(realm, old)
realm.run([kadminl, 'purgekeys', realm.krbtgt_princ])
use_tgt(realm, old)
realm.run([kvno, realm.host_princ], expected_code=1)
realm.run([kinit, '-R'], expected_code=1)
realm.run([kvno, '-c', old, '--u2u', realm.ccache, realm.user_princ], expected_code=1)
realm.kinit(realm.user_princ, password('user'), ['-T', realm.ccache], expected_code=1)

mark('no label that is true of another key')
realm.run([kadminl, 'cpw', '-randkey', '-e', 'aes256-gcm:normal,aes256-cts:normal',
           realm.krbtgt_princ])
login(realm, old)
expect(realm, {tgt: GCM}, old)
use_tgt(realm, old)
realm.stop()

mark('no label on cross-realm TGTs')
a, b = cross_realms(2, krb5_conf=krb5_conf, kdc_conf=kdc_conf, get_creds=False)
for realm in (a, b):
    prepare(realm)
login(a)
a.run([kvno, b.host_princ])
expect(a, {a.krbtgt_princ: LABEL, 'krbtgt/%s@%s' % (b.realm, a.realm): GCM})
a.stop()
b.stop()

success('Ticket labels')
