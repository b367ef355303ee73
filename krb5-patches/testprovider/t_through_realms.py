# SPDX-License-Identifier: Apache-2.0

# Clients who come through several realms, all of whose keys are under headers (patch 31). Run by
# krb5-check.sh in the tests directory of a tree whose KDB modules are wrapped by the test provider.

from k5test import *

krb5_conf = {'libdefaults': {'permitted_enctypes': 'aes256-gcm aes128-gcm DEFAULT'}}
kdc_conf = {'realms': {'$realm': {'supported_enctypes': 'aes256-gcm:normal aes128-gcm:normal',
                                  'disable_pac': 'true'}}}


def realms(names, links, capaths=None):
    conf = dict(krb5_conf, **({'capaths': capaths} if capaths else {}))
    return cross_realms(len(names), xtgts=links, args=[
        {'realm': name, 'krb5_conf': conf, 'kdc_conf': kdc_conf} for name in names])


def visit(client, realm):
    """The realm's own TGT, made from that by which the client came in, and a ticket made from it."""
    client.run([kvno, realm.krbtgt_princ], expected_msg=realm.krbtgt_princ)
    client.run([kvno, realm.host_princ], expected_msg=realm.host_princ)


def stop(made):
    for realm in made:
        realm.stop()


# The transited field gets shorter names then: "X,B." is X and B.X.
mark('realms that are named after each other')
made = realms(('A.X', 'X', 'B.X', 'C.B.X'), ((0, 1), (1, 2), (2, 3), (3, 2), (2, 1), (1, 0)))
for end in made[1:]:
    visit(made[0], end)
for end in made[:-1]:
    visit(made[3], end)
stop(made)

mark('realms that are not')
paths = {'ONE': {'THREE': 'TWO', 'FOUR': ['TWO', 'THREE']}, 'TWO': {'FOUR': 'THREE'}}
made = realms(('ONE', 'TWO', 'THREE', 'FOUR'), ((0, 1), (1, 2), (2, 3)), paths)
for end in made[1:]:
    visit(made[0], end)

# The header does not stand in for what MIT's KDC judges.
mark('a way that is not allowed')
made[3].stop_kdc()
made[3].start_kdc(env=made[3].special_env('kdc', True, krb5_conf={'capaths': None}))
made[0].kinit(made[0].user_princ, password('user'))
made[0].run([kvno, made[3].krbtgt_princ], expected_code=1,
            expected_msg='KDC policy rejects request')
stop(made)

# A header that names nobody on the way: the KDC of the last realm is told to falsify it.
mark('another neighbor')
made = realms(('A.X', 'X', 'B.X'), ((0, 1), (1, 2)))
visit(made[0], made[2])
how = os.path.join(made[2].testdir, 'tamper')
with open(how, 'w') as f:
    f.write('principal')
made[2].stop_kdc()
made[2].start_kdc(env=dict(made[2].env, KRB5_REMOTETEST_TAMPER=how))
made[0].kinit(made[0].user_princ, password('user'))
made[0].run([kvno, made[2].krbtgt_princ], expected_code=1)
with open(os.path.join(made[2].testdir, 'kdc.log')) as f:
    if 'another principal has authenticated' not in f.read():
        fail('the KDC does not say why')
stop(made)

success('Clients who come through several realms')
