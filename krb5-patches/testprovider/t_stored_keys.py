# SPDX-License-Identifier: Apache-2.0

# A KDB module which leaves out some of a principal's new keys: kadmin's user gets those which were
# stored. Run by krb5-check.sh in the tests directory of a tree whose KDB modules are wrapped by the
# test provider.

from k5test import *

LEFT_OUT, STORED = 'aes128-cts-hmac-sha1-96', 'aes256-cts-hmac-sha1-96'
SERVICE = 'host/stored'

realm = K5Realm(create_user=False, create_host=False, start_kdc=False)
realm.run([kadminl, 'addprinc', '-pw', 'admin', 'user/admin'])
realm.run([kadminl, 'addprinc', '-randkey', SERVICE])
realm.start_kdc()


def expect_keys(out, *enctypes):
    for enctype in (LEFT_OUT, STORED):
        if (enctype in out) != (enctype in enctypes):
            fail('keys of %s were expected: %s' % (' and '.join(enctypes), out))


def keytab_of(run):
    """List what `run` writes into a new keytab."""
    keytab = os.path.join(realm.testdir, 'stored.keytab')
    if os.path.exists(keytab):
        os.remove(keytab)
    run(['ktadd', '-k', keytab, SERVICE])
    return keytab, realm.run([klist, '-ke', keytab])


def start_kadmind(**variables):
    env = dict(realm.env)
    env.update(variables)
    realm.start_kadmind(env)


for how in ('kadmin.local', 'kadmin'):
    mark(how)
    if how == 'kadmin':
        start_kadmind()
        realm.prep_kadmin('user/admin', 'admin')
    local = {'env': dict(realm.env)}

    def run(args):
        if how == 'kadmin':
            realm.run_kadmin(args)
        else:
            realm.run([kadminl] + args, **local)
    expect_keys(keytab_of(run)[1], LEFT_OUT, STORED)

    if how == 'kadmin':
        realm.stop_kadmind()
        start_kadmind(KRB5_REMOTETEST_LEAVE_OUT=LEFT_OUT)
    local['env']['KRB5_REMOTETEST_LEAVE_OUT'] = LEFT_OUT
    expect_keys(realm.run([kadminl, 'getprinc', SERVICE]), LEFT_OUT, STORED)
    keytab, listed = keytab_of(run)
    expect_keys(listed, STORED)
    expect_keys(realm.run([kadminl, 'getprinc', SERVICE]), STORED)
    # What is in the keytab is what the KDC has.
    realm.run([kinit, '-k', '-t', keytab, SERVICE])

success('Keys as they were stored')
