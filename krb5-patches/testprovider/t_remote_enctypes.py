# SPDX-License-Identifier: Apache-2.0

# All keys remote and of one of the enctypes that every client has (17 to 20), and a provider without
# PRF, as one that does not trust the KDC. The clients are MIT's own. Run by krb5-check.sh in the
# tests directory of a tree whose KDB modules are wrapped by the test provider.

from k5test import *
import re

log_path = os.path.join(os.getcwd(), 'remotetest.log')
os.environ['KRB5_REMOTETEST_LOG'] = log_path
os.environ['KRB5_REMOTETEST_NO_PRF'] = '1'

ENCTYPES = (('aes128-cts-hmac-sha1-96', 'aes128-cts'),
            ('aes256-cts-hmac-sha1-96', 'aes256-cts'),
            ('aes128-cts-hmac-sha256-128', 'aes128-sha2'),
            ('aes256-cts-hmac-sha384-192', 'aes256-sha2'))
SPAKE_CONF = {'libdefaults': {'spake_preauth_groups': 'edwards25519'}}


def clear_log():
    open(log_path, 'w').close()


def asked_for(what):
    with open(log_path) as f:
        return [l for l in f.read().splitlines() if l.startswith(what + ' ')]


def expect_operations(*wanted):
    """Each of these operations, with its usage, was asked for."""
    for what in wanted:
        if not asked_for(what):
            fail('the provider was not asked for ' + what)


def offered(trace):
    """The mechanisms in the KDC's answers, not those in the client's requests."""
    return ' '.join(re.findall(r'Processing preauth types: (.*)', trace))


def failures(realm):
    out = realm.run([kadminl, 'getprinc', realm.user_princ])
    return int(re.search(r'Failed password attempts: (\d+)', out).group(1))


def start_realm(name):
    realm = K5Realm(krb5_conf={'libdefaults': {'permitted_enctypes': name}},
                    kdc_conf={'realms': {'$realm': {'supported_enctypes': name + ':normal',
                                                    'max_life': '1d',
                                                    'max_renewable_life': '7d'}}},
                    krbtgt_keysalt=name + ':normal', get_creds=False)
    realm.run([kadminl, 'modprinc', '+requires_preauth', realm.user_princ])
    realm.run([kadminl, 'modprinc', '-maxrenewlife', '7d', realm.krbtgt_princ])
    return realm


def test_login(realm, short):
    mark(short + ': login, service ticket, renewal, user-to-user')
    if realm.run(['./etinfo', realm.user_princ]) != \
            'error etype_info2 %s KRBTEST.COMuser\n' % short:
        fail('wrong hint for the password')
    clear_log()
    realm.kinit(realm.user_princ, password('user'), ['-r', '2d', '-f'],
                expected_trace=('salt "KRBTEST.COMuser"', 'Encrypted timestamp (for '))
    expect_operations('decrypt usage=1', 'encrypt usage=2', 'encrypt usage=3',
                      'make_checksum usage=56', 'make_checksum usage=17')
    # MIT's clients armor every TGS-REQ.
    clear_log()
    realm.run([kvno, realm.host_princ],
              expected_trace=('Encoding request body and padata into FAST request',))
    realm.run([kinit, '-R'])
    realm.run([kvno, realm.host_princ])
    expect_operations('decrypt usage=2', 'encrypt usage=2', 'verify_checksum usage=17')
    tgt_cache = 'FILE:' + os.path.join(realm.testdir, 'tgtcache')
    realm.kinit(realm.user_princ, password('user'), ['-c', tgt_cache])
    realm.run([kvno, '--u2u', tgt_cache, realm.user_princ])


def test_wrong_password(realm, short):
    mark(short + ': keytab, wrong password')
    realm.kinit(realm.host_princ, flags=['-k'])
    before = failures(realm)
    realm.kinit(realm.user_princ, 'wrong', expected_code=1, expected_msg='Password incorrect')
    if failures(realm) != before + 1:
        fail('a wrong password was not counted')


def test_fast(realm, short, armor):
    mark(short + ': FAST')
    realm.kinit(realm.user_princ, password('user'), ['-c', armor])
    clear_log()
    out, trace = realm.kinit(realm.user_princ, password('user'), flags=['-T', armor],
                             return_trace=True)
    if 'Using FAST due to armor ccache negotiation result' not in trace or \
            'Encrypted timestamp (for ' not in trace:
        fail('no encrypted timestamp behind armor')
    if 'PA-ENC-TIMESTAMP' not in offered(trace) or 'PA-ENCRYPTED-CHALLENGE' in offered(trace):
        fail('encrypted challenge was offered')
    expect_operations('decrypt usage=1', 'encrypt usage=3')
    realm.kinit(realm.user_princ, 'wrong', ['-T', armor], expected_code=1)


def test_spake(realm, short):
    mark(short + ': SPAKE')
    env = realm.special_env('spake', True, krb5_conf=SPAKE_CONF)
    realm.stop_kdc()
    realm.start_kdc(env=env)
    clear_log()
    out, trace = realm.kinit(realm.user_princ, password('user'), env=env, return_trace=True)
    if 'Encrypted timestamp (for ' not in trace or 'PA-SPAKE' in offered(trace):
        fail('SPAKE was offered')
    expect_operations('decrypt usage=1', 'encrypt usage=3')
    return env


def test_with_prf(realm, short, env, armor):
    """Shows that the tests above see what they look for."""
    mark(short + ': encrypted challenge and SPAKE with a PRF')
    with_prf = dict(env)
    del with_prf['KRB5_REMOTETEST_NO_PRF']
    realm.stop_kdc()
    realm.start_kdc(env=with_prf)
    clear_log()
    out, trace = realm.kinit(realm.user_princ, password('user'), env=env, return_trace=True)
    if 'PA-SPAKE' not in offered(trace) or 'Encrypted timestamp (for ' in trace:
        fail('no SPAKE')
    out, trace = realm.kinit(realm.user_princ, password('user'), flags=['-T', armor],
                             return_trace=True)
    if 'PA-ENCRYPTED-CHALLENGE' not in offered(trace):
        fail('no encrypted challenge')
    if not asked_for('prf'):
        fail('PRF not used')


for name, short in ENCTYPES:
    realm = start_realm(name)
    armor = 'FILE:' + os.path.join(realm.testdir, 'armor')
    test_login(realm, short)
    test_wrong_password(realm, short)
    test_fast(realm, short, armor)
    env = test_spake(realm, short)
    test_with_prf(realm, short, env, armor)
    realm.stop()

success('Remote keys of enctypes 17 to 20')
