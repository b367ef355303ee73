# SPDX-License-Identifier: Apache-2.0

# PACs under remote keys: how many signatures they cost, whether hints count them, and the attribute that
# takes the PRF of the krbtgt key. From release 1.21 on a service ticket's PAC has one signature more.
# See remoterealm.py.

from k5test import *
from remoterealm import *


def source_has(header, word):
    with open(os.path.join(buildtop if header.startswith('krb5') else srctop, 'include', header)) as f:
        return word in f.read()


# The server's and the KDC's; of service tickets the ticket's too, and that of the whole PAC.
of_tgt = 2
of_service_ticket = 4 if source_has('krb5/krb5.h', 'KRB5_PAC_FULL_CHECKSUM') else 3

realm = make_realm(realm_conf={'disable_pac': 'false'})
start_kdc(realm)


def expect(signatures, verifications=0):
    """That since the log was cleared so many were made, and hints were no less and little more."""
    for what, number in (('make', signatures), ('verify', verifications)):
        lines = provider_log(what + '_checksum usage=17 ')
        if len(lines) != number:
            fail('%d signatures to %s, not %d' % (len(lines), what, number))
    for line in provider_log('bound '):
        if not 0 <= int(line.split('slack=')[1]) <= 32:
            fail('bad bound: ' + line)
    clear_provider_log()


mark('signatures and hints')
realm.kinit(realm.user_princ, password('user'))
if not provider_log('bound ticket '):
    fail('no bound of a ticket')
expect(of_tgt)
realm.run([kvno, realm.host_princ])
expect(of_service_ticket, verifications=1)
realm.kinit(realm.user_princ, password('user'), ['-S', realm.host_princ])
if not provider_log('bound ticket '):
    fail('no bound of a service ticket')
expect(of_service_ticket)

if source_has('kdb.h', 'KRB5_KDB_SK_PAC_PRIVSVR_ENCTYPE'):
    mark('pac_privsvr_enctype')
    realm.run([kadminl, 'setstr', realm.host_princ, 'pac_privsvr_enctype', 'aes256-sha1'])
    start_kdc(realm, NO_PRF=1)
    realm.kinit(realm.user_princ, password('user'))
    realm.run([kvno, realm.host_princ], expected_code=1, expected_msg='KDC policy rejects request')
    if 'pac_privsvr_enctype aes256-sha1 would take the PRF of the krbtgt key' not in kdc_log(realm):
        fail('the log does not say why')
    # Of the krbtgt key's own type nothing has to be derived.
    realm.run([kadminl, 'setstr', realm.host_princ, 'pac_privsvr_enctype', 'aes256-gcm'])
    realm.run([kvno, realm.host_princ])
    realm.run([kadminl, 'setstr', realm.host_princ, 'pac_privsvr_enctype', 'aes256-sha1'])
    start_kdc(realm)
    realm.kinit(realm.user_princ, password('user'))
    realm.run([kvno, realm.host_princ])

# (Where tickets have headers, only TGTs are renewed.)
mark('a service ticket is verified when it is renewed')
realm.stop()
realm = make_realm('aes256-cts:normal', realm_conf={'disable_pac': 'false', 'max_renewable_life': '7d'})
start_kdc(realm)
realm.kinit(realm.user_princ, password('user'), ['-S', realm.host_princ, '-r', '1d'])
clear_provider_log()
realm.kinit(realm.user_princ, None, ['-S', realm.host_princ, '-R'])
expect(of_service_ticket, verifications=of_service_ticket)

success('PACs under remote keys')
