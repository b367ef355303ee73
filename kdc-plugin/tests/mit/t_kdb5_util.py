# SPDX-License-Identifier: Apache-2.0
"""Every subcommand of kdb5_util on a database with handles; after each a user logs in. (Master keys:
MIT's t_mkey.)"""

from k5test import *


def dump(*options):
    realm.run([kdb5_util, 'dump', *options, dumpfile])


def load(*options):
    realm.run([kdb5_util, 'load', *options, dumpfile])


def logs_in(princ=None, pw=None, **keywords):
    realm.kinit(princ or realm.user_princ, pw or password('user'), **keywords)


def keys_of(princ):
    return realm.run([kadminl, 'getprinc', princ]).count('Key: vno')


for realm in multidb_realms():
    dumpfile = os.path.join(realm.testdir, 'dump')
    for options in ([], ['-r18'], ['-r13'], ['-b7']):
        mark('dump and load ' + ' '.join(options))
        dump(*options)
        load(*options)
        logs_in()
        realm.run([kvno, realm.host_princ])

    mark('dump of some, load -update')
    realm.addprinc('alice', 'first')
    realm.run([kdb5_util, 'dump', dumpfile, 'alice@' + realm.realm])
    realm.run([kadminl, 'cpw', '-pw', 'second', 'alice'])
    logs_in('alice', 'second')
    # Her old key is used for delete_grace, since a database names it.
    load('-update')
    logs_in('alice', 'second', expected_code=1, expected_msg='Password incorrect')
    logs_in('alice', 'first')
    logs_in()

    mark('ark')
    before = {princ: keys_of(princ) for princ in ('alice', realm.host_princ, realm.krbtgt_princ)}
    # (Without -e stock kdb5_util takes the length of a string that is not there, and crashes.)
    realm.run([kdb5_util, 'ark', '-e', 'aes256-cts:normal', 'alice'])
    realm.run([kdb5_util, 'ark', '-e', 'aes256-cts:normal', realm.host_princ])
    realm.run([kdb5_util, 'ark', '-e', 'aes256-gcm:normal', realm.krbtgt_princ])
    for princ, count in before.items():
        if keys_of(princ) <= count:
            fail('ark added no key to ' + princ)
    # Tickets of before are good, and of after.
    realm.run([kvno, realm.host_princ])
    logs_in()
    realm.extract_keytab(realm.host_princ, realm.keytab)
    realm.run([kvno, '-k', realm.keytab, realm.host_princ])
    logs_in('alice', 'first', expected_code=1, expected_msg='Password incorrect')
    realm.run([kadminl, 'cpw', '-pw', 'third', 'alice'])
    logs_in('alice', 'third')
    realm.run([kdb5_util, 'ark', '-e', 'aes256-cts:normal', realm.krbtgt_princ], expected_code=1,
              expected_msg='aes256-gcm')

    mark('tabdump')
    out = realm.run([kdb5_util, 'tabdump', 'keyinfo'])
    if 'alice@' + realm.realm not in out:
        fail('tabdump lacks a user')

    mark('stash')
    os.remove(os.path.join(realm.testdir, 'stash'))
    realm.run([kdb5_util, 'stash', '-P', 'master'])
    realm.stop_kdc()
    realm.start_kdc()
    logs_in()

    mark('destroy and create')
    realm.stop_kdc()
    realm.run([kdb5_util, 'destroy', '-f'])
    realm.create_kdb()
    realm.addprinc(realm.user_princ, 'anew')
    realm.addprinc(realm.host_princ)
    realm.start_kdc()
    logs_in(pw='anew')
    realm.run([kvno, realm.host_princ])

success('kdb5_util')
