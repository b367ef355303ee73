# SPDX-License-Identifier: Apache-2.0

# Aliases of clients and of services under remote keys, with and without canonicalization. MIT's test
# module has the aliases. See remoterealm.py.

from k5test import *
from remoterealm import *

princs = {'krbtgt/KRBTEST.COM': {'keys': 'aes256-gcm'},
          'user': {'keys': 'aes256-gcm', 'flags': '+preauth'},
          'other': {'keys': 'aes256-gcm', 'flags': '+preauth'},
          'service/a': {'keys': 'aes256-gcm'}}


def conf(aliases):
    return {'realms': {'$realm': {'database_module': 'test', 'disable_pac': 'true'}},
            'dbmodules': {'test': {'db_library': 'test', 'princs': princs, 'alias': aliases}}}


def start(aliases, **variables):
    start_kdc(realm, env=realm.special_env('aliases%d' % len(envs), True, kdc_conf=conf(aliases)),
              **variables)
    envs.append(aliases)


envs = []
os.environ['KRB5_REMOTETEST_TAMPER'] = tamper_path
if os.path.exists(tamper_path):
    os.remove(tamper_path)
aliases = {'nick': 'user', 'service/b': 'service/a'}
realm = K5Realm(krb5_conf={'libdefaults': {'permitted_enctypes': 'aes256-gcm aes128-gcm DEFAULT'}},
                kdc_conf=conf(aliases), create_kdb=False)
for name in ('user', 'nick', 'other'):
    realm.extract_keytab(name + '@KRBTEST.COM', realm.keytab)
start(aliases)

mark('by the name itself')
realm.kinit('user', None, ['-k'])
realm.run([kvno, 'service/a', 'service/b'])
realm.klist('user@KRBTEST.COM', 'service/b@KRBTEST.COM')

mark('an alias, with canonicalization')
realm.kinit('nick', None, ['-k', '-C'])
realm.run([kvno, 'service/a', 'service/b'])
realm.klist('user@KRBTEST.COM', 'service/b@KRBTEST.COM')

mark('an alias, without')
realm.kinit('nick', None, ['-k', '-r', '2d', '-f'])
realm.run([kvno, 'service/a', 'service/b'])
realm.klist('nick@KRBTEST.COM', 'service/b@KRBTEST.COM')
realm.kinit('nick', None, ['-R'])
realm.run([kvno, '--u2u', realm.ccache, 'nick'])

mark('a service alone')
realm.kinit('nick', None, ['-k', '-S', 'service/b'])
realm.klist('nick@KRBTEST.COM', 'service/b@KRBTEST.COM')

mark('who lies about the client is found out all the same')
realm.kinit('nick', None, ['-k'])
write_file(tamper_path, 'principal')
realm.kinit('nick', None, ['-k'], expected_code=1, expected_msg='Message stream modified')
os.remove(tamper_path)
if 'another principal has authenticated' not in kdc_log(realm):
    fail('the log does not say why')

mark('what a name means is what the database says')
realm.kinit('nick', None, ['-k'])
start({'nick': 'other', 'service/b': 'service/a'})
realm.run([kvno, 'service/a'], expected_code=1, expected_msg='Message stream modified')
start({'nick': None, 'service/b': 'service/a'})
realm.run([kvno, 'service/a'], expected_code=1, expected_msg='Message stream modified')
start(aliases)
realm.run([kvno, 'service/a'])

success('Aliases under remote keys')
