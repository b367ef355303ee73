# SPDX-License-Identifier: Apache-2.0
"""A replica KDC by incremental propagation: its database has the primary's handles, and it serves
logins. kpropd has nothing that the servers would let in, so it asks them for nothing."""

from k5test import *

iprop = {'realms': {'$realm': {'iprop_enable': 'true', 'iprop_logfile': '$testdir/db.ulog'}}}
replica_conf = {'realms': {'$realm': {'iprop_logfile': '$testdir/ulog.replica',
                                      'kdc_listen': '$port7', 'kdc_tcp_listen': '$port7'}},
                'dbmodules': {'db': {'database_name': '$testdir/db.replica',
                                     'mpc_admin_certificate': '/nowhere', 'mpc_admin_key': '/nowhere'}}}
# The same without servers.
kpropd_conf = {'realms': replica_conf['realms'], 'dbmodules': {'db': {
    **replica_conf['dbmodules']['db'], 'mpc_certificate': '/nowhere', 'mpc_key': '/nowhere',
    'mpc_servers': '127.0.0.1:1 127.0.0.1:2 127.0.0.1:3', 'mpc_timeout': '10ms'}}}
mpc_kdb = os.path.join(os.environ['MPCKDC_BUILD'], 'cmake/kdc-plugin/kdb-tool/mpc-kdb')
sequence = os.path.join(os.environ['MPCKDC_BUILD'], 'cmake/kdc-plugin/tests/mpckdc_kdb_sequence')
through_replica = {'realms': {'$realm': {'kdc': '$hostname:$port7'}}}


def propagate(expected):
    """One run of kpropd, then both have the same keys."""
    out = realm.run_kpropd_once(kpropd_env, ['-d'])
    if expected not in out:
        fail('kpropd: expected ' + expected)
    if 'MPC' in out:
        fail('kpropd asked the servers')
    keys = [sorted(realm.run([kdb5_util, 'tabdump', '-n', 'keydata'], env=env).splitlines())
            for env in (realm.env, replica)]
    if keys[0] != keys[1]:
        fail('the replica has other keys than the primary')


def logs_in(princ, pw, **keywords):
    realm.kinit(princ, pw, env=client, **keywords)


for realm in multidb_realms(kdc_conf=iprop, start_kadmind=True):
    replica = realm.special_env('replica', True, kdc_conf=replica_conf)
    kpropd_env = realm.special_env('kpropd', True, kdc_conf=kpropd_conf)
    client = realm.special_env('client', False, krb5_conf=through_replica)
    with open(os.path.join(realm.testdir, 'kpropd-acl'), 'w') as acl:
        acl.write(realm.host_princ + '\n')
    realm.addprinc('kiprop/' + hostname)
    realm.extract_keytab('kiprop/' + hostname, realm.keytab)
    dumpfile = os.path.join(realm.testdir, 'dump')
    realm.run([kdb5_util, 'dump', dumpfile])
    realm.run([kdb5_util, 'load', dumpfile], replica)

    mark('whole')
    propagate('Full propagation transfer finished')
    replica_kdc = realm.start_server([krb5kdc, '-n'], 'starting...', env=replica)
    logs_in(realm.user_princ, password('user'))
    realm.run([kvno, realm.host_princ], env=client)

    mark('a new user')
    realm.run([kadminl, 'addprinc', '-pw', 'first', 'alice'])
    logs_in('alice', 'first', expected_code=1, expected_msg='not found in Kerberos database')
    propagate('Got incremental updates')
    logs_in('alice', 'first')
    realm.run([kproplog, '-v'], env=replica, expected_msg='Update principal : alice@')
    # The flag is one that our module sets when it stores a new entry.
    realm.run([kadminl, 'getprinc', 'alice'], env=replica, expected_msg='REQUIRES_PRE_AUTH')

    mark('new keys')
    realm.run([kadminl, 'cpw', '-pw', 'second', 'alice'])
    propagate('Got incremental updates')
    logs_in('alice', 'first', expected_code=1, expected_msg='Password incorrect')
    logs_in('alice', 'second')
    realm.run([kadminl, 'cpw', '-keepold', '-pw', 'third', 'alice'])
    realm.run([kadminl, 'purgekeys', 'alice'])
    realm.run([kadminl, 'cpw', '-randkey', realm.host_princ])
    realm.extract_keytab(realm.host_princ, realm.keytab)  # kprop's own
    propagate('Got incremental updates')
    logs_in('alice', 'third')

    mark('through kadmind')
    realm.prep_kadmin()
    realm.run_kadmin(['addprinc', '-pw', 'bob first', 'bob'])
    realm.run([kadmin, '-p', 'bob', '-w', 'bob first', 'cpw', '-pw', 'bob second', 'bob'])
    propagate('Got incremental updates')
    logs_in('bob', 'bob second')

    mark('renamed')
    realm.addprinc('host/old.example.com')
    realm.run([kadminl, 'renprinc', 'host/old.example.com', 'host/new.example.com'])
    propagate('Got incremental updates')
    realm.run([kvno, 'host/new.example.com'], env=client)
    realm.run([kadminl, 'getprinc', 'host/old.example.com'], env=replica, expected_code=1)

    mark('a renamed user')
    realm.run([kadminl, 'renprinc', 'alice', 'alice.smith'])
    propagate('Got incremental updates')
    logs_in('alice.smith', 'third')
    logs_in('alice', 'third', expected_code=1, expected_msg='not found in Kerberos database')
    realm.run([kadminl, 'renprinc', 'alice.smith', 'alice'])
    propagate('Got incremental updates')
    if 'mpc_renamed' in realm.run([kadminl, 'getstrs', 'alice'], env=replica):
        fail('the replica has the marks of a renaming')

    mark('tagged data that is removed')
    for step, count in (('tag', 1), ('untag', 0)):
        realm.run([sequence, 'get', 'alice', step, 'alice', '300', 'put', 'alice'],
                  expected_msg='ok\nok\nok')
        propagate('Got incremental updates')
        for env in (realm.env, replica):
            out = realm.run([kdb5_util, 'dump', '-', 'alice@' + realm.realm], env=env)
            if out.count('\t300\t') != count:
                fail('tagged data: expected %d in %s' % (count, out))

    # The same keys, encrypted anew: kvno and number stay.
    mark('a new master key')
    realm.run([kdb5_util, 'add_mkey', '-s'], input='new master\nnew master\n')
    realm.run([kdb5_util, 'use_mkey', '2', 'now-1day'])
    realm.run([kdb5_util, 'update_princ_encryption', '-f'])
    propagate('Got incremental updates')
    realm.run([kdb5_util, 'stash'])
    realm.run([kdb5_util, 'purge_mkeys', '-f'])
    propagate('Got incremental updates')
    stop_daemon(replica_kdc)
    replica_kdc = realm.start_server([krb5kdc, '-n'], 'starting...', env=replica)
    logs_in('alice', 'third')
    realm.run([kvno, realm.host_princ], env=client)

    mark('deleted')
    realm.run([kadminl, 'delprinc', 'alice'])
    propagate('Got incremental updates')
    logs_in('alice', 'third', expected_code=1, expected_msg='not found in Kerberos database')

    mark('by mpc-admin')
    realm.run([mpc_kdb, 'delete', 'bob'])
    propagate('Got incremental updates')
    logs_in('bob', 'bob second', expected_code=1, expected_msg='not found in Kerberos database')

    mark('whole again')
    realm.run([kadminl, 'addprinc', '-pw', 'first', 'carol'])
    realm.run([kproplog, '-R'])
    propagate('Full propagation transfer finished')
    logs_in('carol', 'first')
    stop_daemon(replica_kdc)

success('a replica by incremental propagation')
