# SPDX-License-Identifier: Apache-2.0

# That a user does not lose authentication indicators because a key was out of reach when they were to
# be verified. See remoterealm.py.

from k5test import *
from remoterealm import *

module = os.path.join(buildtop, 'plugins', 'preauth', 'test', 'test.so')
realm = make_realm(realm_conf={'max_renewable_life': '7d'},
                   krb5_conf={'plugins': {'kdcpreauth': {'module': 'test:' + module},
                                          'clpreauth': {'module': 'test:' + module}}})
cache = 'FILE:' + os.path.join(realm.testdir, 'cammac')
realm.run([kadminl, 'addprinc', '-randkey', 'service/strict'])
realm.run([kadminl, 'setstr', 'service/strict', 'require_auth', 'strong'])
start_kdc(realm, DELAY=700)


def in_an_outage(command):
    """Run it with an outage that begins while the TGT's indicators are verified."""
    clear_provider_log()
    def begin():
        wait_until_asked('verify_checksum usage=64 ')
        write_file(outage_path, '')
    thread = threading.Thread(target=begin)
    thread.start()
    out = realm.run(command, expected_code=1)
    thread.join()
    os.remove(outage_path)
    if 'A service is not available' not in out:
        fail('an outage is told as something else: ' + out)


mark('an outage while indicators are verified')
realm.kinit(realm.user_princ, password('user'),
            ['-c', cache, '-r', '2d', '-X', 'indicators=strong'])
in_an_outage([kvno, '-c', cache, 'service/strict'])
in_an_outage([kinit, '-c', cache, '-R'])
realm.run([kinit, '-c', cache, '-R'])
realm.run([kvno, '-c', cache, 'service/strict'])

mark('a password alone')
realm.kinit(realm.user_princ, password('user'), ['-c', cache])
realm.run([kvno, '-c', cache, 'service/strict'], expected_code=1,
          expected_msg='KDC policy rejects request')

success('Authentication indicators in outages')
