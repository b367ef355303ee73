# SPDX-License-Identifier: Apache-2.0

# That no ticket leaves the KDC which its key's holder has not finished or finished otherwise, if
# the end of it comes with the reply (finish_with_reply). See remoterealm.py.

from k5test import *
from remoterealm import *

realm = make_realm()
proxy = Proxy(realm)
cache = 'FILE:' + os.path.join(realm.testdir, 'late')
user = realm.user_princ
spake = {'spake_preauth_groups': 'edwards25519'}
spake_kdc = realm.special_env('spakekdc', True, krb5_conf={'libdefaults': spake})


def expect_login(env=None, **args):
    realm.run([kdestroy, '-c', cache])
    realm.run([kinit, '-c', cache, user], input=password('user') + '\n', env=env, **args)
    if not args:
        realm.run([kvno, '-c', cache, realm.host_princ])


mark('the end of the ticket comes with the reply')
start_kdc(realm, LATE='end')
expect_login()
if not provider_log('held back') or not provider_log('brought late'):
    fail('the provider did not put off the end of the ticket')

mark('the whole ticket comes again')
start_kdc(realm, LATE='again')
expect_login()
for what in ('version', 'principal', 'origin-late', 'origin-early', 'cap'):
    write_file(tamper_path, what)
    expect_login(expected_code=1, expected_msg='Message stream modified')
os.remove(tamper_path)
expect_login()
if failures(realm) != 0:
    fail('a bad header was counted as a wrong password')

mark('it never comes')
start_kdc(realm, LATE='never')
expect_login(expected_code=1, expected_msg='Generic error')
if 'was not finished by its key\'s holder' not in kdc_log(realm):
    fail('the log does not say why')

mark('a mechanism replaces the reply key after the hint')
# Put an encrypted timestamp, which makes the KDC expect a reply under the client key, beside the
# response of a mechanism that replaces that key.
start_kdc(realm, env=realm.env)
timestamp = capture(realm, proxy, lambda req: padata_of(req).get(2), proxy.env('plain'))
added = []


def add_timestamp(req):
    padata = padata_of(req)
    if len(padata.get(151, b'')) < 60:
        return req
    added.append(True)
    return with_padata(req, b''.join(padata.values()) + timestamp)


for late in ('end', 'again', 'never'):
    start_kdc(realm, env=spake_kdc, LATE=late)
    proxy.change = add_timestamp
    clear_provider_log()
    added.clear()
    # The client refuses the answer, which is to a request that it did not send.
    expect_login(env=proxy.env('spake', spake), expected_code=1,
                 expected_msg='KDC reply did not match expectations')
    if not added or len(provider_log('decrypt usage=1 ')) != 1:
        fail('there was no timestamp beside SPAKE')
    if provider_log('encrypt usage=3 '):
        fail('the reply key was not replaced')
    if proxy.answer[0] != AS_REP:
        fail('the login failed')
    # A ticket's field ends as its ciphertext.
    if dict(fields_of(proxy.answer))[0xa5].endswith(bytes(16)):
        fail('the ticket ends in zeros')

success('Late tags')
